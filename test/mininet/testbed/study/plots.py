# SPDX-License-Identifier: GPL-2.0-or-later
"""The drawings of an experiment's report."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..draw.svg import Drawing, linear, logarithmic, nice_ticks, round_up
from .figures import Record, Row, look_up, matches
from .plan import LOSSLESS, Table

_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 34, 44
# A curve needs no more points than a drawing is wide.
_POINTS = 400
# CSS classes of svg.STYLE by what the router does; others take the next free colour.
_CSS = {"off": "off", "pemi": "on", LOSSLESS: "ref"}
# The colours of these are among the others, too.
_SAME = {"off": "c1", "pemi": "c0"}
_COLOURS = ("c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7")


@dataclass(frozen=True)
class Plot:
    """A drawing for any width, and the keys of its colours (CSS class, name)."""

    title: str
    keys: list[tuple[str, str]]
    draw: Callable[[float], Drawing]


def plots(table: Table, found: Sequence[Row], records: Sequence[Record]) -> list[Plot]:
    """None for a table without any, one for each value of the first axis if there are
    more bars than can be told apart."""
    if table.plot == "lines":
        return [_lines(table, found)]
    if table.plot == "cdf":
        return [_distribution(table, records)]
    if table.plot != "bars":
        return []
    if len(found) <= 6 or len(table.rows) < 2:
        return [_bars(table, found, table.rows, "")]
    first, *others = table.rows
    values = list(dict.fromkeys(row.values[first] for row in found))
    return [
        _bars(
            table, [row for row in found if row.values[first] == value], others, name(first, value)
        )
        for value in values
    ]


def name(axis: str, value: object) -> str:
    """A value of an axis, for people."""
    units = {"loss1": "% loss", "loss2": "% WAN loss", "delay2": "ms WAN", "delay1": "ms Wi-Fi"}
    units |= {"bw1": "Mbit/s Wi-Fi", "bw2": "Mbit/s WAN", "seconds": "s"}
    return f"{value} {units[axis]}" if axis in units else str(value)


def _bars(table: Table, found: Sequence[Row], axes: Sequence[str], title: str) -> Plot:
    columns = [column for column in table.columns if column != LOSSLESS]
    css = colours(columns)
    keys = [(css[column], column) for column in columns]
    if LOSSLESS in table.columns:
        keys.append(("ref", "nothing lost"))

    def draw(width: float) -> Drawing:
        height = 280
        drawing = Drawing(width, height, f"{table.title} {title}".strip())
        values = [
            value for row in found for figure in row.columns.values() for value in figure.values
        ]
        bottom = height - _BOTTOM
        ticks = nice_ticks(max(values, default=1), 5)
        y = linear(0, ticks[-1], bottom, _TOP)
        _grid(drawing, ticks, y, width)
        drawing.text(4, 14, table.unit, "muted")
        group = (width - _LEFT - _RIGHT) / max(len(found), 1)
        bar = min(group * 0.8 / max(len(columns), 1), 64)
        for index, row in enumerate(found):
            middle = _LEFT + group * (index + 0.5)
            label = ", ".join(name(axis, row.values[axis]) for axis in axes)
            for place, column in enumerate(columns):
                if column not in row.columns:
                    continue
                figure = row.columns[column]
                left = middle + bar * (place - len(columns) / 2)
                tip = f"{column}, {label}: {number(figure.median)} {table.unit}"
                drawing.rect(
                    left + 1,
                    y(figure.median),
                    bar - 2,
                    bottom - y(figure.median),
                    css[column],
                    tip,
                    2,
                )
                if len(figure.values) > 1:
                    x = left + bar / 2
                    drawing.line(x, y(min(figure.values)), x, y(max(figure.values)), "range")
            if LOSSLESS in row.columns:
                at = y(row.columns[LOSSLESS].median)
                half = bar * len(columns) / 2 + 4
                drawing.line(middle - half, at, middle + half, at, "line ref")
            words = ", ".join(str(row.values[axis]) for axis in axes)
            drawing.text(middle, height - 20, words, anchor="middle", size=11 if group < 90 else 13)
        drawing.text(width / 2, height - 4, ", ".join(axes), "muted", "middle", 11)
        drawing.line(_LEFT, bottom, width - _RIGHT, bottom, "axis")
        return drawing

    return Plot(title, keys, draw)


def _lines(table: Table, found: Sequence[Row]) -> Plot:
    x_axis = table.x or table.rows[-1]
    others = [axis for axis in table.rows if axis != x_axis]
    series: dict[str, list[tuple[float, float]]] = {}
    for row in found:
        for column, figure in row.columns.items():
            label = ", ".join([*(name(axis, row.values[axis]) for axis in others), column])
            series.setdefault(label, []).append((float(str(row.values[x_axis])), figure.median))
    css = colours(series)

    def draw(width: float) -> Drawing:
        height = 300
        drawing = Drawing(width, height, table.title)
        bottom = height - _BOTTOM
        every = [point for points in series.values() for point in points]
        right = max((x for x, _ in every), default=1)
        rows, steps = (
            nice_ticks(max((v for _, v in every), default=1), 5),
            nice_ticks(right or 1, 6),
        )
        x = linear(0, steps[-1], _LEFT, width - _RIGHT - 10)
        y = linear(0, rows[-1], bottom, _TOP)
        _grid(drawing, rows, y, width)
        drawing.text(4, 14, table.unit, "muted")
        for step in steps:
            drawing.text(x(step), bottom + 18, f"{step:g}", "muted", "middle")
        drawing.text(width / 2, height - 6, x_axis, "muted", "middle")
        for label, points in series.items():
            placed = [(x(at), y(value)) for at, value in sorted(points)]
            drawing.path(placed, f"line {css[label]}", label)
            for (at, level), (_, value) in zip(placed, sorted(points), strict=True):
                tip = f"{label}: {number(value)} {table.unit}"
                drawing.rect(at - 3, level - 3, 6, 6, css[label], tip, 3)
        drawing.line(_LEFT, bottom, width - _RIGHT, bottom, "axis")
        return drawing

    return Plot("", [(css[label], label) for label in series], draw)


def _distribution(table: Table, records: Sequence[Record]) -> Plot:
    """Of all samples of all seeds together."""
    series: dict[str, list[float]] = {}
    for point, run in records:
        if matches(point.values, table.where) and point.values["assist"] in table.columns:
            values = look_up(run, table.samples or "") or []
            words = [name(axis, point.values.get(axis)) for axis in table.rows]
            label = ", ".join([*words, str(point.values["assist"])])
            # A frame that never came has no time; it keeps the curve from the top.
            series.setdefault(label, []).extend(math.inf if v is None else v for v in values)
    css = colours(series)

    def draw(width: float) -> Drawing:
        height = 290
        drawing = Drawing(width, height, f"Distribution: {table.title}")
        bottom = height - _BOTTOM
        finite = [v for values in series.values() for v in values if 0 < v < math.inf]
        low = max(10 ** math.floor(math.log10(min(finite, default=1))), 0.1)
        high = max(round_up(max(finite, default=10)), low * 10)
        x = logarithmic(low, high, _LEFT, width - _RIGHT - 10)
        begin = table.from_percent
        y = linear(begin, 100, bottom, _TOP)
        _grid(drawing, [begin + (100 - begin) * part / 4 for part in range(5)], y, width)
        drawing.text(4, 14, "%", "muted")
        edge = low
        while edge <= high * 1.001:
            drawing.line(x(edge), _TOP, x(edge), bottom, "grid")
            drawing.text(x(edge), bottom + 18, f"{edge:g}", "muted", "middle")
            edge *= 10
        drawing.text(width / 2, height - 6, table.unit, "muted", "middle")
        for label, values in series.items():
            ordered = sorted(values)
            count = len(ordered)
            first = math.floor(count * begin / 100)
            stride = max((count - first) // _POINTS, 1)
            drawing.path(
                [
                    (x(ordered[index]), y(100 * (index + 1) / count))
                    for index in range(first, count)
                    if ordered[index] < math.inf and (index % stride == 0 or index == count - 1)
                ],
                f"line {css[label]}",
                label,
            )
        drawing.line(_LEFT, bottom, width - _RIGHT, bottom, "axis")
        return drawing

    return Plot("", [(css[label], label) for label in series], draw)


def colours(labels: Sequence[str] | dict) -> dict[str, str]:
    """Each label's CSS class."""
    taken = {_SAME[label] for label in labels if label in _SAME}
    free = itertools.cycle(colour for colour in _COLOURS if colour not in taken)
    return {label: _CSS.get(label) or next(free) for label in labels}


def _grid(drawing: Drawing, ticks: Sequence[float], y, width: float) -> None:
    for tick in ticks:
        drawing.line(_LEFT, y(tick), width - _RIGHT, y(tick), "grid")
        drawing.text(_LEFT - 8, y(tick) + 4, f"{tick:g}", "muted", "end")


def number(value: float) -> str:
    """As many digits as say something."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return (
        f"{value:.1f}"
        if abs(value) >= 100
        else f"{value:.2f}"
        if abs(value) < 10
        else f"{value:.1f}"
    )
