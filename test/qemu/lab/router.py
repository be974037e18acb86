# SPDX-License-Identifier: GPL-2.0-or-later
"""What the scenarios need of a router, whichever it is."""

from __future__ import annotations

import abc
import json
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.world.process import ExperimentError

_POLL_S = 0.1


@dataclass(frozen=True)
class Answer:
    """What a command on the router said (both streams) and its exit code."""

    code: int
    output: str


class Router(abc.ABC):
    """A router that runs: LAN side towards the client, WAN side towards the server."""

    # The ports themselves, below any bridge: where losses and delays are made.
    lan_port: str
    wan_port: str
    # How much longer than x86_64 things may take here.
    patience: float
    # What stays when the package is removed: a configuration that was changed.
    kept: frozenset[str] = frozenset()
    # What packages for it are called.
    package_suffix = ".ipk"

    @abc.abstractmethod
    def attempt(self, command: str, timeout_s: float = 20) -> Answer:
        """Run a shell command. It may take `patience` times as long."""

    @abc.abstractmethod
    def push(self, data: bytes, path: str) -> None:
        """Write a file."""

    @abc.abstractmethod
    def console_tail(self) -> str:
        """The end of what came on its console."""

    @abc.abstractmethod
    def install(self, package: Path) -> None:
        """Install the product as the router's users would."""

    @abc.abstractmethod
    def remove(self) -> None:
        """And take it off again."""

    @abc.abstractmethod
    def route(self) -> None:
        """Be a home router: NAT for IPv4, a firewall, IPv6 as it is."""

    @abc.abstractmethod
    def log(self) -> str:
        """The system's log."""

    @abc.abstractmethod
    def bridge(self) -> None:
        """Be an access point instead: both ports in one bridge."""

    def run(self, command: str, timeout_s: float = 20) -> str:
        """Run a shell command that must succeed; its output."""
        answer = self.attempt(command, timeout_s)
        if answer.code != 0:
            said = answer.output.strip() or "(it said nothing)"
            raise ExperimentError(f"router: `{command}` gave {answer.code}\n{said}")
        return answer.output

    def succeeds(self, command: str) -> bool:
        """Whether a shell command gives 0."""
        return self.attempt(command).code == 0

    def service(self, verb: str) -> str:
        """The init script."""
        return self.run(f"/etc/init.d/pemi {verb}", timeout_s=30)

    def firewall(self, *, offload: bool) -> None:
        """Load the firewall anew, with or without flow offloading."""
        self.run(
            f"uci set firewall.@defaults[0].flow_offloading={int(offload)}; uci commit firewall; "
            "/etc/init.d/firewall reload"
        )

    def configure(self, **options: str) -> None:
        """Set options of the service in UCI, without telling it. Lists with spaces."""
        lines = []
        for option, value in options.items():
            name = f"pemi.main.{option}"
            lines.append(f"uci -q delete {name}")
            if option in ("device", "network", "port"):
                lines += [f"uci add_list {name}={shlex.quote(part)}" for part in value.split()]
            else:
                lines.append(f"uci set {name}={shlex.quote(value)}")
        self.run("; ".join([*lines, "uci commit pemi"]))

    def status(self) -> dict:
        """What the daemon says of itself."""
        return json.loads(self.run("pemi status --json"))

    def answers(self) -> bool:
        """Whether it says anything."""
        return self.succeeds("pemi status")

    def flows(self) -> list[dict]:
        """The flows it helps."""
        return json.loads(self.run("pemi flows --json"))["flows"]

    def pid(self) -> int | None:
        """The daemon's process id. The init script's own processes have its name, and its
        queue guard has its program."""
        exe = '[ "$(readlink /proc/$p/exe)" = /usr/sbin/pemi ]'
        name = '[ "$(cat /proc/$p/comm)" = pemi ]'
        found = self.run(f"for p in $(pidof pemi); do {exe} && {name} && echo $p; done; true")
        found = found.split()
        return int(found[0]) if found else None

    def wait(self, ready: Callable[[], bool], what: str, timeout_s: float) -> float:
        """Wait for an event; how long it took."""
        begin = time.monotonic()
        while not ready():
            if time.monotonic() - begin > timeout_s * self.patience:
                raise ExperimentError(f"{what}: still not so after {timeout_s * self.patience:g} s")
            time.sleep(_POLL_S)
        return time.monotonic() - begin
