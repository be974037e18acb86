#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Downloads in real time over links of several rates: measured.json, which the simulator is held
against (`sim real`)."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from pathlib import Path

from testbed import cli, program, series
from testbed.draw.progress import Progress
from testbed.measure import result
from testbed.measure.result import Run
from testbed.setups import Setup
from testbed.study import carry
from testbed.world.scenario import Scenario

_FILE = Path(__file__).with_name("measured.json")
# WAN and Wi-Fi in Mbit/s, and megabytes. At 10 Mbit/s packets are a millisecond apart, and at 100
# no further than replies are late.
_PATHS = ((10, 20, 10), (50, 100, 20), (50, 150, 20), (100, 200, 20), (100, 300, 20))
_STACKS = ("quinn", "quicgo")
_ASSISTS = ("off", "pemi", "lossless")
_DELAYS = ("--delay1", "1", "--delay2", "10")
_LOSS = 1.0
# Without help a download takes up to ten times as long and differs little from the next one; a
# faster hop changes nothing of it, so it is measured with one.
_SEEDS, _SEEDS_OFF = 5, 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="measured.py", description=__doc__)
    parser.add_argument("--out", type=Path, default=_FILE)
    parser.add_argument("--seeds", type=int, default=_SEEDS, help="with help, and without losses")
    parser.add_argument("--seeds-off", type=int, default=_SEEDS_OFF, help="without help")
    parser.add_argument("--wan", type=int, nargs="+", metavar="MBIT", help="only these rates")
    parser.add_argument("--stack", nargs="+", choices=_STACKS, default=_STACKS)
    parser.add_argument(
        "--again",
        nargs="+",
        choices=_ASSISTS,
        help="only these rows of a file that has all: `pemi` where only the daemon has changed",
    )
    asked = parser.parse_args()
    return program.exit_code("measured.py", lambda: _measure(asked))


def _measure(asked: argparse.Namespace) -> int:
    series.require_root()
    rows = (
        {place(row): row for row in json.loads(asked.out.read_text())["rows"]}
        if asked.again
        else {}
    )
    cells = plan(asked)
    setups = [setup for _, part in cells for setup in part]
    for setup in setups:
        setup.check()
    progress = Progress([setup.expected_s for setup in setups])
    try:
        for assist, part in cells:
            runs = [_run(setup, progress) for setup in part]
            one = row(assist, part[0].scenario, runs)
            rows[place(one)] = one
            # What there is stays if the next one fails.
            result.write_json(asked.out, {"made": program.made(), "rows": list(rows.values())})
    finally:
        progress.clear()
    return 0


def plan(asked: argparse.Namespace) -> list[tuple[str, list[Setup]]]:
    """What is run for each row."""
    paths = [path for path in _PATHS if not asked.wan or path[0] in asked.wan]
    cells = []
    for path, stack in itertools.product(paths, asked.stack):
        first = next(other for other in paths if other[0] == path[0]) == path
        seeds = {"off": asked.seeds_off * first, "pemi": asked.seeds, "lossless": asked.seeds}
        wanted = {name: n for name, n in seeds.items() if n and name in (asked.again or _ASSISTS)}
        cells += [(name, _setups(path, stack, name, n)) for name, n in wanted.items()]
    return cells


def place(row: dict) -> tuple:
    """Of which path, stack and help it is."""
    return tuple(row[name] for name in ("assist", "stack", "wan_mbit", "wifi_mbit"))


def _setups(path: tuple[int, int, int], stack: str, assist: str, seeds: int) -> list[Setup]:
    wan, wifi, megabytes = path
    loss = 0.0 if assist == "lossless" else _LOSS
    words = [
        *("--bw2", str(wan), "--bw1", str(wifi), "--loss1", str(loss), *_DELAYS),
        *("--pemi" if assist == "pemi" else "--off", "--seeds", str(seeds)),
        *("goodput", "--bytes", f"{megabytes}MB", "--stack", stack),
    ]
    return cli.plan(words).setups


def _run(setup: Setup, progress: Progress) -> Run:
    progress.begin(f"{setup.scenario.bw2:g} Mbit/s: {series.describe(setup)}")
    run = carry.undisturbed(setup, None, progress.tick)
    progress.end(result.headline(run))
    return run


def row(assist: str, scenario: Scenario, runs: list[Run]) -> dict:
    """What the simulator needs to do the same, and what came of it here."""
    return {
        "assist": assist,
        "stack": runs[0]["stack"],
        "cc": runs[0]["cc"],
        "bytes": runs[0]["bytes"],
        "loss_percent": scenario.loss1,
        "wan_mbit": scenario.bw2,
        "wan_delay_ms": scenario.delay2,
        "wifi_mbit": scenario.bw1,
        "wifi_delay_ms": scenario.delay1,
        "wifi_queue_bytes": scenario.wifi.queue_bytes,
        "runs": [_figures(run) for run in runs],
    }


def _figures(run: Run) -> dict:
    wifi, wan = run["links"]["wifi"], run["links"]["wan"]
    copies = run["inference"]["copies"] if run["inference"] else 0
    return {
        "seed": run["seed"],
        "goodput_mbps": round(run["metrics"]["goodput_mbps"], 3),
        "packets": wifi["down"]["packets"] - copies,
        "copies": copies,
        "lost": wifi["down"]["lost"],
        # What the sender took for lost beyond what was dropped before the router.
        "told": max(run["sender"]["lost"] - wan["down"]["queue_dropped"], 0),
        "replies": wifi["up"]["packets"],
    }


if __name__ == "__main__":
    sys.exit(main())
