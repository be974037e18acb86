#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What each preset does to a stream of packets: measured.json, which the emulated hop is held
against."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import bed
from bed import options, presets, series, setups
from testbed import program
from testbed.loads.apps import App
from testbed.measure import result

_FILE = bed.ROOT / "test/wifi/measured.json"
# 8 Mbit/s in bursts, as a sender that is paced by its WAN's queue.
_RATE, _BURST, _SECONDS = 800, 8, 10
# Where that is more than the air carries, the sender's socket would decide the delay.
_RATES = {"far": 300}
# One move in 4 s: enough of them to tell what they are like.
_LONGER = {"roam": 60}
_SEED = 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="measured.py", description=__doc__)
    parser.add_argument(
        "--jobs", type=int, default=len(os.sched_getaffinity(0)), help="guests at a time"
    )
    parser.add_argument("--out", type=Path, default=_FILE)
    asked = parser.parse_args()
    return program.exit_code("measured.py", lambda: _measure(asked))


def _measure(asked: argparse.Namespace) -> int:
    # Each in a guest of its own, so that none depends on what else is measured.
    parts = [
        [setups.Setup(options.lab(preset, "6.1", "open", {}), preset, _stream(name), "off", _SEED)]
        for name, preset in presets.read().items()
    ]
    boots = series.carry_out(parts, jobs=asked.jobs, cache=bed.ROOT / "out/wifi/runs")
    found = [
        {"preset": run["preset"], "seed": run["seed"], "seconds": _seconds(run["preset"])}
        | run["metrics"]
        for (run,) in boots
    ]
    result.write_json(asked.out, found)
    return 0


def _stream(name: str) -> App:
    return setups.probe(_seconds(name), _RATES.get(name, _RATE), _BURST)


def _seconds(name: str) -> int:
    return _LONGER.get(name, _SECONDS)


if __name__ == "__main__":
    sys.exit(main())
