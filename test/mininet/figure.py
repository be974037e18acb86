#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws the README's figure from a result of the demo."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from testbed.draw import charts, demodata
from testbed.measure import result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("demo", type=Path, help="demo.json")
    parser.add_argument("svg", type=Path, help="where the figure goes")
    options = parser.parse_args()
    try:
        document = json.loads(options.demo.read_text())
    except FileNotFoundError:
        print(f"figure: {options.demo} is not there; run `make demo` first", file=sys.stderr)
        return 1
    drawing = charts.goodput_bars(demodata.downloads(document), width=720, height=320, keys=True)
    result.write_text(options.svg, drawing.render(standalone=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
