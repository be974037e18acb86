# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment as a file: which runs it is made of, and what its report shows.

Each point of an experiment is a command line of run.py, so that it can be tried alone,
and so that options are checked where they are known.
"""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import cli
from ..setups import Setup

SIZES = ("full", "quick", "smallest")
LOSSLESS = "lossless"
# What run.py takes after the application's name.
_APP_OPTIONS = ("stack", "bytes", "seconds", "fps", "kbps", "count", "interval_ms")
_KEYS = {
    "": {"title", "source", "question", "links", "cells", "tables", *SIZES},
    "tables": {
        *("title", "words", "app", "where", "metric", "unit", "better", "rows", "columns"),
        *("plot", "x", "samples", "from_percent", "ratios", "published", "checks"),
    },
    "checks": {"column", "of", "where", "at_least", "at_most"},
}


class PlanError(Exception):
    """An experiment's file makes no sense; the message names file and place."""


@dataclass(frozen=True)
class Check:
    """A bar: one column of a table against another, or against a number."""

    column: str
    of: str | None
    where: dict
    at_least: float | None
    at_most: float | None


@dataclass(frozen=True)
class Table:
    """One table of the report, with its drawing."""

    title: str
    metric: str
    unit: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    words: str = ""
    better: str = "higher"
    where: dict = field(default_factory=dict)
    # bars | lines (over the axis `x`) | cdf (of the list at `samples`)
    plot: str | None = None
    x: str | None = None
    samples: str | None = None
    # Where the axis of a `cdf` begins.
    from_percent: float = 0
    # Whether the columns are also shown as parts of `off` and `lossless`.
    ratios: bool = True
    published: tuple[dict, ...] = ()
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True)
class Point:
    """One run: what it is called in tables, what it does, and run.py's line for it."""

    values: dict[str, object]
    setup: Setup
    command: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """An experiment in one size."""

    name: str
    size: str
    title: str
    source: str
    question: str
    points: list[Point]
    tables: list[Table]


def names(folder: Path) -> list[str]:
    """The experiments there are."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def read(folder: Path, name: str, size: str, seeds: int | None = None) -> Plan:
    """Reads and checks one; errors are for a person. `seeds` stands in for its own number."""
    path = folder / f"{name}.toml"
    try:
        content = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise PlanError(
            f"there is no experiment {name!r}; there are {', '.join(names(folder))}"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise PlanError(f"{path.name}: {error}") from None
    _known(path, "", content)
    changes = dict(content.get(size, {}))
    usual = changes.pop("seeds", 1)
    seeds = usual if seeds is None else seeds
    points: dict[tuple, Point] = {}
    for index, cells in enumerate(content.get("cells", [])):
        where = f"{path.name}: cells[{index}]"
        # What a smaller size leaves out holds wherever it is there to be left out.
        axes = {**content.get("links", {}), **cells}
        axes |= {key: value for key, value in changes.items() if key in axes}
        for point in _points(where, axes, seeds):
            points.setdefault((point.setup, tuple(point.values.items())), point)
    if not points:
        raise PlanError(f"{path.name}: no [[cells]]: nothing to run")
    return Plan(
        name=name,
        size=size,
        title=content.get("title", name),
        source=content.get("source", ""),
        question=content.get("question", ""),
        points=list(points.values()),
        tables=[
            _table(f"{path.name}: tables[{index}]", table)
            for index, table in enumerate(content.get("tables", []))
        ],
    )


def part(plan: Plan, number: int, of: int) -> Plan:
    """The `number`-th of so many parts, which together have every run once: what several
    machines share among them. Dealt like cards, since neighbours take alike long."""
    setups = list(dict.fromkeys(point.setup for point in plan.points))
    mine = set(setups[number - 1 :: of])
    return replace(plan, points=[point for point in plan.points if point.setup in mine])


def _points(where: str, axes: dict, seeds: int) -> list[Point]:
    if "app" not in axes:
        raise PlanError(f"{where}: `app` is missing")
    assists = _list(axes.pop("assist", "off"))
    names_, values = list(axes), [_list(value) for value in axes.values()]
    return [
        point
        for choice in itertools.product(*values)
        for point in _runs(where, dict(zip(names_, choice, strict=True)), assists, seeds)
    ]


def _runs(where: str, chosen: dict, assists: list[str], seeds: int) -> list[Point]:
    """The seeds of one point with every assist: the same losses for all of them."""
    app = chosen.pop("app")
    before = [word for name in chosen if name not in _APP_OPTIONS for word in _words(name, chosen)]
    after = [word for name in chosen if name in _APP_OPTIONS for word in _words(name, chosen)]
    found = []
    for assist in assists:
        # Nothing is lost there, so there is nothing to help with either.
        flags = ["--off", "--lossless"] if assist == LOSSLESS else [f"--{assist}"]
        flags = " ".join(flags).split()
        line = [*before, *flags, "--seeds", str(seeds), app, *after]
        try:
            setups = cli.plan(line).setups
        except cli.UsageError as error:
            raise PlanError(f"{where}: {error} (run.py {' '.join(line)})") from None
        if assist == LOSSLESS:
            setups = [setup for setup in setups if setup.scenario == setup.scenario.lossless()]
        for setup in setups:
            # run.py's line for this seed alone.
            seed = ["--loss-seed", str(setup.seed)]
            values = {**chosen, "app": app, "seed": setup.seed, "assist": assist.replace(" ", "-")}
            command = (*before, *flags, *seed, app, *after)
            found.append(Point(values=values, setup=setup, command=command))
    return found


def _words(name: str, chosen: dict) -> list[str]:
    value = chosen[name]
    if value is False:
        return []
    return [f"--{name.replace('_', '-')}", *([] if value is True else str(value).split())]


def _table(where: str, table: dict) -> Table:
    _known(where, "tables", table)
    missing = {"title", "metric", "unit", "rows", "columns"} - set(table)
    if missing:
        raise PlanError(f"{where}: {', '.join(sorted(missing))} is missing")
    table = dict(table)
    wanted = table.pop("where", {})
    if "app" in table:
        wanted = {**wanted, "app": table.pop("app")}
    checks = []
    for check in table.pop("checks", []):
        _known(f"{where}: checks", "checks", check)
        checks.append(
            Check(
                column=check["column"],
                of=check.get("of"),
                where=check.get("where", {}),
                at_least=check.get("at_least"),
                at_most=check.get("at_most"),
            )
        )
    for name in ("rows", "columns", "published"):
        table[name] = tuple(table.get(name, ()))
    return Table(where=wanted, checks=tuple(checks), **table)


def _known(where: Path | str, kind: str, content: dict) -> None:
    unknown = set(content) - _KEYS[kind]
    if unknown:
        name = where.name if isinstance(where, Path) else where
        known = ", ".join(sorted(_KEYS[kind]))
        raise PlanError(f"{name}: unknown {', '.join(sorted(unknown))}; there are {known}")


def _list(value: object) -> list:
    return value if isinstance(value, list) else [value]
