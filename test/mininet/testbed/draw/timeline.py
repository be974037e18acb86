# SPDX-License-Identifier: GPL-2.0-or-later
"""What happened during one download, made small enough to draw."""

from __future__ import annotations

import json
from pathlib import Path

from ..measure.scoring import Packet

# Points of the curve of delivered bytes; more than a chart is wide would be waste.
_POINTS = 400


def build(packets: list[Packet], events: list[dict]) -> dict[str, object]:
    """Times are seconds since the first packet on the Wi-Fi hop, bytes are those the
    client got for the first time."""
    if not packets:
        return {"end_s": 0, "delivered": [], "losses": [], "repairs": [], "held": []}
    start_us = packets[0].us

    def since_start(us: float) -> float:
        return round((us - start_us) / 1e6, 5)

    seen: set[str] = set()
    losses, repairs = [], []
    arrivals: list[tuple[float, int]] = []
    lost: set[str] = set()
    for packet in packets:
        if packet.dropped:
            lost.add(packet.digest)
            losses.append(since_start(packet.us))
        elif packet.out_us is not None and packet.digest not in seen:
            seen.add(packet.digest)
            arrivals.append((packet.out_us, packet.length))
            if packet.digest in lost:
                repairs.append(since_start(packet.out_us))
    arrivals.sort()
    curve, total = [], 0
    for us, length in arrivals:
        total += length
        curve.append((since_start(us), total))
    step = max(len(curve) // _POINTS, 1)
    return {
        "end_s": curve[-1][0] if curve else 0,
        "delivered": [*curve[::step], *curve[-1:]],
        "losses": losses,
        "repairs": repairs,
        "held": [
            (since_start(begin), since_start(end))
            for begin, end in held_windows(events)
            if begin >= start_us
        ],
    }


def held_windows(events: list[dict]) -> list[tuple[float, float]]:
    """(begin, end) in microseconds, of all flows together."""
    windows, open_since = [], {}
    for event in events:
        flow = (event.get("client"), event.get("server"))
        if event["kind"] == "hold_start":
            open_since.setdefault(flow, event["t_us"])
        elif event["kind"] == "hold_end" and flow in open_since:
            windows.append((open_since.pop(flow), event["t_us"]))
    return windows


def read_events(path: Path) -> list[dict]:
    """The daemon's events file; empty where no daemon ran."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
