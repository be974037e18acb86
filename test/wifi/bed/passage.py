# SPDX-License-Identifier: GPL-2.0-or-later
"""What became of the server's packets between the router's port to the WAN and its air."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

from testbed.loads.apps import PORT

# Of 802.11's frames; then they begin anew.
_NUMBERS = 4096


def passage(came: Path, air: Path) -> dict[str, object]:
    """Of what came from the WAN: what never went on the air, and what went there after something
    that had come later; copies count for neither."""
    with came.open(newline="") as file:
        arrived = {row["hash"]: (n, float(row["us"])) for n, row in enumerate(csv.DictReader(file))}
    sent = _first(air)
    waits = [sent[digest] - us for digest, (_, us) in arrived.items() if digest in sent]
    return {
        "came": len(arrived),
        "missing": len(arrived) - len(waits),
        "overtaken": _overtaken([arrived[digest][0] for digest in sent if digest in arrived]),
        "held_ms_max": round(max(waits) / 1000, 3) if waits else None,
    }


def _first(air: Path) -> dict[str, float]:
    """When each packet of the server was handed to the air first, in that order."""
    with air.open(newline="") as file:
        down = [row for row in csv.DictReader(file) if row["dir"] == "ab"]
    rows = [row for row in down if row["sport"] == str(PORT)]
    rows.sort(key=lambda row: float(row["us"]))
    sent: dict[str, float] = {}
    # What the medium was handed at once has one time, and numbers in the order of the handing.
    for us, together in itertools.groupby(rows, key=lambda row: float(row["us"])):
        group = list(together)
        middle = int(group[0]["seq"]) - _NUMBERS // 2
        for row in sorted(group, key=lambda row: (int(row["seq"]) - middle) % _NUMBERS):
            sent.setdefault(row["hash"], us)
    return sent


def _overtaken(numbers: list[int]) -> int:
    """How many went after one with a greater number."""
    latest, behind = -1, 0
    for number in numbers:
        behind += number < latest
        latest = max(latest, number)
    return behind
