"""What the router's copies were worth, judged by what really happened on the hop.

Downstream on the Wi-Fi hop the first packet with a given payload is the original
and every later one a copy. A copy was needed if all earlier transmissions of that
packet were lost. A loss counts as repaired only if a copy arrived before the
sender's own repair could: within one round trip of the whole path.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

# The sender's repair crosses the whole path twice and can only start when a later
# packet has shown the gap, so this much more is still ahead of it.
_MARGIN_US = 5_000


@dataclass(frozen=True, slots=True)
class Packet:
    """One transmission on a link."""

    us: int
    length: int
    digest: str
    fate: str
    out_us: int

    @property
    def arrived(self) -> bool:
        """Whether it came out at the other end."""
        return self.fate == "ok"


def read_truth(path: Path, direction: str, port: int) -> Iterator[Packet]:
    """The packets of linkem's log in one direction (`ab` is downstream, `ba`
    upstream) that belong to the server's port."""
    side = "sport" if direction == "ab" else "dport"
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["dir"] == direction and row[side] == str(port):
                yield Packet(
                    us=int(row["us"]),
                    length=int(row["len"]),
                    digest=row["hash"],
                    fate=row["fate"],
                    out_us=int(row["out_us"] or 0),
                )


def score(packets: Iterable[Packet], rtt_ms: float) -> dict[str, object]:
    """The `inference` part of a result."""
    in_time_us = rtt_ms * 1000 + _MARGIN_US
    transmissions: dict[str, list[Packet]] = {}
    total = 0
    for packet in packets:
        total += 1
        transmissions.setdefault(packet.digest, []).append(packet)

    losses = copies = needed = 0
    repair_us: list[int] = []
    for original, *later in transmissions.values():
        copies += len(later)
        all_lost = not original.arrived
        for copy in later:
            needed += all_lost
            all_lost = all_lost and not copy.arrived
        if original.fate == "lost":
            losses += 1
            healed = [copy.out_us - original.us for copy in later if copy.arrived]
            if healed and healed[0] <= in_time_us:
                repair_us.append(healed[0])

    return {
        "precision": _share(needed, copies),
        "recall": _share(len(repair_us), losses),
        "unneeded_percent": _share(100 * (copies - needed), total),
        "packets": total,
        "losses": losses,
        "repaired": len(repair_us),
        "copies": copies,
        "copies_needed": needed,
        "repair_ms_median": round(statistics.median(repair_us) / 1000, 3) if repair_us else None,
    }


def _share(part: float, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
