# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run's files say, as it stands in the result file."""

from __future__ import annotations

import csv
import itertools
import json
import os
import statistics
from collections.abc import Iterable
from pathlib import Path

from testbed.loads.apps import PORT
from testbed.measure import scoring
from testbed.world.process import ExperimentError

from .passage import passage
from .setups import Measurement, Setup

# Packets that come closer together than this came in one clump.
_CLUMP_US = 500
# Of the first line of /proc/stat, after its name.
_IDLE = 3
_PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def run(setup: Setup, logs: Path) -> dict[str, object]:
    """Raises ExperimentError, with what the programs said, if the run failed."""
    outcome = int((logs / "outcome").read_text())
    if outcome != 0:
        raise ExperimentError(f"{setup.name} failed ({outcome}):\n{_complaints(logs)}")
    frames = list(_frames(logs / "air.csv"))
    return {
        "app": setup.app.name,
        "stack": setup.app.stack,
        "cc": setup.app.cc,
        "assist": "off" if setup.assist == "lossless" else setup.assist,
        "seed": setup.seed,
        "bytes": setup.app.bytes,
        "hop": "wifi",
        "preset": setup.preset.name,
        "lossless": setup.assist == "lossless",
        "metrics": _metrics(setup, logs),
        "beside": _beside(setup, logs),
        "inference": _inference(setup, logs),
        "router": _router(logs),
        "processor_busy": _processor_busy(logs),
        "links": {
            "wifi": {"down": _direction(frames, "ab"), "up": _direction(frames, "ba")},
            "wan": _wan(logs),
        },
        "station": _station(logs),
        "clients": _clients(logs),
        "counters": _counted(logs),
        "passing": _passing(logs),
        "threads": _threads(logs),
        "passage": _passage(logs),
    }


def _clients(logs: Path) -> list[dict] | None:
    """What the daemon tells of the stations, if it took part."""
    path = logs / "clients.json"
    return json.loads(path.read_text())["clients"] if path.exists() else None


def _counted(logs: Path) -> dict[str, list[int]]:
    """Packets to clients that came by the rules, and packets that came to the queue, by when."""
    files = sorted(logs.glob("counters.*"))
    return {path.suffix[1:]: [int(word) for word in path.read_text().split()] for path in files}


def _passing(logs: Path) -> int | None:
    """Clients that the rules know as such that lose nothing, if somebody asked at the end."""
    path = logs / "set.txt"
    return path.read_text().count("expires") if path.exists() else None


def _threads(logs: Path) -> dict[str, dict[str, float]]:
    """Seconds that the daemon's threads had run by then, and the guest's clock, by when."""
    found = {}
    for path in sorted(logs.glob("threads.*")):
        clock, *lines = path.read_text().splitlines()
        ran = {name: int(ns) / 1e9 for name, ns in (line.split() for line in lines)}
        found[path.suffix[1:]] = {"clock": float(clock), **ran}
    return found


def _passage(logs: Path) -> dict[str, object] | None:
    """If somebody watched what came."""
    path = logs / "wan.csv"
    return passage(path, logs / "air.csv") if path.exists() else None


def _beside(setup: Setup, logs: Path) -> list[dict[str, object]]:
    """What the other clients measured."""
    folders = [setup.beside(logs, number) for number in range(2, setup.clients + 1)]
    return [setup.app.measured(setup.place(folder), "") for folder in folders]


def _complaints(logs: Path) -> str:
    files = sorted([logs / "log", *logs.glob("*.err"), logs / "pemi.out"])
    said = (f"{path.name}: {path.read_text().strip()}" for path in files if path.exists())
    return "\n".join(line for line in said if not line.endswith(": "))


def _metrics(setup: Setup, logs: Path) -> dict[str, object]:
    output = (logs / "client.out").read_text()
    if setup.app.name == "probe":
        sent = int(setup.app.options[1])
        return stream(_read(logs / "stream.csv"), sent)
    if isinstance(setup.app, Measurement):
        return json.loads(output)
    metrics = setup.app.measured(setup.place(logs), output)
    return setup.app.completed(metrics, (logs / "server.out").read_text())


def stream(rows: Iterable[dict[str, str]], sent: int) -> dict[str, object]:
    """Losses, their runs, delays and clumps of a stream of packets."""
    arrivals = [(int(row["number"]), int(row["sent_us"]), int(row["got_us"])) for row in rows]
    if not arrivals:
        raise ExperimentError("nothing of the stream arrived")
    there = sorted({number for number, _, _ in arrivals})
    gaps = [after - before - 1 for before, after in itertools.pairwise([-1, *there, sent])]
    runs = [gap for gap in gaps if gap]
    delays = sorted((got - sent_us) / 1000 for _, sent_us, got in arrivals)
    clumps = _clumps([got for _, _, got in arrivals])
    return {
        "sent": sent,
        "lost": sent - len(there),
        "duplicates": len(arrivals) - len(there),
        "reordered": sum(a[0] > b[0] for a, b in itertools.pairwise(arrivals)),
        "runs": [runs.count(length) for length in range(1, max(runs, default=0) + 1)],
        "delay_ms": {
            **{name: _percentile(delays, share) for name, share in _PERCENTILES.items()},
            "max": delays[-1],
        },
        "clumps": {"mean": round(statistics.mean(clumps), 2), "max": max(clumps)},
    }


def _percentile(ordered: list[float], share: float) -> float:
    """By nearest rank."""
    return ordered[max(0, -(-round(share * 10_000) * len(ordered) // 10_000) - 1)]


def _clumps(times: list[int]) -> list[int]:
    sizes = [1]
    for before, after in itertools.pairwise(times):
        if after - before < _CLUMP_US:
            sizes[-1] += 1
        else:
            sizes.append(1)
    return sizes


def _inference(setup: Setup, logs: Path) -> dict[str, object] | None:
    app = setup.app
    if isinstance(app, Measurement) or not app.scored or app.over_tcp:
        return None
    # Of what is encrypted on the air nobody can say which frame is a copy of which.
    if setup.lab.security != "open":
        return None
    packets = scoring.read_truth(logs / "air.csv", "ab", PORT)
    return scoring.score(packets, setup.rtt_ms)


def _router(logs: Path) -> dict[str, object] | None:
    if not (logs / "status.json").exists():
        return None
    # The program's name comes first and may hold blanks.
    fields = (logs / "pemi.stat").read_text().rpartition(")")[2].split()
    return {
        "cpu_s": (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        "rss_kib": int((logs / "pemi.memory").read_text().split()[1]),
        "status": json.loads((logs / "status.json").read_text()),
    }


def _processor_busy(logs: Path) -> float:
    """The share of the run that the guest's one processor worked for anybody: all programs and
    the air share it."""
    before, after = (
        [int(word) for word in (logs / f"processor.{when}").read_text().split()[1:]]
        for when in ("before", "after")
    )
    spent = [now - then for then, now in zip(before, after, strict=True)]
    return round(1 - spent[_IDLE] / sum(spent), 3)


def _read(path: Path) -> Iterable[dict[str, str]]:
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def _frames(path: Path) -> Iterable[dict[str, str]]:
    """Those of the client that is measured: neighbours have ports of their own."""
    return (row for row in _read(path) if row["dport"] != "7001")


# TCP and UDP.
_CARRIED = ("6", "17")


def _direction(frames: list[dict[str, str]], direction: str) -> dict[str, object]:
    of = [row for row in frames if row["dir"] == direction]
    waits = sorted(
        float(row["out_us"]) / 1000 - float(row["us"]) / 1000 for row in of if row["out_us"]
    )
    return {
        "packets": len(of),
        "lost": sum(row["fate"] == "lost" for row in of),
        # Of these what no application sent: who has which address, mostly.
        "lost_upkeep": sum(row["fate"] == "lost" and row["proto"] not in _CARRIED for row in of),
        "queue_dropped": sum(row["fate"] == "queue" for row in of),
        "retries": sum(max(0, int(row["attempts"]) - 1) for row in of),
        "air_ms": {
            name: round(_percentile(waits, share), 3) if waits else None
            for name, share in _PERCENTILES.items()
        },
    }


def _wan(logs: Path) -> dict[str, object]:
    qdiscs = json.loads((logs / "wan.json").read_text())
    ports = {"down": "lan", "up": "inet"}
    found = {qdisc["dev"]: qdisc for qdisc in qdiscs if qdisc["kind"] == "netem"}
    return {
        name: {"packets": found[port]["packets"], "queue_dropped": found[port]["drops"]}
        for name, port in ports.items()
    }


def _station(logs: Path) -> dict[str, int] | None:
    """What the access points counted meanwhile of all stations together; None if one associated
    anew, there or elsewhere, where its counters begin anew."""
    before, after = (_counters(logs / f"stations.{when}") for when in ("before", "after"))
    moved = (logs / "roamed").exists()
    return None if moved else {name: after[name] - before[name] for name in after}


def _counters(path: Path) -> dict[str, int]:
    counted = {"tx_packets": 0, "tx_failed": 0, "tx_retries": 0}
    for line in path.read_text().splitlines():
        name, _, value = line.strip().partition(":")
        name = name.replace(" ", "_")
        if name in counted:
            counted[name] += int(value)
    return counted
