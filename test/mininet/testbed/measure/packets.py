# SPDX-License-Identifier: GPL-2.0-or-later
"""What happened to each packet of one run, hop by hop.

Nothing in a packet says which reply acknowledges it (that is encrypted), so `reply` is
the first one that left the client after the packet had come: no earlier one can have.
"""

from __future__ import annotations

import bisect
import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .scoring import Packet as Crossing

# Down a packet crosses the WAN first, up the Wi-Fi hop. Points are where it can be seen.
LINKS = {"down": ("wan", "wifi"), "up": ("wifi", "wan")}
POINTS = {
    "down": ("server", "router_wan", "router_wifi", "client"),
    "up": ("client", "router_wifi", "router_wan", "server"),
}
COLUMNS = (
    *("direction", "number", "length", "fate"),
    *("server_ms", "router_wan_ms", "router_wifi_ms", "client_ms", "in_router_ms"),
    *("reply", "answers", "copies", "copies_needed", "first_copy_ms"),
)
# By direction and link, in the order in which they came.
Crossings = dict[tuple[str, str], list[Crossing]]


@dataclass(slots=True)
class Packet:
    """A packet as its sender sent it, with what the router added."""

    direction: str
    number: int
    length: int
    # µs at each point: of the transmission that came there first.
    at: dict[str, float] = field(default_factory=dict)
    # ok, repaired, `LINK lost`, `LINK queue`, `on the LINK` or `in the router` at the end.
    fate: str = "ok"
    # Down: the number of the reply. Up: how many packets it is the reply to.
    reply: int | None = None
    answers: int = 0
    # When each copy went on its way, and whether everything before it was lost.
    copies: list[tuple[float, bool]] = field(default_factory=list)

    @property
    def in_router_ms(self) -> float | None:
        """How long the router kept it."""
        if "router_wan" not in self.at or "router_wifi" not in self.at:
            return None
        return abs(self.at["router_wan"] - self.at["router_wifi"]) / 1000


def trace(crossings: Crossings) -> list[Packet]:
    """Both directions, in the order in which they were sent."""
    down, up = (_follow(direction, crossings) for direction in ("down", "up"))
    left_client = [packet.at["client"] for packet in up]
    for packet in down:
        if "client" in packet.at:
            index = bisect.bisect_left(left_client, packet.at["client"])
            if index < len(up):
                packet.reply = up[index].number
                up[index].answers += 1
    return sorted([*down, *up], key=lambda packet: packet.at[POINTS[packet.direction][0]])


def _follow(direction: str, crossings: Crossings) -> list[Packet]:
    first_link, second_link = LINKS[direction]
    first, router_in, router_out, last = POINTS[direction]
    onward: dict[str, list[Crossing]] = defaultdict(list)
    for crossing in crossings[direction, second_link]:
        onward[crossing.digest].append(crossing)
    packets, arrived = [], defaultdict(list)
    for number, crossing in enumerate(crossings[direction, first_link]):
        packet = Packet(direction, number, crossing.length, {first: crossing.us})
        packets.append(packet)
        if crossing.dropped:
            packet.fate = f"{first_link} {crossing.fate}"
        elif crossing.out_us is None:
            packet.fate = f"on the {first_link}"
        else:
            packet.at[router_in] = crossing.out_us
            arrived[crossing.digest].append(packet)
    for digest, originals in arrived.items():
        for index, packet in enumerate(originals):
            # Equal bytes from the sender are packets of their own; what the router sends
            # of them beyond that are copies.
            end = index + 1 if index + 1 < len(originals) else None
            _settle(packet, second_link, onward[digest][index:end], router_out, last)
    return packets


def _settle(packet: Packet, link: str, sent: Sequence[Crossing], out: str, last: str) -> None:
    if not sent:
        packet.fate = "in the router"
        return
    original, *copies = sent
    packet.at[out] = original.us
    lost = original.dropped
    for copy in copies:
        packet.copies.append((copy.us, lost))
        lost = lost and copy.dropped
    came = [crossing.out_us for crossing in sent if crossing.out_us is not None]
    if came:
        packet.at[last] = min(came)
        packet.fate = "repaired" if original.dropped else "ok"
    else:
        packet.fate = f"{link} {original.fate}" if lost else f"on the {link}"


def totals(packets: Iterable[Packet]) -> dict[str, dict[str, int]]:
    """How many of each fate and how many copies, by direction."""
    found: dict[str, dict[str, int]] = {"down": defaultdict(int), "up": defaultdict(int)}
    for packet in packets:
        count = found[packet.direction]
        count["packets"] += 1
        count[packet.fate] += 1
        count["copies"] += len(packet.copies)
        count["copies needed"] += sum(needed for _, needed in packet.copies)
    return {direction: dict(count) for direction, count in found.items()}


@dataclass(frozen=True)
class Promptness:
    """How soon a client replies."""

    replies: int
    per_reply: float
    # From the arrival of the newest packet that a reply can be to until it left: percentiles, µs.
    p50_us: float
    p90_us: float
    p99_us: float


def promptness(packets: Sequence[Packet]) -> Promptness | None:
    """Of a run's client; None if it has replied to nothing. A reply that left before the newest
    packet was read counts as one to it, so real clients are a little later than this."""
    left = {packet.number: packet.at["client"] for packet in packets if packet.direction == "up"}
    newest: dict[int, float] = {}
    answered = 0
    for packet in packets:
        if packet.direction == "down" and packet.reply is not None:
            answered += 1
            came = packet.at["client"]
            newest[packet.reply] = max(newest.get(packet.reply, came), came)
    if not newest:
        return None
    waits = sorted(left[reply] - came for reply, came in newest.items())

    def at(percent: int) -> float:
        return waits[min(len(waits) * percent // 100, len(waits) - 1)]

    return Promptness(len(waits), answered / len(waits), at(50), at(90), at(99))


def as_csv(packets: Sequence[Packet]) -> str:
    """One row a packet; times in ms since the first one was sent."""
    start = min((min(packet.at.values()) for packet in packets), default=0.0)

    def since(us: float | None) -> str:
        return "" if us is None else f"{(us - start) / 1000:.4f}"

    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for packet in packets:
        kept = packet.in_router_ms
        rows.writerow(
            [
                *(packet.direction, packet.number, packet.length, packet.fate),
                *(since(packet.at.get(point)) for point in POINTS["down"]),
                "" if kept is None else f"{kept:.4f}",
                "" if packet.reply is None else packet.reply,
                packet.answers if packet.direction == "up" else "",
                len(packet.copies),
                sum(needed for _, needed in packet.copies),
                since(packet.copies[0][0] if packet.copies else None),
            ]
        )
    return text.getvalue()
