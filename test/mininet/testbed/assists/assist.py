# SPDX-License-Identifier: GPL-2.0-or-later
"""What helps the flows of a run, as two objects: an `Assist` is what was asked for, before
anything runs; a `Running` is the same at work in one run.

To add one, write both in a file of this folder and list the `Assist` in `registry.py`. Nothing
else asks which assist it has before it.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..loads.apps import App, endpoint
from ..world.process import Child
from ..world.programs import Programs
from ..world.topology import Topology


@dataclass(frozen=True)
class Site:
    """Where an assist works in one run."""

    topology: Topology
    app: App
    programs: Programs
    # Real-time priority of programs that forward, 0 for none.
    rt: int
    # A folder of this run's own.
    logs: Path
    # For `pemi run`.
    pemi_options: tuple[str, ...] = ()


class Running:
    """An assist at work in one run. This one does nothing."""

    # What must keep running for the experiment to count.
    children: tuple[Child, ...] = ()
    # What the application's sender has to be told.
    sender_options: tuple[str, ...] = ()

    def __init__(self, site: Site) -> None:
        self._site = site
        self._topology = site.topology
        self._logs = site.logs

    @property
    def address(self) -> str:
        """Where the application's server is to listen, and its client to connect to."""
        return endpoint(self._topology.server_ip)

    def start(self, stack: contextlib.ExitStack) -> None:
        """Returns when flows are helped."""

    def kill(self) -> None:
        """A crash in mid-flow, if a daemon runs."""
        raise NotImplementedError

    def restart(self) -> None:
        """After it was killed."""
        raise NotImplementedError

    def report(self) -> dict[str, object] | None:
        """What it cost on the router and what it says of itself; None if nothing ran there."""
        return None

    def stop(self) -> None:
        """A clean end."""

    def measured(self, wifi_log: Path) -> dict[str, object]:
        """What it adds to the run's metrics, by linkem's log of the Wi-Fi hop."""
        return {}

    def totals(self) -> dict[str, object]:
        """What it adds to the run beside the metrics, once it has stopped."""
        return {}


@dataclass(frozen=True)
class Assist:
    """What was asked for. Equal ones are one and the same."""

    # The option of run.py without its dashes, and what argparse is told of it.
    option: ClassVar[str]
    argument: ClassVar[dict[str, object]]
    # Whether flows are faster for it.
    helps: ClassVar[bool] = True
    # Whether the daemon runs on the router, so that it can be killed.
    has_daemon: ClassVar[bool] = False
    # Whether what comes down twice is a copy that the router sent, so that it can be judged.
    scored: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """In results, and in the names of folders."""
        return self.option

    def programs(self, built: Programs) -> list[Path]:
        """Those that it runs."""
        return []

    def accepts(self, load: App) -> None:
        """Raises ValueError, with the reason, for an application that it cannot help."""

    def accepts_others_beside(self) -> None:
        """Raises ValueError, with the reason, if no other flows can run at the same time."""

    def at(self, site: Site) -> Running:
        """At work there; not yet started."""
        raise NotImplementedError


def without_value(text: str) -> dict[str, object]:
    """What argparse is told of an option that stands by itself."""
    several = "with several of these, one after the other with the same seeds"
    return {"nargs": 0, "help": f"{text}; {several}"}
