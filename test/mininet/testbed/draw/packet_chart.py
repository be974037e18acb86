# SPDX-License-Identifier: GPL-2.0-or-later
"""The packets of a run as a time line: each one a line from hop to hop."""

from __future__ import annotations

from collections.abc import Sequence

from ..measure.packets import POINTS, Packet
from .svg import Drawing, linear, nice_ticks

_LEFT, _RIGHT, _TOP, _BOTTOM = 92, 14, 26, 42
# From the server above to the client below.
_HEIGHTS = {"server": 0.0, "router_wan": 0.42, "router_wifi": 0.58, "client": 1.0}
_NAMES = {
    "server": "server",
    "router_wan": "router, WAN",
    "router_wifi": "Wi-Fi",
    "client": "client",
}


def draw(
    packets: Sequence[Packet],
    held_us: Sequence[tuple[float, float]],
    start_s: float,
    end_s: float | None,
    width: float = 1400,
    height: float = 520,
) -> Drawing:
    """Blue goes down, green up; orange was lost, violet is the copy that replaced it, dashed
    one that was not needed; boxes are times in which replies were held."""
    drawing = Drawing(width, height, "Packets from hop to hop over time")
    first = min((min(packet.at.values()) for packet in packets), default=0.0)
    last = max((max(packet.at.values()) for packet in packets), default=0.0)
    end_s = (last - first) / 1e6 if end_s is None else end_s
    x = linear(start_s, end_s, _LEFT, width - _RIGHT)
    y = linear(0, 1, _TOP, height - _BOTTOM)

    def at(us: float) -> float:
        return x((us - first) / 1e6)

    for point, level in _HEIGHTS.items():
        drawing.line(_LEFT, y(level), width - _RIGHT, y(level), "grid")
        drawing.text(_LEFT - 8, y(level) + 4, _NAMES[point], "muted", "end")
    for tick in nice_ticks(end_s - start_s, 10):
        if start_s + tick <= end_s:
            drawing.text(x(start_s + tick), height - 20, f"{start_s + tick:g}", "muted", "middle")
    drawing.text((_LEFT + width) / 2, height - 4, "seconds", "muted", "middle")
    for begin, finish in held_us:
        if start_s <= (begin - first) / 1e6 <= end_s:
            band = y(_HEIGHTS["router_wifi"]) - y(_HEIGHTS["router_wan"])
            words = f"replies held for {(finish - begin) / 1000:.1f} ms"
            top = y(_HEIGHTS["router_wan"])
            drawing.rect(at(begin), top, max(at(finish) - at(begin), 1), band, "held", words)
    for packet in packets:
        times = list(packet.at.values())
        if start_s <= (times[0] - first) / 1e6 <= end_s:
            _packet(drawing, packet, at, y)
    return drawing


def _packet(drawing: Drawing, packet: Packet, at, y) -> None:
    points = POINTS[packet.direction]
    # A lost packet ends half-way to where it was going.
    path = [(at(packet.at[point]), y(_HEIGHTS[point])) for point in points if point in packet.at]
    tip = f"{packet.direction} {packet.number}, {packet.length} bytes: {packet.fate}"
    lost = packet.fate == "repaired" or packet.fate.endswith((" lost", " queue"))
    css = "line off" if lost else "line hair c0" if packet.direction == "down" else "line hair c2"
    if packet.fate == "repaired":
        path = path[:3]
    if lost:
        seen = [point for point in points if point in packet.at][: len(path)]
        level = _HEIGHTS[seen[-1]]
        toward = _HEIGHTS[points[len(seen)]] if len(seen) < len(points) else level
        path.append((path[-1][0] + 2, y((level + toward) / 2)))
    drawing.path(path, css, tip)
    for us, needed in packet.copies:
        below = y(_HEIGHTS["router_wifi"]), y(_HEIGHTS["client"])
        arrival = at(packet.at["client"]) if needed and "client" in packet.at else at(us) + 1
        words = f"copy of {packet.number}, {'needed' if needed else 'not needed'}"
        css = "line c3" if needed else "line ref hair"
        drawing.path([(at(us), below[0]), (arrival, below[1])], css, words)
