# SPDX-License-Identifier: GPL-2.0-or-later
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

    us: float
    length: int
    digest: str
    fate: str
    # None: dropped, or still under way when the experiment ended.
    out_us: float | None

    @property
    def dropped(self) -> bool:
        """Whether it will never come out at the other end."""
        return self.fate != "ok"


def read_truth(path: Path, direction: str, port: int) -> list[Packet]:
    """The packets of linkem's log in one direction (`ab` is downstream, `ba`
    upstream) that belong to the server's port, in the order in which they came."""
    # Rows are written when a packet's fate is known, which is another order.
    return sorted(_read(path, direction, port), key=lambda packet: packet.us)


def _read(path: Path, direction: str, port: int) -> Iterator[Packet]:
    side = "sport" if direction == "ab" else "dport"
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["dir"] == direction and row[side] == str(port):
                yield Packet(
                    us=float(row["us"]),
                    length=int(row["len"]),
                    digest=row["hash"],
                    fate=row["fate"],
                    out_us=float(row["out_us"]) if row["out_us"] else None,
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
    repair_us: list[float] = []
    for original, *later in transmissions.values():
        copies += len(later)
        all_lost = original.dropped
        for copy in later:
            needed += all_lost
            all_lost = all_lost and copy.dropped
        if original.fate == "lost":
            losses += 1
            arrived = [copy.out_us for copy in later if copy.out_us is not None]
            if arrived and min(arrived) - original.us <= in_time_us:
                repair_us.append(min(arrived) - original.us)

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
