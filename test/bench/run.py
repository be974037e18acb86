#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Speed of engine and quACK and of a whole router, as one JSON object.

The object goes to standard output, everything else to standard error.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from net import QUEUE, Lab, Problem, check, rss_kib

HERE = Path(__file__).resolve().parent
TESTBED = HERE.parent
ROOT = TESTBED.parent
LOADS = ("bulk", "flows-100", "flows-1000", "lossy")
# Passes of the loads under callgrind, with and without those that count.
PASSES = (2, 4)
# What the quACK does, how often under callgrind, and bits of an identifier.
QUACK = {"insert": 2000, "insert-plain": 2000, "decode": 20, "decode-plain": 20}
QUACK_BITS = (16, 32, 64)
FLOWS = 100
MEMORY_FLOWS = 1000
# Of these as much or more is wanted, of all others no more.
LEAST = ("pemi_to_accept_all", "ring_to_kernel", "ring_to_accept_all")
BARS = {
    "engine_ns_per_packet": 400,
    "quack_insert_ns": 60,
    "quack_decode_ns": 30_000,
    "pemi_to_accept_all": 0.8,
    "ring_to_kernel": 0.8,
    "ring_to_accept_all": 1.7,
    "rss_kib": 12 * 1024,
}


def say(text: str) -> None:
    """Tell people what is going on."""
    print(text, file=sys.stderr, flush=True)


def target(workspace: Path) -> Path:
    """Give cargo's target directory of a workspace."""
    return Path(os.environ.get("CARGO_TARGET_DIR", workspace / "target"))


def cargo(*args: str) -> None:
    """Run cargo in the testbed; what it prints goes to standard error."""
    manifest = ["--manifest-path", str(TESTBED / "Cargo.toml")]
    command = ["cargo", args[0], *manifest, *args[1:]]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise Problem(f"{' '.join(command)} failed")


def engine_time() -> dict:
    """Measure the engine with criterion."""
    cargo("bench", "-p", "pemi-bench", "--bench", "engine")
    scenarios = {}
    for load in LOADS:
        folder = target(TESTBED) / "criterion" / "engine" / load / "new"
        mean = json.loads((folder / "estimates.json").read_text())["mean"]["point_estimate"]
        packets = json.loads((folder / "benchmark.json").read_text())["throughput"]["Elements"]
        scenarios[load] = round(mean / packets, 1)
    mean = round(statistics.mean(scenarios.values()), 1)
    return {"engine_ns_per_packet": mean, "engine_ns_per_packet_by_load": scenarios}


def instructions(*command: str) -> int:
    """Count the instructions of a program with callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind"
        subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "-q", *command],
            stdout=sys.stderr, check=True,
        )  # fmt: skip
        found = re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE)
    if found is None:
        raise Problem("callgrind wrote no totals")
    return int(found.group(1))


def engine_counts(binaries: Path) -> dict:
    """Count the engine's instructions and the heap that its flows take."""
    load = str(binaries / "engine-load")
    run = [load, "memory", str(MEMORY_FLOWS)]
    result = {"engine_bytes_per_flow": int(subprocess.check_output(run))}
    if shutil.which("valgrind") is None:
        raise Problem("engine_instructions_per_packet: valgrind is missing")
    packets = int(subprocess.check_output([load, "packets"]))
    totals = []
    for passes in PASSES:
        say(f"callgrind: {passes} passes of {packets} packets")
        totals.append(instructions(load, "run", str(passes)))
    counted = packets * (PASSES[1] - PASSES[0])
    result["engine_instructions_per_packet"] = round((totals[1] - totals[0]) / counted, 1)
    return result


def quack(binaries: Path) -> dict:
    """Measure the quACK beside the obvious implementation: time and instructions."""
    cargo("bench", "-p", "pemi-bench", "--bench", "quack")
    load = str(binaries / "quack-load")
    names = [f"{what}/{bits}" for what in QUACK for bits in QUACK_BITS]
    means = {}
    for name in names:
        what, bits = name.split("/")
        kind = "-plain" if what.endswith("-plain") else ""
        folder = target(TESTBED) / "criterion" / f"{what.removesuffix(kind)}_{bits}{kind}" / "new"
        mean = json.loads((folder / "estimates.json").read_text())["mean"]["point_estimate"]
        means[name] = round(mean, 1)
    result = {
        "quack_insert_ns": means["insert/32"],
        "quack_decode_ns": means["decode/32"],
        "quack_ns": means,
        "quack_best_ns": json.loads(subprocess.check_output([load, "time"])),
    }
    if shutil.which("valgrind") is None:
        raise Problem("quack_instructions: valgrind is missing")
    counts = {}
    for name in names:
        what, bits = name.split("/")
        say(f"callgrind: {name}")
        once, twice = (instructions(load, what, bits, str(n * QUACK[what])) for n in (1, 2))
        counts[name] = round((twice - once) / QUACK[what])
    return result | {"quack_instructions": counts}


def router(binaries: Path, pemi: Path, rounds: int, seconds: float) -> dict:
    """Measure a router: kernel alone, accept-all program, pemi, pemi with a ring; in turns."""
    traffic = binaries / "traffic"
    names = ("kernel", "accept_all", "pemi", "ring")
    rates: dict[str, list[float]] = {name: [] for name in names}
    seen: dict[str, list[float]] = {"accept_all": [], "pemi": []}
    statuses: list[dict] = []
    with Lab() as lab, tempfile.TemporaryDirectory() as folder:
        control = str(Path(folder) / "control")
        programs = {
            "accept_all": [str(binaries / "accept-all"), QUEUE],
            "pemi": [
                *(str(pemi), "run", "--queue", QUEUE, "--port", "443", "--control", control),
                *("--control-percent", "0"),
            ],
        }

        def through(name: str, flows: int, at_end) -> float:
            with lab.program(*programs[name]) as process, lab.queued():
                return lab.traffic(traffic, flows, seconds, lambda: at_end(process))

        def recognised() -> dict:
            out = check(str(pemi), "status", "--json", "--control", control)
            status = json.loads(out)
            if status["flows"]["protected"] < FLOWS:
                raise Problem(f"pemi protects {status['flows']['protected']} of {FLOWS} flows")
            return status

        def at_end(name: str) -> None:
            seen[name].append(lab.queue_packets())
            if name == "pemi":
                statuses.append(recognised())

        config = Path(folder) / "config"
        settings = {
            "queue": int(QUEUE), "device": ["to-client"], "repair": "infer", "capture": "ring",
            "control_percent": 0, "control": control,
        }  # fmt: skip
        config.write_text(json.dumps(settings))

        def with_a_ring() -> None:
            if recognised()["capture"]["used"] != "ring":
                raise Problem("pemi uses no ring")

        for turn in range(rounds):
            rates["kernel"].append(lab.traffic(traffic, FLOWS, seconds))
            run = [str(pemi), "run", "--config", str(config)]
            with lab.ruled(pemi, config), lab.program(*run):
                rates["ring"].append(lab.traffic(traffic, FLOWS, seconds, with_a_ring))
            for name in programs:
                rates[name].append(through(name, FLOWS, lambda _, n=name: at_end(n)))
            say(f"round {turn + 1}: " + ", ".join(f"{n} {r[-1]:.0f}" for n, r in rates.items()))
        memory: list[int] = []
        through("pemi", MEMORY_FLOWS, lambda process: memory.append(rss_kib(process.pid)))
    medians = {name: round(statistics.median(values)) for name, values in rates.items()}
    return {
        "router_packets_per_second": medians,
        "router_rounds": rates,
        "router_packets_queued": {n: statistics.median(v) for n, v in seen.items()},
        "router_pemi": {part: statuses[-1][part] for part in ("packets", "losses", "resent")},
        "pemi_to_accept_all": round(medians["pemi"] / medians["accept_all"], 3),
        "ring_to_kernel": round(medians["ring"] / medians["kernel"], 3),
        "ring_to_accept_all": round(medians["ring"] / medians["accept_all"], 3),
        "rss_kib": memory[0],
    }


def verdicts(result: dict) -> dict:
    """Compare figures with what is promised of them."""
    meets = {}
    for name, bar in BARS.items():
        if name in result:
            good = result[name] >= bar if name in LEAST else result[name] <= bar
            meets[name] = {"bar": bar, "met": good}
    return meets


def main() -> int:
    """Measure everything; what cannot be measured is named under "missing"."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="turns of the router part")
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--pemi", type=Path, default=target(ROOT) / "release" / "pemi")
    parser.add_argument("--only", choices=("time", "counts", "quack", "router"), help="one part")
    args = parser.parse_args()
    binaries = target(TESTBED) / "release"
    parts = {
        "time": engine_time,
        "counts": lambda: engine_counts(binaries),
        "quack": lambda: quack(binaries),
        "router": lambda: router(binaries, args.pemi, args.rounds, args.seconds),
    }
    # Above 0.5 or so somebody else was at work, and times are no good.
    result, missing = {"load_average_before": round(os.getloadavg()[0], 2)}, []
    cargo("build", "--profile", "bench", "-p", "pemi-bench")
    for name, part in parts.items():
        if args.only in (None, name):
            try:
                if name == "router" and not args.pemi.exists():
                    raise Problem(f"{args.pemi} is missing: build it with `cargo build --release`")
                result |= part()
            except (Problem, subprocess.CalledProcessError) as problem:
                say(f"{name}: {problem}")
                missing.append(f"{name}: {problem}")
    result |= {"bars": verdicts(result), "missing": missing, "cores": os.cpu_count()}
    print(json.dumps(result, indent=2))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
