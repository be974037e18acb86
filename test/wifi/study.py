#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""All presets, off and with PEMI: out/wifi/result.json, a page, and the tables of RESULTS.md."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import bed
from bed import options, presets, report, series
from bed.setups import Setup
from testbed import program
from testbed.loads import apps
from testbed.measure import result

_OUT = bed.ROOT / "out/wifi"
_RESULTS = bed.ROOT / "test/wifi/RESULTS.md"
# So many that the whole takes less than half an hour of two cores.
_SEEDS = 2


def main() -> int:
    parser = argparse.ArgumentParser(prog="study.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, downloads with quinn only")
    names = list(presets.read())
    parser.add_argument(
        "--preset", action="append", choices=names, help="only this one; may be repeated"
    )
    parser.add_argument("--seeds", type=int, help=f"of the air (default: {_SEEDS})")
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="guests at a time"
    )
    parser.add_argument("--results", type=Path, default=_RESULTS, help="where the tables go")
    asked = parser.parse_args()
    return program.exit_code(
        "study.py", lambda: _study(asked), "; what was measured is kept, start it again to go on"
    )


def _study(asked: argparse.Namespace) -> int:
    seeds = asked.seeds or (1 if asked.quick else _SEEDS)
    known = presets.read()
    chosen = [known[name] for name in asked.preset or known]
    setups = _setups(chosen, seeds, quick=asked.quick)
    runs = series.run_all(setups, jobs=asked.jobs, cache=_OUT / "runs")
    result.write_json(_OUT / "result.json", series.document(setups, runs))
    made = program.made() | {"commit": report.commit(), "seeds": seeds, "kernel": "6.1"}
    made["part"] = f"{len(chosen)} of {len(known)} presets"
    result.write_text(asked.results, report.markdown(runs, chosen, made))
    result.write_text(_OUT / "index.html", report.page(runs, chosen, made))
    print(f"{asked.results} and {_OUT / 'index.html'}")
    return 0


def _setups(chosen: list[presets.Preset], seeds: int, *, quick: bool) -> list[Setup]:
    """By preset, so that the first results are whole rows. What nothing fails on the air can
    do, `lossless`, is what `clean` does without PEMI."""
    loads = [apps.goodput(2_000_000, None, 10, "quinn")]
    if not quick:
        loads += [
            apps.goodput(2_000_000, None, 10, "quicgo"),
            apps.rtc(6, 30, 3000, None, "quinn"),
            apps.rtc(6, 30, 3000, None, "quicgo"),
            apps.media(6, 240, 20),
        ]
    return [
        Setup(
            lab=options.lab(preset, "6.1", "open", {}),
            preset=preset,
            app=load,
            assist=assist,
            seed=seed,
        )
        for preset in chosen
        for load in loads
        for seed in range(1, seeds + 1)
        for assist in ("off", "pemi")
    ]


if __name__ == "__main__":
    sys.exit(main())
