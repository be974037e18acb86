# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the two links behave as the scenario says."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from .process import Child, ExperimentError, NotReady, wait_until
from .scenario import Hop, Scenario
from .topology import Topology, must

# linkem's two interfaces are given as (towards the server, towards the client), so
# that its direction A to B is downstream on both links.
INTERFACES = {"wifi": ("wifi-eth1", "wifi-eth0"), "wan": ("wan-eth1", "wan-eth0")}
# The second link draws other random numbers than the first.
_WAN_SEED_OFFSET = 7919


class Links:
    """Both links of a topology, for one run."""

    def __init__(
        self, topology: Topology, scenario: Scenario, seed: int, linkem: Path, rt: int, logs: Path
    ) -> None:
        self._topology = topology
        self._scenario = scenario
        self._seed = seed
        self._linkem = linkem
        self._rt = rt
        self._logs = logs
        self.children: list[Child] = []

    def start(self, stack: contextlib.ExitStack) -> None:
        """Returns when packets pass."""
        hops = {"wifi": self._scenario.wifi, "wan": self._scenario.wan}
        if self._scenario.link == "netem":
            for name, hop in hops.items():
                _start_netem(getattr(self._topology, name), INTERFACES[name], hop)
            return
        for name, hop in hops.items():
            seed = self._seed + (_WAN_SEED_OFFSET if name == "wan" else 0)
            argv = [
                str(self._linkem),
                *linkem_options(hop, seed),
                *("--log", str(self.truth_path(name)), "--totals", str(self._totals_path(name))),
                "--ready",
                *("--rt", str(self._rt)),
                *INTERFACES[name],
            ]
            child = Child(f"linkem-{name}", getattr(self._topology, name), argv, self._logs)
            self.children.append(stack.enter_context(child))
        for child in self.children:
            wait_until(
                lambda c=child: "ready" in c.output().split(), f"{child.name} ready", [child]
            )

    def truth_path(self, name: str) -> Path:
        """The log of what really happened on a link; there is none with netem."""
        return self._logs / f"{name}.csv"

    def _totals_path(self, name: str) -> Path:
        return self._logs / f"{name}.totals.json"

    def stop(self) -> dict[str, object] | None:
        """The totals of the result file, or None where nothing counted."""
        if self._scenario.link == "netem":
            return None
        for child in self.children:
            child.stop()
            if child.exit_code != 0:
                raise child.failure("did not end well")
        return {
            name: directions(json.loads(self._totals_path(name).read_text())) for name in INTERFACES
        }


def directions(totals: dict) -> dict[str, object]:
    """linkem's totals by the names of the result file."""
    return {name: _direction(totals[pipe]) for name, pipe in (("down", "ab"), ("up", "ba"))}


def _direction(pipe: dict) -> dict[str, object]:
    return {
        **{key: pipe[key] for key in ("packets", "lost", "queue_dropped")},
        # How far the emulation was from what it was asked for; drops of its own
        # (no room in a socket) are losses that nobody ordered.
        "lateness_us": pipe["lateness_us"],
        "own_drops": pipe["socket_dropped"] + pipe["send_errors"],
    }


def linkem_options(hop: Hop, seed: int) -> list[str]:
    """The command line of one link, both directions alike unless they were recorded."""
    if hop.wifi is not None:
        lossless = ["--wifi-lossless"] if hop.tried_until_it_arrives else []
        return ["--wifi", hop.wifi, "--seed", str(seed), *lossless]
    options = {
        "--rate": f"{hop.rate_mbit:g}",
        "--delay": f"{hop.delay_ms:g}",
        "--jitter": f"{hop.jitter_ms:g}",
        "--queue": str(hop.queue_bytes),
        "--qdisc": hop.qdisc,
        "--seed": str(seed),
    }
    if hop.trace is not None:
        if hop.trace.down.mean_mbit is not None:
            del options["--rate"]
        if hop.trace.delay_ms is not None:
            del options["--delay"]
        options |= hop.trace.down.options("ab") | hop.trace.up.options("ba")
    if hop.outages_ms is not None:
        options["--outages"] = " ".join(f"{value:g}" for value in hop.outages_ms)
    elif hop.gilbert_elliott is not None:
        options["--ge"] = " ".join(f"{value:g}" for value in hop.gilbert_elliott)
    else:
        options["--loss"] = f"{hop.loss_percent:g}"
    return [word for pair in options.items() for word in pair]


# Of `--qdisc none`, as in linkem.
_NO_LIMIT_BYTES = 256 << 20


def _start_netem(node, interfaces: tuple[str, str], hop: Hop) -> None:
    """netem first (loss, delay), then the rate with its queue."""
    must(node, "ip link add br0 type bridge")
    for interface in interfaces:
        must(node, f"ip link set {interface} master br0")
        loss = f"loss {hop.loss_percent:g}%"
        if hop.gilbert_elliott is not None:
            loss = "loss gemodel " + " ".join(f"{value:g}%" for value in hop.gilbert_elliott)
        netem = f"netem delay {hop.delay_ms:g}ms {hop.jitter_ms:g}ms {loss} limit 100000"
        _add(node, f"dev {interface} root handle 1: {netem}")
        for where, qdisc in netem_queue(hop):
            _add(node, f"dev {interface} {where} {qdisc}")
    must(node, "ip link set br0 up")


def netem_queue(hop: Hop) -> list[tuple[str, str]]:
    """Where which queue disciplines go to make the rate and its queue."""
    if hop.qdisc == "cake":
        return [("parent 1: handle 2:", f"cake bandwidth {hop.rate_mbit:g}mbit")]
    limit = _NO_LIMIT_BYTES if hop.qdisc == "none" else hop.queue_bytes
    rate = f"tbf rate {hop.rate_mbit:g}mbit burst 1600 limit {limit}"
    queues = [("parent 1: handle 2:", rate)]
    if hop.qdisc == "red":
        queues.append(("parent 2:", f"red limit {limit} avpkt 1000"))
    elif hop.qdisc in ("codel", "fq_codel"):
        queues.append(("parent 2:", f"{hop.qdisc} limit 10000"))
    return queues


def _add(node, qdisc: str) -> None:
    try:
        must(node, f"tc qdisc add {qdisc}")
    except ExperimentError as error:
        if any(words in str(error).lower() for words in ("unknown", "no such file")):
            name = next(word for word in _KERNEL_QDISCS if word in qdisc.split())
            raise NotReady(
                f"this kernel has no {name} (sch_{name}); use --link linkem, which needs none"
                + (", with another --qdisc" if name == "cake" else "")
            ) from error
        raise


_KERNEL_QDISCS = ("netem", "tbf", "red", "codel", "fq_codel", "cake")
