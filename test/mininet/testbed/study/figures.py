# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables of an experiment: medians of the runs beside what was published."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..measure.result import Run
from .plan import Check, Point, Table

Record = tuple[Point, Run]


@dataclass(frozen=True)
class Figure:
    """One number of a table: the median of these runs."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Of the seeds."""
        return statistics.median(self.values)


@dataclass(frozen=True)
class Row:
    """The same conditions with every assist."""

    values: dict[str, object]
    columns: dict[str, Figure]
    published: dict | None


@dataclass(frozen=True)
class Verdict:
    """What became of a bar."""

    words: str
    rows: int
    # Of the row that is furthest from the bar, or furthest beyond it.
    worst: float | None
    worst_row: dict | None
    missed: int


def rows(table: Table, records: Iterable[Record]) -> list[Row]:
    """Numbers in their order, everything else in that of the experiment."""
    grouped: dict[tuple, dict[str, list[float]]] = {}
    for point, run in records:
        if not matches(point.values, table.where) or point.values["assist"] not in table.columns:
            continue
        value = look_up(run, table.metric)
        if value is None:
            continue
        key = tuple(point.values.get(name) for name in table.rows)
        grouped.setdefault(key, {}).setdefault(str(point.values["assist"]), []).append(value)
    found = []
    orders = [_order([key[axis] for key in grouped]) for axis in range(len(table.rows))]
    for key in sorted(
        grouped, key=lambda key: [of(value) for of, value in zip(orders, key, strict=True)]
    ):
        columns = grouped[key]
        values = dict(zip(table.rows, key, strict=True))
        figures = {name: Figure(tuple(columns[name])) for name in table.columns if name in columns}
        found.append(Row(values, figures, _published(table, values)))
    return found


def _order(values: list[object]) -> Callable[[object], float]:
    if all(isinstance(value, (int, float)) for value in values):
        return lambda value: value
    return list(dict.fromkeys(values)).index


def look_up(run: Run, path: str) -> object:
    """`frame_delay_ms.p50` of the metrics; other parts of a run begin with `/`, as in
    `/inference.recall`."""
    value: object = run if path.startswith("/") else run["metrics"]
    for name in path.removeprefix("/").split("."):
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def matches(values: dict, where: dict) -> bool:
    """Whether these conditions are among those wanted; a list means any of it."""
    return all(
        values.get(name) in (wanted if isinstance(wanted, list) else [wanted])
        for name, wanted in where.items()
    )


def ratio(row: Row, column: str, of: str) -> float | None:
    """One column's median by another's."""
    if column not in row.columns or of not in row.columns or not row.columns[of].median:
        return None
    return row.columns[column].median / row.columns[of].median


def judge(check: Check, found: list[Row]) -> Verdict:
    """Holds a bar against every row it is meant for."""
    bar = check.at_least if check.at_least is not None else check.at_most
    least = check.at_least is not None
    words = f"{check.column} {'≥' if least else '≤'} {bar:g}"
    if check.of:
        words += f" × {check.of}"
    if check.where:
        words += " where " + ", ".join(f"{name} is {_any(of)}" for name, of in check.where.items())
    judged = []
    for row in found:
        if not matches(row.values, check.where):
            continue
        if check.of:
            value = ratio(row, check.column, check.of)
        else:
            value = row.columns[check.column].median if check.column in row.columns else None
        if value is not None:
            judged.append((value, row.values))
    if not judged:
        return Verdict(words, 0, None, None, 0)
    pick = min if least else max
    worst, where = pick(judged, key=lambda one: one[0])
    missed = sum(value < bar if least else value > bar for value, _ in judged)
    return Verdict(words, len(judged), worst, where, missed)


def _published(table: Table, values: dict) -> dict | None:
    for entry in table.published:
        if matches(values, {name: entry[name] for name in table.rows if name in entry}):
            return entry
    return None


def _any(wanted: object) -> str:
    return " or ".join(map(str, wanted)) if isinstance(wanted, list) else str(wanted)
