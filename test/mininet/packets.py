#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The packets of one run that was kept with `run.py --keep`: a table, a time line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from testbed.draw import packet_chart, timeline
from testbed.loads.apps import PORT
from testbed.measure import captures, result, scoring
from testbed.measure.packets import Crossings, as_csv, promptness, totals, trace
from testbed.world.process import ExperimentError

# linkem's names of the directions.
_PIPES = {"down": "ab", "up": "ba"}


def main() -> int:
    options = _options()
    try:
        crossings = _logs(options.run)
        differences = []
        if options.captures:
            captured = captures.crossings(captures.read(options.run, PORT))
            differences = captures.disagreements(crossings, captured)
            crossings = captured
    except FileNotFoundError as error:
        wanted = "--keep DIR --capture" if options.captures else "--keep DIR"
        print(
            f"packets.py: error: {error.filename} is not there; give a folder that "
            f"`run.py {wanted}` has filled",
            file=sys.stderr,
        )
        return 2
    except ExperimentError as error:
        print(f"packets.py: error: {error}", file=sys.stderr)
        return 2
    packets = trace(crossings)
    if options.csv:
        result.write_text(options.csv, as_csv(packets))
    if options.svg:
        held = timeline.held_windows(timeline.read_events(options.run / "events.jsonl"))
        # Captures have another clock than the daemon.
        held = [] if options.captures else held
        drawing = packet_chart.draw(packets, held, options.start, options.end)
        result.write_text(options.svg, drawing.render(standalone=True) + "\n")
    for direction, counts in totals(packets).items():
        words = ", ".join(f"{count} {fate}" for fate, count in counts.items())
        print(f"{direction}: {words}")
    if client := promptness(packets):
        print(
            f"client: {client.replies} replies to {client.per_reply:.2f} packets each, "
            f"{client.p50_us:.0f} µs after the newest of these (p90 {client.p90_us:.0f}, "
            f"p99 {client.p99_us:.0f})"
        )
    for difference in differences:
        print(f"packets.py: {difference}", file=sys.stderr)
    if options.captures and not differences:
        print("linkem's logs and the captures agree in every count")
    return 1 if differences else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="packets.py", description=__doc__)
    parser.add_argument("run", type=Path, help="the run's folder, inside that of --keep")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="one row a packet")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="the time line")
    parser.add_argument("--start", type=float, default=0, metavar="S", help="of the time line")
    parser.add_argument("--end", type=float, metavar="S", help="of the time line")
    parser.add_argument(
        "--captures",
        action="store_true",
        help="from the captures at every hop (run.py --capture), with counts compared",
    )
    return parser.parse_args()


def _logs(run: Path) -> Crossings:
    return {
        (direction, link): scoring.read_truth(run / f"{link}.csv", pipe, PORT)
        for direction, pipe in _PIPES.items()
        for link in ("wan", "wifi")
    }


if __name__ == "__main__":
    sys.exit(main())
