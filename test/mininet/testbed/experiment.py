# SPDX-License-Identifier: GPL-2.0-or-later
"""One run: fresh namespaces, links and programs, and everything gone afterwards."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .assists.assist import Running, Site
from .loads.apps import PORT, Place, endpoint
from .loads.beside import FIRST_PORT, Beside, shares
from .measure import captures, scoring
from .setups import Setup
from .world import interruption
from .world.links import Links
from .world.listening import wait_for_listener
from .world.process import Child, ExperimentError, GaveUp, describe_exit, wait_until
from .world.topology import Topology

_POLL_S = 0.02
# The link is the world's doing, not a program's: it goes before everything else.
# The daemon puts itself in between; what talks over the link comes last.
_APP_RT_BELOW_LINK = 40


def run(setup: Setup, *, keep: Path | None = None, tick: Callable[[], None] = lambda: None) -> dict:
    """Carries it out and returns the run as it stands in the result file."""
    with _logs(setup, keep) as logs, contextlib.ExitStack() as stack:
        return _Experiment(setup, logs, tick).carry_out(stack)


@contextlib.contextmanager
def _logs(setup: Setup, keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        logs = keep / setup.name
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir(parents=True)
        yield logs
        return
    with tempfile.TemporaryDirectory(prefix="pemi-run-") as directory:
        yield Path(directory)


class _Experiment:
    def __init__(self, setup: Setup, logs: Path, tick: Callable[[], None]) -> None:
        self._setup = setup
        self._logs = logs
        self._tick = tick
        self._stood_still_s = 0.0
        self._app_rt = max(setup.rt - _APP_RT_BELOW_LINK, 1) if setup.rt else 0

    def carry_out(self, stack: contextlib.ExitStack) -> dict:
        setup = self._setup
        topology = stack.enter_context(Topology(ipv6=setup.scenario.ipv6))
        links = Links(
            topology,
            setup.scenario,
            setup.seed,
            setup.programs.testbed / "linkem",
            setup.rt,
            self._logs,
        )
        links.start(stack)
        capture = self._capture(topology, stack) if setup.capture else []
        assist = self._assist(topology)
        assist.start(stack)
        server = self._start_server(topology, assist.address, stack)
        rivals = self._beside(topology, stack)
        metrics = self._converse(topology, links, assist, server, rivals, stack)
        router = assist.report()
        server.stop()
        metrics = setup.app.completed(metrics, server.output())
        assist.stop()
        for child in capture:
            child.stop()
        totals = links.stop()
        if rivals.clients:
            ports = [PORT, *range(FIRST_PORT, FIRST_PORT + len(rivals.clients))]
            metrics = shares(links.truth_path("wifi"), ports, topology.version)
        if links.truth_path("wifi").exists():
            metrics |= assist.measured(links.truth_path("wifi"))
        return {
            "app": setup.app.name,
            "stack": setup.app.stack,
            "cc": setup.app.cc,
            "assist": setup.assist.name,
            "seed": setup.seed,
            "bytes": setup.app.bytes,
            "beside": [app.stack for app in setup.beside],
            "metrics": metrics,
            "sender": sender(server.output()),
            "inference": self._score(links),
            "router": router,
            "links": totals,
            "stood_still_s": round(self._stood_still_s, 3),
            **assist.totals(),
        }

    def _assist(self, topology: Topology) -> Running:
        setup = self._setup
        # Before the applications, as what forwards in the kernel is.
        rt = self._app_rt and self._app_rt + 1
        site = Site(topology, setup.app, setup.programs, rt, self._logs, setup.pemi_options)
        return setup.assist.at(site)

    def _capture(self, topology: Topology, stack: contextlib.ExitStack) -> list[Child]:
        """What is on the wire at every hop, for `packets.py` and `pemi replay`."""
        children = []
        for point, (node, interface) in topology.points().items():
            argv = [
                *("tcpdump", "-i", interface, "-n", "-s", "0", "--time-stamp-precision=nano"),
                # What still waits in the kernel when it is told to stop would be missing.
                *("--immediate-mode", "-B", "16384"),
                # The directory is root's.
                *("-Z", "root", "-w", str(captures.path(self._logs, point))),
                *("udp", "port", str(PORT)),
            ]
            child = stack.enter_context(Child(f"tcpdump-{point}", node, argv, self._logs))
            wait_until(
                lambda said=child.stderr_path: "listening on" in said.read_text(),
                f"{child.name} listening",
                [child],
            )
            children.append(child)
        return children

    def _start_server(self, topology: Topology, address: str, stack: contextlib.ExitStack) -> Child:
        app = self._setup.app
        argv = app.server(self._place(address))
        server = stack.enter_context(Child(f"{app.name}-server", topology.server, argv, self._logs))
        wait_for_listener(server, int(address.rpartition(":")[2]))
        return server

    def _beside(self, topology: Topology, stack: contextlib.ExitStack) -> Beside:
        def place(port: int, logs: Path) -> Place:
            address = endpoint(topology.server_ip, port)
            return Place(self._setup.programs.testbed, address, self._app_rt, logs.resolve())

        rivals = Beside(self._setup.beside, topology, place, self._logs)
        rivals.start_servers(stack, wait_for_listener)
        return rivals

    def _place(self, address: str) -> Place:
        # Some programs take a relative path for one of another folder.
        logs = self._logs.resolve()
        return Place(self._setup.programs.testbed, address, self._app_rt, logs)

    def _converse(
        self,
        topology: Topology,
        links: Links,
        assist: Running,
        server: Child,
        rivals: Beside,
        stack: contextlib.ExitStack,
    ) -> dict:
        app = self._setup.app
        place = self._place(assist.address)
        place = dataclasses.replace(place, sender_options=assist.sender_options)
        argv = app.client(place)
        client = stack.enter_context(Child(f"{app.name}-client", topology.client, argv, self._logs))
        rivals.start_clients(stack)
        began, ran_s = time.monotonic(), 0.0
        interventions = self._interventions(assist)
        while client.exit_code is None:
            interruption.check()
            ran_s, before_s = time.monotonic() - began, ran_s
            # A machine that is halted as a whole delays no packet in the links, but its
            # clock goes on, and applications take that for silence.
            self._stood_still_s = max(self._stood_still_s, ran_s - before_s - _POLL_S)
            for other in (*links.children, server, *rivals.servers, *assist.children):
                other.check()
            # Shares are of the time in which nobody is done.
            if rivals.check():
                return {}
            if ran_s - self._stood_still_s > app.timeout_s:
                raise client.failure(f"was not done after {app.timeout_s:.0f} s", GaveUp)
            while interventions and ran_s >= interventions[0][0]:
                interventions.pop(0)[1]()
            self._tick()
            time.sleep(_POLL_S)
        interruption.check()
        if client.exit_code != 0:
            # What a signal ends did not give up.
            kind = GaveUp if client.exit_code > 0 else ExperimentError
            raise client.failure(f"failed with {describe_exit(client.exit_code)}", kind)
        if interventions:
            raise ExperimentError(f"{client.name} was done before the daemon was to be killed")
        return app.measured(place, client.output())

    def _interventions(self, assist: Running) -> list[tuple[float, Callable[[], None]]]:
        """What is done to the daemon in mid-run, and after how many seconds."""
        kill_s, restart_s = self._setup.kill_daemon_after_s, self._setup.restart_daemon_after_s
        if kill_s is None or not self._setup.assist.has_daemon:
            return []
        kill = (kill_s, assist.kill)
        return [kill] if restart_s is None else [kill, (kill_s + restart_s, assist.restart)]

    def _score(self, links: Links) -> dict | None:
        truth = links.truth_path("wifi")
        app = self._setup.app
        copies = app.scored and not app.over_tcp and self._setup.assist.scored
        if not truth.exists() or not copies:
            return None
        packets = scoring.read_truth(truth, "ab", PORT)
        return scoring.score(packets, self._setup.scenario.rtt_ms)


def sender(said: str) -> dict[str, int | None] | None:
    """What a server of ours printed of its connections, together; None if it is none."""
    lines = (line for line in said.splitlines() if line.startswith("{"))
    told = [line["sender"] for line in map(json.loads, lines) if "sender" in line]
    if not told:
        return None
    found: dict[str, int | None] = {}
    for name in ("packets", "lost", "spurious"):
        values = [one[name] for one in told]
        found[name] = None if None in values else sum(values)
    return found
