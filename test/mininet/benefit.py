#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `pemi benefit` says after some downloads, beside the truth: as many downloads that are all
helped, and as many without help, which an owner's router cannot have."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from statistics import median

from testbed import program, series
from testbed.assists.compared import Compared
from testbed.assists.off import Off
from testbed.assists.pemi import Pemi
from testbed.loads.downloads import downloads
from testbed.measure import result
from testbed.measure.quotient import quotient
from testbed.setups import Setup
from testbed.world.scenario import Scenario

CC = "cubic"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loss", type=float, nargs="+", default=[1.0, 0.0], metavar="PERCENT")
    parser.add_argument("--flows", type=int, default=60, help="downloads that are compared")
    parser.add_argument("--truth", type=int, default=60, help="downloads with and without help")
    parser.add_argument("--bytes", type=int, default=1_000_000, help="of each")
    parser.add_argument("--control-percent", type=int, default=25, help="of them left alone")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write everything to this file")
    options = parser.parse_args()
    return program.exit_code("benefit.py", lambda: compare(options))


def compare(options: argparse.Namespace) -> int:
    """The exit code: 1 if a truth is outside of its interval."""
    rows, documents = [], []
    for loss in options.loss:
        row, document = one(loss, options)
        rows.append(row)
        documents.append({"loss_percent": loss, **row, "runs": document})
        where = "in" if row["held"] else "NOT in"
        rates = f"medians {row['on']:.2f} and {row['off']:.2f} Mbit/s, {options.truth} each"
        print(f"{loss:g} % loss: {row['sentence']}")
        print(f"  the truth: {row['truth']:.2f} times ({rates}); it is {where} the interval")
    if options.json:
        result.write_json(options.json, {"made": program.made(), "comparisons": documents})
    return 0 if all(row["held"] for row in rows) else 1


def one(loss: float, options: argparse.Namespace) -> tuple[dict, list[dict]]:
    """A hop that loses so much."""
    scenario = dataclasses.replace(Scenario.from_preset("train"), loss1=loss)

    def load(count: int):
        return downloads(count, options.bytes, CC, scenario.bw2)

    setups = [
        Setup(
            scenario, load(options.flows), Compared(percent=options.control_percent), options.seed
        ),
        # Other losses than those that the comparison has seen.
        Setup(scenario, load(options.truth), Pemi(), options.seed + 1),
        Setup(scenario, load(options.truth), Off(), options.seed + 1),
    ]
    ((_, runs),) = series.run_all(setups)
    told = runs[0]["router"]["benefit"]
    with_help, without = (run["metrics"]["goodputs_mbps"] for run in runs[1:])
    on, off = median(with_help), median(without)
    low, high = told["interval"] or (0, 0)
    truth = quotient(with_help, without)
    row = {
        "sentence": told["sentence"],
        "verdict": told["verdict"],
        "interval": told["interval"],
        "truth": truth,
        "on": on,
        "off": off,
        "held": low <= truth <= high,
    }
    return row, runs


if __name__ == "__main__":
    sys.exit(main())
