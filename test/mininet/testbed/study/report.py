# SPDX-License-Identifier: GPL-2.0-or-later
"""An experiment's page, its figures as JSON and its tables for the terminal."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from html import escape

from ..draw import html
from ..draw import table as text_table
from .carry import LATE_US, STILL_S, Failure, disturbed, judged
from .figures import Record, Row, Verdict, judge, ratio, rows
from .plan import LOSSLESS, Plan, Table
from .plots import number, plots


def tables(plan: Plan, records: Sequence[Record]) -> list[tuple[Table, list[Row], list[Verdict]]]:
    """Everything that is computed from the runs, once."""
    found = []
    for table in plan.tables:
        of_table = rows(table, records)
        # A smaller size may leave a table's conditions out altogether.
        if of_table:
            found.append((table, of_table, [judge(check, of_table) for check in table.checks]))
    return found


def page(plan: Plan, records: Sequence[Record], failures: Sequence[Failure], made: dict) -> str:
    """One HTML file."""
    parts = [f"<h1>{escape(plan.title)}</h1>", f"<p>{escape(plan.question)}</p>"]
    if plan.source:
        parts.append(f'<p class="soft">Published: {escape(plan.source)}</p>')
    for table, found, verdicts in tables(plan, records):
        drawings = plots(table, found, records)
        first, *others = drawings or [None]
        after = html.table(head(table), cells(table, found)) + _verdicts(verdicts)
        words = f"{table.words} Medians of the seeds; in brackets the lowest and the highest."
        if first is None:
            parts.append(html.section(table.title, words.strip(), [], None, after))
            continue
        title = f"{table.title}: {first.title}" if others else table.title
        last = "" if others else after
        parts.append(html.section(title, words.strip(), first.keys, first.draw, last))
        for index, plot in enumerate(others, 2):
            last = after if index == len(drawings) else ""
            title = f"{table.title}: {plot.title}"
            parts.append(html.section(title, "", plot.keys, plot.draw, last))
    gave_up, failed = judged(failures, records)
    parts += _section(gave_up, "Runs in which the client gave up, also without help")
    parts += _section(failed, "Runs that failed")
    parts.append(_footer(plan, records, made))
    return html.document(plan.title, "\n".join(parts))


def _section(failures: Sequence[Failure], title: str) -> list[str]:
    if not failures:
        return []
    items = "".join(f"<li>{escape(_failure(failure))}</li>" for failure in failures)
    return [f"<section><h2>{title}</h2><ul>{items}</ul></section>"]


def document(
    plan: Plan, records: Sequence[Record], failures: Sequence[Failure], made: dict
) -> dict[str, object]:
    """The same for programs, with every run in full."""
    gave_up, failed = judged(failures, records)
    return {
        "experiment": plan.name,
        "size": plan.size,
        "made": made,
        "tables": [
            {
                "title": table.title,
                "metric": table.metric,
                "unit": table.unit,
                "rows": [
                    {
                        "values": row.values,
                        "medians": {name: fig.median for name, fig in row.columns.items()},
                        "published": row.published,
                    }
                    for row in found
                ],
                "checks": [asdict(verdict) for verdict in verdicts],
            }
            for table, found, verdicts in tables(plan, records)
        ],
        "runs": [
            {"values": point.values, "command": list(point.command), "run": run}
            for point, run in records
        ],
        "disturbed": sum(disturbed(run) for _, run in records),
        "gave_up": [_failure(failure) for failure in gave_up],
        "failures": [_failure(failure) for failure in failed],
    }


def text(plan: Plan, records: Sequence[Record]) -> str:
    """The tables, and which bars were held."""
    parts = []
    for table, found, verdicts in tables(plan, records):
        parts.append(f"\n{table.title} ({table.unit})\n")
        parts.append(text_table.text(head(table), cells(table, found)))
        parts += [f"  {_verdict(verdict)}" for verdict in verdicts]
    return "\n".join([*parts, *filter(None, [_disturbed(records)])])


def head(table: Table) -> list[str]:
    """Axes, measured columns, ratios, what was published."""
    names = [*table.rows, *table.columns]
    names += [f"{column} / {other}" for column, other in _ratios(table)]
    return [*names, "published"] if table.published else names


def cells(table: Table, found: Sequence[Row]) -> list[list[str]]:
    """As `head` names them."""
    lines = []
    for row in found:
        line = [str(row.values[axis]) for axis in table.rows]
        for column in table.columns:
            figure = row.columns.get(column)
            if figure is None:
                line.append("-")
                continue
            words = number(figure.median)
            if len(figure.values) > 1:
                words += f" ({number(min(figure.values))}..{number(max(figure.values))})"
            line.append(words)
        ratios = [ratio(row, column, other) for column, other in _ratios(table)]
        line += ["-" if value is None else f"{value:.2f}" for value in ratios]
        if table.published:
            line.append(_published(row.published))
        lines.append(line)
    return lines


def _ratios(table: Table) -> list[tuple[str, str]]:
    """Which column is shown as a part of which."""
    whole = [name for name in ("off", LOSSLESS) if name in table.columns and table.ratios]
    assisted = [column for column in table.columns if column not in ("off", LOSSLESS)]
    return [(column, other) for other in whole for column in assisted]


def _published(entry: dict | None) -> str:
    if entry is None:
        return ""
    words = [entry["note"]] if "note" in entry else []
    if "off" in entry and "on" in entry:
        words.insert(0, f"{entry['off']:g} → {entry['on']:g} ({entry['on'] / entry['off']:.2f})")
    return ", ".join(words)


def _verdicts(verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    items = "".join(f"<li>{escape(_verdict(verdict))}</li>" for verdict in verdicts)
    return f'<ul class="soft">{items}</ul>'


def _verdict(verdict: Verdict) -> str:
    if not verdict.rows:
        return f"not measured: {verdict.words}"
    where = ", ".join(f"{name} {value}" for name, value in (verdict.worst_row or {}).items())
    state = "held" if not verdict.missed else f"MISSED in {verdict.missed} of {verdict.rows} rows"
    return f"{state}: {verdict.words}; at worst {verdict.worst:.3g} ({where})"


def _failure(failure: Failure) -> str:
    return f"run.py {shlex.join(failure.point.command)}: {failure.message}"


def _footer(plan: Plan, records: Sequence[Record], made: dict) -> str:
    # One line is enough to see how any of them is repeated.
    example = f"test/mininet/run.py {shlex.join(records[0][0].command)}" if records else ""
    words = (
        f"{len(records)} runs, size {plan.size}, made {made['date']} on {made['machine']}, PEMI "
        f"{made['version']}. Each run with its command line is in result.json beside this page"
    )
    late = _disturbed(records)
    return (
        f"<footer>{escape(words)}; the first: <code>{escape(example)}</code>"
        f"{escape(f'. {late}' if late else '')}</footer>"
    )


def _disturbed(records: Sequence[Record]) -> str:
    late = sum(disturbed(run) for _, run in records)
    if not late:
        return ""
    return (
        f"In {late} of {len(records)} runs the links were more than {LATE_US / 1000:g} ms late at "
        f"the 99th percentile, or everything stood still for {STILL_S:g} s, in the best of several "
        "tries: something else kept the machine busy"
    )
