#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""QUIC across a lossy Wi-Fi hop with PEMI off and on: a table, a result file, a page."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from testbed import comparison, program, series
from testbed.assists.off import Off
from testbed.assists.pemi import Pemi
from testbed.draw import demodata, page, table, timeline
from testbed.loads import apps
from testbed.measure import result, scoring
from testbed.setups import Setup
from testbed.world.scenario import Scenario

FULL = {
    "sizes": (1_000_000, 5_000_000, 20_000_000),
    "seconds": 20,
    "seeds": 3,
    "compared": comparison.Size(truth=30),
}
# Sixty downloads and the truth beside them take longer than all the rest.
QUICK = {"sizes": (1_000_000, 5_000_000), "seconds": 8, "seeds": 1, "compared": None}
# The download that is drawn moment by moment.
SHOWN_BYTES, SHOWN_SEED = 5_000_000, 1
CC = "cubic"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, in under two minutes")
    parser.add_argument("--seeds", type=int, help="how many seeds the medians are of")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where the files go")
    options = parser.parse_args()
    size = QUICK if options.quick else FULL
    seeds = options.seeds or size["seeds"]
    return program.exit_code("demo", lambda: _demo(size, seeds, options.out))


def _demo(size: dict, seeds: int, out: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="pemi-demo-") as logs:
        results = series.run_all(plan(size, seeds), keep=Path(logs))
        shown = shown_download(Path(logs))
    document = {
        "made": {**program.made(), "seeds": seeds},
        "results": result.document(results)["results"],
        "timeline": shown,
    }
    result.write_json(out / "demo.json", document)
    result.write_text(out / "demo.html", page.render(document))
    report(document, out)
    return 0


def plan(size: dict, seeds: int) -> list[Setup]:
    """The quick ones first, so that there is something to see soon."""
    lossy = Scenario.from_preset("train")
    loads = [apps.goodput(count, CC, lossy.bw2) for count in size["sizes"]]
    loads.append(apps.rtc(size["seconds"], 30, 3000, CC))
    setups = []
    for load in loads:
        for seed in range(SHOWN_SEED, SHOWN_SEED + seeds):
            setups += [Setup(lossy, load, assist, seed) for assist in (Off(), Pemi())]
            # There is nothing to seed here, but a median is also for the machine's noise.
            setups.append(Setup(lossy.lossless(), load, Off(), seed))
    if size["compared"]:
        setups += comparison.plan(lossy, size["compared"], CC, SHOWN_SEED)
    return setups


def shown_download(logs: Path) -> dict:
    """The time lines of one download, off and on."""
    load = apps.goodput(SHOWN_BYTES, CC, 10)
    lines = {}
    for kind, assist in (("off", Off()), ("on", Pemi())):
        setup = Setup(Scenario.from_preset("train"), load, assist, SHOWN_SEED)
        directory = logs / setup.name
        packets = scoring.read_truth(directory / "wifi.csv", "ab", apps.PORT)
        lines[kind] = timeline.build(packets, timeline.read_events(directory / "events.jsonl"))
    return {"bytes": SHOWN_BYTES, "seed": SHOWN_SEED, **lines}


def report(document: dict, out: Path) -> None:
    """For the terminal."""
    print("\nGoodput in Mbit/s, 1 % loss on the Wi-Fi hop, medians:\n")
    print(table.text(table.DOWNLOAD_HEAD, table.download_rows(demodata.downloads(document))))
    call = demodata.call(document)
    if call is not None:
        print("\n" + table.text(table.CALL_HEAD, table.call_rows(call)))
    benefit = demodata.benefit(document)
    if benefit is not None:
        print("\n" + "\n".join(table.benefit_lines(benefit)))
    print(f"\nThe page: {out / 'demo.html'}   the figures: {out / 'demo.json'}")


if __name__ == "__main__":
    sys.exit(main())
