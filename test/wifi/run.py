#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs an application over a real 802.11 stack, with PEMI on the access point or without."""

from __future__ import annotations

import sys

import bed  # noqa: F401 # finds the Mininet testbed's modules
from bed import options, series
from testbed import program
from testbed.measure import result


def main() -> int:
    plan = options.parse()
    return program.exit_code("run.py", lambda: _run(plan))


def _run(plan: options.Plan) -> int:
    runs = series.run_all(plan.setups, jobs=plan.jobs, keep=plan.keep)
    document = series.document(plan.setups, runs)
    if plan.json is not None:
        result.write_json(plan.json, document)
    return 0


if __name__ == "__main__":
    sys.exit(main())
