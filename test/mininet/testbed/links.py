"""Makes the two links behave as the scenario says."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from .process import Child, ExperimentError, wait_until
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
    """The command line of one link, both directions alike."""
    options = {
        "--rate": f"{hop.rate_mbit:g}",
        "--delay": f"{hop.delay_ms:g}",
        "--jitter": f"{hop.jitter_ms:g}",
        "--queue": str(hop.queue_bytes),
        "--qdisc": hop.qdisc,
        "--seed": str(seed),
    }
    if hop.gilbert_elliott is not None:
        options["--ge"] = " ".join(f"{value:g}" for value in hop.gilbert_elliott)
    else:
        options["--loss"] = f"{hop.loss_percent:g}"
    return [word for pair in options.items() for word in pair]


def _start_netem(node, interfaces: tuple[str, str], hop: Hop) -> None:
    """netem first (loss, delay), then the rate with its queue in bytes."""
    must(node, "ip link add br0 type bridge")
    for interface in interfaces:
        must(node, f"ip link set {interface} master br0")
        loss = f"loss {hop.loss_percent:g}%"
        if hop.gilbert_elliott is not None:
            loss = "loss gemodel " + " ".join(f"{value:g}%" for value in hop.gilbert_elliott)
        netem = f"delay {hop.delay_ms:g}ms {hop.jitter_ms:g}ms {loss} limit 100000"
        try:
            must(node, f"tc qdisc add dev {interface} root handle 1: netem {netem}")
        except ExperimentError as error:
            if "unknown" in str(error).lower() or "no such file" in str(error).lower():
                raise ExperimentError(
                    "this kernel has no netem (sch_netem); use --link linkem, which needs none"
                ) from error
            raise
        must(
            node,
            f"tc qdisc add dev {interface} parent 1: handle 2: tbf rate {hop.rate_mbit:g}mbit "
            f"burst 1600 limit {hop.queue_bytes}",
        )
        if hop.qdisc != "droptail":
            must(node, f"tc qdisc add dev {interface} parent 2: {hop.qdisc} limit 10000")
    must(node, "ip link set br0 up")
