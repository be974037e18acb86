# SPDX-License-Identifier: GPL-2.0-or-later
"""Downloads beside the one that an experiment is about: on ports of their own, which the
router does not help. What each got is counted on the link, alike for QUIC and TCP."""

from __future__ import annotations

import contextlib
import csv
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from ..world.process import Child, ExperimentError
from ..world.topology import Topology
from .apps import PORT, App, Place

# The first of the others; PORT is the flow that may be helped.
FIRST_PORT = PORT + 1
# What each has when all are under way says nothing of shares: slow start.
_SETTLED_US = 2e6
_LEAST_US = 2e6
# linkem counts the payload of UDP and the whole IP packet of TCP.
_UDP_HEADERS = {4: 28, 6: 48}
_UDP = 17


class Beside:
    """The others of one run."""

    def __init__(
        self,
        apps: Sequence[App],
        topology: Topology,
        place: Callable[[int, Path], Place],
        logs: Path,
    ) -> None:
        """`place` makes the place of an application with this port and folder."""
        self._apps = apps
        self._topology = topology
        self._places = []
        for index in range(len(apps)):
            folder = logs / f"beside-{index + 1}"
            folder.mkdir()
            self._places.append(place(FIRST_PORT + index, folder))
        self._servers: list[Child] = []
        self.clients: list[Child] = []

    @property
    def servers(self) -> tuple[Child, ...]:
        """What must keep running for the experiment to count."""
        return tuple(self._servers)

    def start_servers(
        self, stack: contextlib.ExitStack, ready: Callable[[Child, int], None]
    ) -> None:
        """`ready` waits until somebody listens on a port."""
        for index, (app, place) in enumerate(zip(self._apps, self._places, strict=True)):
            argv = app.server(place)
            server = Child(f"{app.name}-server", self._topology.server, argv, place.logs)
            self._servers.append(stack.enter_context(server))
            ready(server, FIRST_PORT + index)

    def start_clients(self, stack: contextlib.ExitStack) -> None:
        """All at once."""
        for app, place in zip(self._apps, self._places, strict=True):
            argv = app.client(place)
            client = Child(f"{app.name}-client", self._topology.client, argv, place.logs)
            self.clients.append(stack.enter_context(client))

    def check(self) -> bool:
        """Whether one of them is done. Raises if it is so because it failed."""
        done = [client for client in self.clients if client.exit_code is not None]
        for client in done:
            if client.exit_code != 0:
                raise client.failure(f"failed with exit code {client.exit_code}")
        return bool(done)


def shares(log: Path, ports: Sequence[int], ip_version: int) -> dict[str, object]:
    """Of linkem's log of the Wi-Fi hop, downstream: what reached the client of each of
    these server ports while all of them were under way. The first is the flow that the
    experiment is about."""
    came: dict[int, list[tuple[float, int]]] = defaultdict(list)
    with log.open(newline="") as file:
        for row in csv.DictReader(file):
            port = int(row["sport"])
            if row["dir"] == "ab" and port in ports and row["out_us"]:
                headers = _UDP_HEADERS[ip_version] if int(row["proto"]) == _UDP else 0
                came[port].append((float(row["out_us"]), int(row["len"]) + headers))
    silent = [port for port in ports if not came[port]]
    if silent:
        raise ExperimentError(f"nothing of port {silent[0]} reached the client")
    begin = max(min(us for us, _ in came[port]) for port in ports) + _SETTLED_US
    end = min(max(us for us, _ in came[port]) for port in ports)
    if end - begin < _LEAST_US:
        raise ExperimentError(
            f"the downloads ran side by side for {max(end - begin + _SETTLED_US, 0) / 1e6:.1f} s "
            f"only; {(_SETTLED_US + _LEAST_US) / 1e6:.0f} s are needed: give them more bytes"
        )
    rates = [
        sum(size for us, size in came[port] if begin <= us < end) * 8 / (end - begin)
        for port in ports
    ]
    own, *others = rates
    return {
        "window_s": round((end - begin) / 1e6, 3),
        "rate_mbps": round(own, 4),
        "beside_mbps": [round(rate, 4) for rate in others],
        "beside_mean_mbps": round(sum(others) / len(others), 4),
        "total_mbps": round(sum(rates), 4),
        # 1: its equal share.
        "share": round(own * len(rates) / sum(rates), 4),
        # Jain, Chiu, Hawe 1984: 1 is equal shares, 1/n all for one.
        "jain": round(sum(rates) ** 2 / (len(rates) * sum(rate**2 for rate in rates)), 4),
    }
