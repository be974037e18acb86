#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What repairing exactly what the radio lost is worth, against inferring it, and which bars that
holds: a section of RESULTS.md."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import bed
from bed import bars, options, report, sections, series
from bed.rows import Row, rows
from bed.setups import Lab
from testbed import program
from testbed.measure import result
from testbed.world.process import ExperimentError

_OUT = bed.ROOT / "out/wifi"
# Of all rows in the ordinary guest; what is less or another goes to _OUT.
_RESULTS = bed.ROOT / "test/wifi/RESULTS.md"
_SEEDS = 8
_TITLE = "# What the radio knows, against what can be inferred"


def main() -> int:
    default = Lab()
    parser = argparse.ArgumentParser(prog="radio.py", description=__doc__)
    parser.add_argument(
        "--rows",
        action="append",
        metavar="BEGINNING",
        help="only those whose names begin so, such as 'lossy1 quinn'; may be repeated. There "
        f"are: {', '.join(row.name for row in rows())}",
    )
    parser.add_argument("--seeds", type=int, default=_SEEDS, help="of the air (default: 8)")
    parser.add_argument(
        "--compared",
        type=int,
        metavar="SEEDS",
        help="seeds of what no bar asks for, inferring and mostly `off`, which take the longest "
        "(default: all)",
    )
    parser.add_argument("--kernel", choices=options.KERNELS, default=default.kernel)
    parser.add_argument("--security", choices=options.SECURITIES, default=default.security)
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="guests at a time"
    )
    parser.add_argument("--results", type=Path, help="the file that gets the table")
    asked = parser.parse_args()
    return program.exit_code(
        "radio.py", lambda: _measure(asked), "; what was measured is kept, start it again to go on"
    )


def _measure(asked: argparse.Namespace) -> int:
    every = rows()
    beginnings = tuple(asked.rows or [""])
    chosen = [row for row in every if row.name.startswith(beginnings)]
    if not chosen:
        raise ExperimentError(f"no row begins with {' or '.join(beginnings)}; see radio.py --help")
    made = {**program.made(), "commit": report.commit()}
    # A boot for each row and seed, seed by seed, so that there is a whole table early.
    boots = [(row, seed) for seed in range(1, asked.seeds + 1) for row in chosen]
    compared = asked.compared or asked.seeds
    parts = [row.setups(seed, asked.kernel, asked.security, compared) for row, seed in boots]
    measured = series.carry_out(parts, jobs=asked.jobs, cache=_OUT / "runs")
    found: dict[Row, list[series.Run]] = {row: [] for row in chosen}
    for (row, _), runs in zip(boots, measured, strict=True):
        found[row] += runs
    result.write_json(
        _OUT / "radio.json",
        series.document(
            [setup for part in parts for setup in part], [run for runs in measured for run in runs]
        ),
    )
    ordinary = (asked.kernel, asked.security) == (Lab().kernel, Lab().security)
    whole = ordinary and len(chosen) == len(every)
    results = asked.results or (_RESULTS if whole else _OUT / "RADIO.md")
    seeds = f"seeds 1 to {asked.seeds}" if asked.seeds > 1 else "one seed, which is little,"
    part = f"{len(chosen)} of {len(every)} rows, {seeds} of the air"
    if compared < asked.seeds:
        part += f", `infer` and what no bar compares with {compared}"
    guest = f"Debian's Linux {asked.kernel}, {asked.security}"
    sections.put(results, _text(found, f"{made['date']}, commit {made['commit']}, {guest}; {part}"))
    print(results)
    return 0


def _text(found: dict[Row, list[series.Run]], made: str) -> str:
    lines = [
        _TITLE,
        "",
        f"Figures of `make wifi-radio` on {made}. `off`: nothing on the router; `infer` and "
        "`radio`: with `repair infer` and `repair radio`, TCP with `protocols all`; `lossless`: "
        "nothing fails on the air, one seed. Downloads in Mbit/s, calls in ms; medians. Packets "
        "are sums of the seeds: those that the air lost with `radio`, and what the daemon sent "
        "again. The guest has one processor, which all programs and the air share: where it is "
        "busy all the time, it is what limits the rate.",
        "",
        report.row(bars.HEAD),
        report.row(["---"] * len(bars.HEAD)),
        *[report.row(bars.cells(row, runs)) for row, runs in found.items()],
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
