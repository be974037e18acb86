#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""All presets, off, with PEMI and with nothing lost: out/wifi/result.json, a page, and the
tables of its part of RESULTS.md."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from pathlib import Path

import bed
from bed import options, presets, report, sections, series, web
from bed.setups import Lab, Setup
from testbed import program
from testbed.loads import apps
from testbed.loads.apps import App
from testbed.measure import result

_OUT = bed.ROOT / "out/wifi"
# Of the whole study of the ordinary guest; what is less or another goes to _OUT.
_RESULTS = bed.ROOT / "test/wifi/RESULTS.md"
# So many that the whole takes less than half an hour of two cores.
_SEEDS = 5
# 10 Mbit/s are 1.6 s of that.
_BYTES = 2_000_000
_CALL_S = 6


def main() -> int:
    default = Lab()
    parser = argparse.ArgumentParser(prog="study.py", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, downloads with quinn only")
    names = list(presets.read())
    parser.add_argument(
        "--preset", action="append", choices=names, help="only this one; may be repeated"
    )
    parser.add_argument("--seeds", type=int, help=f"of the air (default: {_SEEDS})")
    parser.add_argument("--kernel", choices=options.KERNELS, default=default.kernel)
    parser.add_argument("--security", choices=options.SECURITIES, default=default.security)
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="guests at a time"
    )
    parser.add_argument("--results", type=Path, help="where the tables go")
    asked = parser.parse_args()
    return program.exit_code(
        "study.py", lambda: _study(asked), "; what was measured is kept, start it again to go on"
    )


def _study(asked: argparse.Namespace) -> int:
    seeds = asked.seeds or (1 if asked.quick else _SEEDS)
    known = presets.read()
    chosen = [known[name] for name in asked.preset or known]
    guest = {"kernel": asked.kernel, "security": asked.security}
    # What is built now, whatever becomes of the tree meanwhile.
    made = program.made() | guest | {"commit": report.commit(), "seeds": seeds}
    made["part"] = f"{len(chosen)} of {len(known)} presets"
    parts = _parts(chosen, seeds, quick=asked.quick, **guest)
    measured = series.carry_out(parts, jobs=asked.jobs, cache=_OUT / "runs")
    setups, runs = itertools.chain(*parts), list(itertools.chain(*measured))
    result.write_json(_OUT / "result.json", series.document(setups, runs))
    ordinary = guest == {"kernel": Lab().kernel, "security": Lab().security}
    whole = ordinary and len(chosen) == len(known) and not asked.quick
    tables = asked.results or (_RESULTS if whole else _OUT / "RESULTS.md")
    sections.put(tables, report.markdown(runs, chosen, made))
    result.write_text(_OUT / "index.html", report.page(runs, chosen, made))
    print(f"{tables} and {_OUT / 'index.html'}")
    return 0


def _parts(
    chosen: list[presets.Preset], seeds: int, *, quick: bool, kernel: str, security: str
) -> list[list[Setup]]:
    """A boot for each preset and seed: more seeds leave those alone that are measured. Seed by
    seed, so that there is a whole table early."""
    # `clean` without PEMI is what its lab can do when nothing fails.
    measured = {preset.surroundings for preset in chosen if preset.name == "clean"}
    lossless = set()
    for preset in chosen:
        if preset.surroundings not in measured:
            measured.add(preset.surroundings)
            lossless.add(preset)
    return [
        [
            Setup(
                lab=options.lab(preset, kernel, security, {}),
                preset=preset,
                app=load,
                assist=assist,
                seed=seed,
            )
            for load, assists in _loads(quick=quick)
            for assist in assists
            # Without failures one seed is much like another.
            if assist != "lossless" or (preset in lossless and seed == 1)
        ]
        for seed in range(1, seeds + 1)
        for preset in chosen
    ]


def _loads(*, quick: bool) -> list[tuple[App, tuple[str, ...]]]:
    """What is done, and with which assists."""
    three = ("off", "pemi", "lossless")
    loads: list[tuple[App, tuple[str, ...]]] = [(apps.goodput(_BYTES, None, 10, "quinn"), three)]
    if not quick:
        loads += [
            (apps.goodput(_BYTES, None, 10, "quicgo"), three),
            (apps.rtc(_CALL_S, 30, 3000, None, "quinn"), three),
            # What the client sends PEMI does not help; it must not harm it either.
            (apps.media(_CALL_S, 240, 20), ("off", "pemi")),
            # PEMI leaves TCP alone.
            (web.http(_BYTES, None, 10), ("off",)),
        ]
    return loads


if __name__ == "__main__":
    sys.exit(main())
