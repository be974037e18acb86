#!/usr/bin/python3
"""QUIC across a lossy Wi-Fi hop with PEMI off and on: a table, a result file, a page."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from testbed import apps, demodata, interruption, page, result, scoring, series, table, timeline
from testbed.experiment import Programs, Setup
from testbed.process import ExperimentError, NotReady
from testbed.scenario import Scenario

FULL = {"sizes": (1_000_000, 5_000_000, 20_000_000), "seconds": 20, "seeds": 3}
QUICK = {"sizes": (1_000_000, 5_000_000), "seconds": 8, "seeds": 1}
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
    interruption.watch()
    try:
        with tempfile.TemporaryDirectory(prefix="pemi-demo-") as logs:
            results = series.run_all(plan(size, seeds), keep=Path(logs))
            shown = shown_download(Path(logs))
        document = {
            "made": made(seeds),
            **{"results": result.document(results)["results"]},
            "timeline": shown,
        }
    except NotReady as error:
        print(f"demo: error: {error}", file=sys.stderr)
        return 2
    except ExperimentError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        print(f"demo: stopped by {error}; everything is cleaned up", file=sys.stderr)
        return 130
    result.write_json(options.out / "demo.json", document)
    result.write_text(options.out / "demo.html", page.render(document))
    report(document, options.out)
    return 0


def plan(size: dict, seeds: int) -> list[Setup]:
    """The quick ones first, so that there is something to see soon."""
    lossy = Scenario.from_preset("train")
    loads = [apps.goodput(count, CC, lossy.bw2) for count in size["sizes"]]
    loads.append(apps.rtc(size["seconds"], 30, 3000, CC))
    setups = []
    for load in loads:
        for seed in range(SHOWN_SEED, SHOWN_SEED + seeds):
            setups += [Setup(lossy, load, assist, seed) for assist in ("off", "pemi")]
            # There is nothing to seed here, but a median is also for the machine's noise.
            setups.append(Setup(lossy.lossless(), load, "off", seed))
    return setups


def shown_download(logs: Path) -> dict:
    """The time lines of one download, off and on."""
    load = apps.goodput(SHOWN_BYTES, CC, 10)
    lines = {}
    for kind, assist in (("off", "off"), ("on", "pemi")):
        setup = Setup(Scenario.from_preset("train"), load, assist, SHOWN_SEED)
        directory = logs / setup.name
        packets = scoring.read_truth(directory / "wifi.csv", "ab", apps.PORT)
        lines[kind] = timeline.build(packets, timeline.read_events(directory / "events.jsonl"))
    return {"bytes": SHOWN_BYTES, "seed": SHOWN_SEED, **lines}


def made(seeds: int) -> dict[str, object]:
    """Where the figures come from."""
    version = subprocess.run(
        [Programs().pemi, "--version"], capture_output=True, text=True, timeout=10
    ).stdout.split()
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores {platform.machine()}, Linux {platform.release()}",
        "version": version[-1] if version else "unknown",
        "seeds": seeds,
    }


def report(document: dict, out: Path) -> None:
    """For the terminal."""
    print("\nGoodput in Mbit/s, 1 % loss on the Wi-Fi hop, medians:\n")
    print(table.text(table.DOWNLOAD_HEAD, table.download_rows(demodata.downloads(document))))
    call = demodata.call(document)
    if call is not None:
        print("\n" + table.text(table.CALL_HEAD, table.call_rows(call)))
    print(f"\nThe page: {out / 'demo.html'}   the figures: {out / 'demo.json'}")


if __name__ == "__main__":
    sys.exit(main())
