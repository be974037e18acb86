# SPDX-License-Identifier: GPL-2.0-or-later
"""PEMI on a netfilter queue of the router."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..loads.apps import PORT
from ..world.process import Child, ExperimentError, wait_until
from ..world.programs import Programs
from .assist import Assist, Running, Site, without_value
from .cost import cpu_seconds, peak_rss_kib
from .firewall import attach

QUEUE = 0
# Options of the daemon that its rules depend on as well.
RULED_BY = ("--device", "--repair", "--capture")


@dataclass(frozen=True)
class Pemi(Assist):
    """The daemon, with both directions of the flows on one queue."""

    option: ClassVar[str] = "pemi"
    argument: ClassVar[dict[str, object]] = without_value("PEMI on the router")
    has_daemon: ClassVar[bool] = True

    def programs(self, built: Programs) -> list[Path]:
        return [built.pemi]

    def at(self, site: Site) -> Running:
        return Daemon(site)


class Daemon(Running):
    """The process, and the rules that bring it packets."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._program = site.programs.pemi
        self._control: Path | None = None
        self._stack: contextlib.ExitStack | None = None
        self._starts = 0
        self._killed = False
        self._daemon: Child | None = None

    @property
    def children(self) -> tuple[Child, ...]:
        return (self._daemon,) if self._daemon and not self._killed else ()

    def start(self, stack: contextlib.ExitStack) -> None:
        """Returns when the daemon answers and packets go through its queue."""
        # Not among the logs: a socket's path has to be shorter than 108 bytes.
        directory = tempfile.TemporaryDirectory(prefix="pemi-", dir="/tmp")
        self._control = Path(stack.enter_context(directory)) / "control"
        self._stack = stack
        self._start_daemon()
        self._attach()

    def _start_daemon(self) -> None:
        argv = [
            *(str(self._program), "run"),
            *self._what(),
            *("--queue", str(QUEUE)),
            *("--control", str(self._control)),
            *("--events", str(self._logs / "events.jsonl")),
            *("--log-level", "info"),
            # What is measured is help.
            *("--control-percent", "0"),
            *self._more(),
        ]
        self._starts += 1
        # What the first one said is not lost when there is a second.
        name = "pemi" if self._starts == 1 else f"pemi-{self._starts}"
        daemon = Child(name, self._topology.router, argv, self._logs)
        self._daemon = self._stack.enter_context(daemon)
        self._ready(daemon)

    def _what(self) -> list[str]:
        """What it is to help."""
        return ["--port", str(PORT)]

    def _more(self) -> tuple[str, ...]:
        """Options that the command line of run.py gives it."""
        return self._site.pemi_options

    def _ready(self, daemon: Child) -> None:
        wait_until(self._answers, "the daemon's control socket", [daemon])

    def _attach(self) -> None:
        rules = self._logs / "rules.json"
        options = self._more()
        ruled = {
            flag.removeprefix("--"): value
            for flag, value in itertools.pairwise(options)
            if flag in RULED_BY
        }
        rules.write_text(json.dumps({"port": [PORT], "queue": QUEUE, **ruled}))
        attach(self._topology, self._program, rules)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as control:
            try:
                control.connect(str(self._control))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
        return True

    def kill(self) -> None:
        """A crash in mid-flow: the kernel has to let the packets pass by itself."""
        assert self._daemon is not None
        self._daemon.check()
        self._killed = True
        self._daemon.kill()

    def restart(self) -> None:
        """After it was killed, as procd would; what brings it packets is still there."""
        self._start_daemon()
        self._killed = False

    def report(self) -> dict[str, object] | None:
        """What it cost and what it says of itself, since it was started last."""
        if self._killed or self._daemon is None:
            return None
        return {
            "cpu_s": cpu_seconds(self._daemon.pid),
            "rss_kib": peak_rss_kib(self._daemon.pid),
            "status": self._status(),
        }

    def _status(self) -> object:
        command = [str(self._program), "status", "--json", "--control", str(self._control)]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
        if answer.returncode != 0:
            raise ExperimentError(f"pemi status failed: {answer.stderr.strip()}")
        return json.loads(answer.stdout)

    def stop(self) -> None:
        """A clean end, so that the events file is complete."""
        if self._killed or self._daemon is None:
            return
        self._daemon.stop()
        if self._daemon.exit_code != 0:
            raise self._daemon.failure(f"ended with exit code {self._daemon.exit_code}")
