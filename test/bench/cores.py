#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a second core is worth: one queue on one core beside two queues on two.

Two clients with addresses that end differently, so that each is another queue's, and all that has
to do with one of them on a core of its own: sender, receiver, the kernel's part, and the queue's
thread. What is found goes to standard output as one JSON object; ends with 1 if two cores carry
less than the bar of one.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from net import ROUTER, SERVER, TIMEOUT_S, Lab, Problem, check

ROOT = Path(__file__).resolve().parent.parent.parent
# The client's host, its address at an even or odd end, and the port of its server: one port has one
# socket.
PAIRS = [("client", "10.98.1.2", 443), ("odd", "10.98.3.3", 444)]
DEVICES = ["to-client", "to-odd"]
FLOWS = 50
BAR = 1.7


def widen(lab: Lab) -> None:
    """Add the second client, behind a device of its own."""
    host = lab.prefix + "odd"
    check("ip", "netns", "add", host)
    lab.stack.callback(check, "ip", "netns", "delete", host)
    lab.run("odd", "ip", "link", "set", "lo", "up")
    lab.run(
        ROUTER, "ip", "link", "add", "to-odd", "type", "veth", "peer", "name", "eth0", "netns", host
    )
    for where, name, address in ((ROUTER, "to-odd", "1"), ("odd", "eth0", "3")):
        lab.run(where, "ip", "address", "add", f"10.98.3.{address}/24", "dev", name)
        lab.run(where, "ip", "link", "set", name, "up")
        lab.run(where, "ethtool", "-K", name, "tx", "off", "gso", "off", "gro", "off")
    lab.run("odd", "ip", "route", "add", "default", "via", "10.98.3.1")


def pinned(core: int, *command: str) -> list[str]:
    """Give the command that runs another one on a core."""
    return ["taskset", "-c", str(core), *command]


def rate(lab: Lab, traffic: Path, pairs: int, seconds: float) -> float:
    """Give packets per second that reach so many clients together, each on its core."""
    servers, clients = [], []
    try:
        for core, (_, _, port) in enumerate(PAIRS[:pairs]):
            args = [f"10.98.2.2:{port}", str(FLOWS), str(seconds)]
            command = pinned(core, str(traffic), "server", *args)
            servers.append(
                subprocess.Popen(
                    lab.command(SERVER, *command),
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                )
            )  # fmt: skip
        time.sleep(0.2)
        for core, (host, _, port) in enumerate(PAIRS[:pairs]):
            args = [f"10.98.2.2:{port}", str(FLOWS), str(seconds)]
            command = pinned(core, str(traffic), "client", *args)
            clients.append(subprocess.Popen(lab.command(host, *command)))
        answers = [server.communicate(timeout=TIMEOUT_S) for server in servers]
        if any(server.returncode for server in servers):
            raise Problem(f"traffic failed: {[problem for _, problem in answers]}")
        return sum(float(out) for out, _ in answers)
    except subprocess.TimeoutExpired:
        raise Problem("no packet comes through the router") from None
    finally:
        for process in (*servers, *clients):
            process.kill()
            process.wait()


def helped(lab: Lab, pemi: Path, traffic: Path, cores: int, capture: str, seconds: float) -> dict:
    """Measure the daemon with a queue for each core."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        control, config = folder / "control", folder / "config"
        settings = {
            "queue": 0, "queues": cores, "port": [port for _, _, port in PAIRS],
            "device": DEVICES, "repair": "infer", "capture": capture, "control_percent": 0,
            "control": str(control),
        }  # fmt: skip
        config.write_text(json.dumps(settings))
        with (
            lab.ruled(pemi, config),
            lab.program(str(pemi), "run", "--config", str(config)) as process,
        ):
            # It answers once its threads are there.
            while not control.exists():
                time.sleep(0.05)
            for task in Path(f"/proc/{process.pid}/task").iterdir():
                word, _, queue = (task / "comm").read_text().strip().rpartition("-")
                if word == "pemi-queue":
                    check("taskset", "-cp", queue, task.name)
            found = rate(lab, traffic, cores, seconds)
            status = json.loads(check(str(pemi), "status", "--json", "--control", str(control)))
    if status["capture"]["used"] != ("ring" if capture == "ring" else "queue"):
        raise Problem(f"no ring: {status['capture']['reason']}")
    shares = [queue["packets"] for queue in status["queues"]]
    missed = sum(queue["missed"] for queue in status["queues"])
    return {"rate": found, "packets": shares, "missed": missed}


def main() -> int:
    """Measure in turns, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--pemi", type=Path, default=ROOT / "target" / "release" / "pemi")
    binaries = ROOT / "test" / "target" / "release"
    parser.add_argument("--traffic", type=Path, default=binaries / "traffic")
    args = parser.parse_args()
    rates: dict[str, list[list[float]]] = {"kernel": [], "queue": [], "ring": []}
    last: dict[str, dict] = {}
    try:
        with Lab() as lab:
            widen(lab)
            for _ in range(args.rounds):
                both = [rate(lab, args.traffic, cores, args.seconds) for cores in (1, 2)]
                rates["kernel"].append(both)
                for capture in ("queue", "ring"):
                    both = []
                    for cores in (1, 2):
                        last[f"{capture} {cores}"] = found = helped(
                            lab, args.pemi, args.traffic, cores, capture, args.seconds
                        )
                        both.append(found["rate"])
                    rates[capture].append(both)
                print(
                    ", ".join(f"{name} {its[-1]}" for name, its in rates.items()), file=sys.stderr
                )
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 1
    medians = {
        name: [round(statistics.median(cores)) for cores in zip(*its, strict=True)]
        for name, its in rates.items()
    }
    ratios = {name: round(two / one, 2) for name, (one, two) in medians.items()}
    result = {"packets_per_s": medians, "two_to_one": ratios, "rounds": rates, "last": last}
    result |= {"load_average": os.getloadavg()[0], "bar": BAR}
    print(json.dumps(result, indent=2))
    return 0 if ratios["ring"] >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
