#!/usr/bin/python3
"""Runs an application across a lossy Wi-Fi hop, with PEMI on the router or without."""

from __future__ import annotations

import sys

from testbed import cli, interruption, result, series
from testbed.process import ExperimentError, NotReady


def main() -> int:
    plan = cli.parse()
    interruption.watch()
    try:
        results = series.run_all(plan.setups, keep=plan.keep)
    except NotReady as error:
        print(f"run.py: error: {error}", file=sys.stderr)
        return 2
    except ExperimentError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        print(f"run.py: stopped by {error}; everything is cleaned up", file=sys.stderr)
        return 130
    if plan.json is not None:
        result.write_json(plan.json, result.document(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
