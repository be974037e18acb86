#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs an application across a lossy Wi-Fi hop, with PEMI on the router or without."""

from __future__ import annotations

import sys

from testbed import cli, program, series
from testbed.measure import result


def main() -> int:
    plan = cli.parse()
    return program.exit_code("run.py", lambda: _run(plan))


def _run(plan: cli.Plan) -> int:
    results = series.run_all(plan.setups, keep=plan.keep)
    if plan.json is not None:
        result.write_json(plan.json, result.document(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
