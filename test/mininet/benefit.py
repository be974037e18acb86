#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `pemi benefit` says after some downloads, beside the truth: as many downloads that are all
helped, and as many without help, which an owner's router cannot have."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from testbed import comparison, program, series
from testbed.measure import quotient, result
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
    size = comparison.Size(options.flows, options.truth, options.bytes, options.control_percent)
    ((_, runs),) = series.run_all(comparison.plan(scenario, size, CC, options.seed))
    return quotient.beside_the_truth(*runs), runs


if __name__ == "__main__":
    sys.exit(main())
