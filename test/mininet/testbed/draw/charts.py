# SPDX-License-Identifier: GPL-2.0-or-later
"""The drawings of the demo page and of the README."""

from __future__ import annotations

from collections.abc import Sequence

from ..loads.apps import human_bytes
from .demodata import Call, Download
from .svg import Drawing, linear, logarithmic, nice_ticks, round_up

_LEFT, _RIGHT, _BOTTOM = 40, 12, 40
NAMES = {"off": "PEMI off", "on": "PEMI on", "ref": "no loss at all"}


def goodput_bars(
    downloads: Sequence[Download], width: float, height: float = 300, *, keys: bool = False
) -> Drawing:
    """Two bars a size and the lossless run as the line they are measured against.
    `keys` puts the legend into the drawing."""
    label = "Goodput by size of the download, with PEMI off and on"
    drawing = Drawing(width, height, label)
    values = [v for d in downloads for v in (d.lossless, *d.off, *d.on) if v]
    top, bottom = 34, height - _BOTTOM
    ticks = nice_ticks(max(values, default=10), 5)
    y = linear(0, ticks[-1], bottom, top)
    _rows(drawing, ticks, y, width, "{:g}")
    drawing.text(4, 14, "Mbit/s", "muted")
    if keys:
        _keys(drawing, width)
    group = (width - _LEFT - _RIGHT) / max(len(downloads), 1)
    bar = min(group * 0.33, 76)
    for index, download in enumerate(downloads):
        middle = _LEFT + group * (index + 0.5)
        for kind, runs, left in (
            ("off", download.off, middle - bar - 2),
            ("on", download.on, middle + 2),
        ):
            value = download.median(runs)
            if value is None:
                continue
            tip = f"{NAMES[kind]}, {human_bytes(download.size)}: {value:.2f} Mbit/s"
            if len(runs) > 1:
                tip += f" (median of {len(runs)}, {min(runs):.2f} to {max(runs):.2f})"
            drawing.rect(left, y(value), bar, bottom - y(value), kind, tip, r=2)
            if len(runs) > 1:
                drawing.line(left + bar / 2, y(min(runs)), left + bar / 2, y(max(runs)), "range")
            highest = max(value, *runs)
            if download.lossless and kind == "on":
                highest = max(highest, download.lossless)
            drawing.text(left + bar / 2, y(highest) - 6, f"{value:.1f}", "strong", "middle")
        if download.lossless:
            at = y(download.lossless)
            drawing.line(middle - bar - 8, at, middle + bar + 8, at, "line ref")
        drawing.text(middle, height - 14, human_bytes(download.size), anchor="middle")
    drawing.line(_LEFT, bottom, width - _RIGHT, bottom, "axis")
    return drawing


def delay_distribution(call: Call, width: float, height: float = 290) -> Drawing:
    """The share of frames that were there within so many milliseconds."""
    drawing = Drawing(width, height, "Distribution of the frame delay, with PEMI off and on")
    top, bottom = 34, height - _BOTTOM - 14
    every = [*call.off, *call.on, *call.lossless]
    low = 10 if min(every, default=30) >= 10 else 1
    high = round_up(max(every, default=1000))
    x = logarithmic(low, high, _LEFT, width - _RIGHT - 8)
    y = linear(0, 100, bottom, top)
    _rows(drawing, [0, 25, 50, 75, 100], y, width, "{:g}")
    drawing.text(4, 14, "% of frames", "muted")
    edge = low
    while edge <= high:
        drawing.line(x(edge), top, x(edge), bottom, "grid")
        words = f"{edge / 1000:g} s" if edge >= 1000 else f"{edge:g} ms"
        drawing.text(x(edge), bottom + 18, words, "muted", "middle")
        edge *= 10
    drawing.text((_LEFT + width) / 2, height - 8, "frame delay", "muted", "middle")
    for kind, delays, frames in (
        ("ref", call.lossless, call.frames_lossless),
        ("off", call.off, call.frames_off),
        ("on", call.on, call.frames_on),
    ):
        drawing.path(_steps(delays, frames, x, y), f"line {kind}", NAMES[kind])
    drawing.line(_LEFT, bottom, width - _RIGHT, bottom, "axis")
    return drawing


def _steps(delays, frames, x, y) -> list[tuple[float, float]]:
    """The curve of a distribution. Frames that never came keep it from 100 %."""
    ordered = sorted(delays)
    if not ordered:
        return []
    total = max(frames, len(ordered))
    stride = max(len(ordered) // 500, 1)
    points = [(x(ordered[0]), y(0))]
    for index in [*range(0, len(ordered), stride), len(ordered) - 1]:
        points.append((x(ordered[index]), y(100 * (index + 1) / total)))
    return points


def download_timeline(off: dict, on: dict, width: float, height: float = 400) -> Drawing:
    """Bytes delivered over time, and below what the router did about the losses."""
    drawing = Drawing(width, height, "One download over time, with PEMI off and on")
    strips = (
        ("lost", on["losses"], "loss", "lost on the Wi-Fi hop, PEMI on"),
        ("repaired", on["repairs"], "on", "a copy arrived, PEMI on"),
        ("held", on["held"], "held", "acknowledgements held, PEMI on"),
        ("lost (off)", off["losses"], "off", "lost on the Wi-Fi hop, PEMI off"),
    )
    left, strip = 74, 28
    top, axis = 34, height - 44
    bottom = axis - strip * len(strips) - 14
    end = max(off["end_s"], on["end_s"], 0.1)
    ticks = nice_ticks(end, 8 if width > 500 else 4)
    x = linear(0, end, left, width - _RIGHT)
    most = max((t for run in (off, on) for _, t in run["delivered"]), default=1) / 1e6
    rows = nice_ticks(most, 5)
    y = linear(0, rows[-1], bottom, top)
    for tick in ticks:
        if tick <= end:
            drawing.line(x(tick), top, x(tick), axis, "grid")
            drawing.text(x(tick), axis + 17, f"{tick:g}", "muted", "middle")
    _rows(drawing, rows, y, width, "{:g}", left)
    drawing.text(4, 14, "MB that reached the client", "muted")
    drawing.text((left + width) / 2, height - 8, "seconds", "muted", "middle")
    for kind, run in (("off", off), ("on", on)):
        curve = [(x(t), y(total / 1e6)) for t, total in run["delivered"]]
        drawing.path(curve, f"line {kind}", f"{NAMES[kind]}: done after {run['end_s']:.1f} s")
    for index, (name, times, css, tip) in enumerate(strips):
        at = bottom + 14 + strip * index
        drawing.text(left - 8, at + 15, name, "muted", "end", 12)
        for time in times:
            begin, finish = time if css == "held" else (time, time)
            words = f"{tip}: {begin:.3f} s"
            if css == "held":
                words += f", for {(finish - begin) * 1000:.1f} ms"
            drawing.rect(x(begin), at + 3, max(x(finish) - x(begin), 1.6), strip - 10, css, words)
    drawing.line(left, axis, width - _RIGHT, axis, "axis")
    return drawing


def _rows(drawing, ticks, y, width, form, left: float = _LEFT) -> None:
    for tick in ticks:
        drawing.line(left, y(tick), width - _RIGHT, y(tick), "grid")
        drawing.text(left - 8, y(tick) + 4, form.format(tick), "muted", "end")


def _keys(drawing: Drawing, width: float) -> None:
    at = width - _RIGHT - 330
    for kind, room in (("off", 95), ("on", 95)):
        drawing.rect(at, 4, 14, 11, kind, r=2)
        drawing.text(at + 20, 14, NAMES[kind])
        at += room
    drawing.line(at + 4, 10, at + 30, 10, "line ref")
    drawing.text(at + 37, 14, NAMES["ref"])
