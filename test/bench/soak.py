#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A long time in short: mixed traffic through a router, and whether the daemon stays as it is.

What is found goes to standard output as one JSON object. Ends with 1 if memory or
descriptors have grown, or if a daemon that has nothing to do wakes up too often.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path

from net import CLIENT, QUEUE, Lab, Problem, check, rss_kib

ROOT = Path(__file__).resolve().parent.parent.parent
# Flows at once, and packets lost on the way to the client in percent, in turns.
TURNS = [(1, 0), (8, 1), (100, 0), (1000, 1), (8, 5), (100, 1)]
TURN_S = 3
# A busy machine starts programs late, and the client may ask before its server is there.
TRIES = 5
# The first turns fill the cache, the tables and what the allocator keeps.
WARM_TURNS = 2 * len(TURNS)
# What a sample may be above those of the first round that counts: some pages of an allocator.
SLACK_KIB = 512
# How long an idle daemon is watched, after what the traffic leaves has run out.
QUIET_S, IDLE_S = 15, 20


def wake_ups(pid: int) -> dict[str, int]:
    """Give how often each thread has waited for something so far."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        status = dict(
            line.split(":", 1) for line in (task / "status").read_text().splitlines() if ":" in line
        )
        found[f"{status['Name'].strip()} {task.name}"] = int(status["voluntary_ctxt_switches"])
    return found


def idle(pid: int) -> dict[str, float]:
    """Give each thread's wake-ups a second while nothing comes."""
    time.sleep(QUIET_S)
    before = wake_ups(pid)
    time.sleep(IDLE_S)
    after = wake_ups(pid)
    return {name.rpartition(" ")[0]: (after[name] - before[name]) / IDLE_S for name in before}


def descriptors(pid: int) -> int:
    """Give how many a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def turn(lab: Lab, traffic: Path, flows: int, loss: int) -> float:
    """Send traffic over a hop that loses so much; give the packets per second."""
    rule = ["INPUT", "-p", "udp", "-m", "statistic", "--mode", "random"]
    rule += ["--probability", str(loss / 100), "-j", "DROP"]
    lab.run(CLIENT, "iptables-nft", "-A", *rule)
    try:
        for left in reversed(range(TRIES)):
            try:
                return lab.traffic(traffic, flows, TURN_S)
            except Problem as problem:
                if left == 0:
                    raise
                print(f"again: {str(problem).splitlines()[0]}", file=sys.stderr)
    finally:
        lab.run(CLIENT, "iptables-nft", "-D", *rule)


def soak(lab: Lab, traffic: Path, pemi: Path, minutes: float) -> dict:
    """Run it, and give what was seen."""
    with tempfile.TemporaryDirectory() as folder, lab.queued():
        control = str(Path(folder) / "control")
        config = Path(folder) / "config"
        config.write_text(
            json.dumps({"queue": QUEUE, "port": "443", "control": control, "radio": "off"})
        )
        with lab.program(str(pemi), "run", "--config", str(config)) as process:
            samples = []
            end = time.monotonic() + 60 * minutes
            while time.monotonic() < end or len(samples) < WARM_TURNS + 2 * len(TURNS):
                flows, loss = TURNS[len(samples) % len(TURNS)]
                turn(lab, traffic, flows, loss)
                # Whoever asks and changes settings leaves nothing behind either.
                check(str(pemi), "status", "--json", "--control", control)
                check(str(pemi), "flows", "--json", "--control", control)
                process.send_signal(signal.SIGHUP)
                samples.append((rss_kib(process.pid), descriptors(process.pid)))
            status = json.loads(check(str(pemi), "status", "--json", "--control", control))
            idle_per_s = idle(process.pid)
    counted = samples[WARM_TURNS:]
    first, last = counted[: len(TURNS)], counted[-len(TURNS) :]
    return {
        "turns": len(samples),
        "packets": status["packets"],
        "losses": status["losses"],
        "rss_kib": [max(rss for rss, _ in part) for part in (first, last)],
        "descriptors": [max(count for _, count in part) for part in (first, last)],
        "idle_wake_ups_per_s": idle_per_s,
    }


def verdicts(result: dict, most: float) -> list[str]:
    """Say what has grown, or is more than it may be."""
    found = []
    first, last = result["rss_kib"]
    if last > first + SLACK_KIB:
        found.append(f"resident memory has grown from {first} to {last} KiB")
    first, last = result["descriptors"]
    if last > first:
        found.append(f"open descriptors have become {last}, they were {first}")
    rate = sum(result["idle_wake_ups_per_s"].values())
    if rate > most:
        found.append(f"{rate:.2f} wake-ups a second with nothing to do, {most} are allowed")
    return found


def main() -> int:
    """Soak, and say whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--idle", type=float, default=1.5, help="wake-ups a second that may be")
    parser.add_argument("--pemi", type=Path, default=ROOT / "target" / "release" / "pemi")
    binaries = ROOT / "test" / "target" / "release"
    parser.add_argument("--traffic", type=Path, default=binaries / "traffic")
    args = parser.parse_args()
    try:
        with Lab() as lab:
            result = soak(lab, args.traffic, args.pemi, args.minutes)
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 1
    print(json.dumps(result, indent=2))
    found = verdicts(result, args.idle)
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
