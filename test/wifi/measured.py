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
from testbed.measure import result

_FILE = bed.ROOT / "test/wifi/measured.json"
# 8 Mbit/s in bursts, as a sender that is paced by its WAN's queue.
_RATE, _BURST, _SECONDS = 800, 8, 10
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
    stream = setups.probe(_SECONDS, _RATE, _BURST)
    # Each in a guest of its own, so that none depends on what else is measured.
    parts = [
        [setups.Setup(options.lab(preset, "6.1", "open", {}), preset, stream, "off", _SEED)]
        for preset in presets.read().values()
    ]
    boots = series.carry_out(parts, jobs=asked.jobs, cache=bed.ROOT / "out/wifi/runs")
    found = [
        {"preset": run["preset"], "seed": run["seed"], "seconds": _SECONDS} | run["metrics"]
        for (run,) in boots
    ]
    result.write_json(asked.out, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
