# SPDX-License-Identifier: GPL-2.0-or-later
"""What decides a run, and the programs that take part in it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from .assists.assist import Assist
from .loads.apps import App
from .world.process import NotReady
from .world.programs import Programs
from .world.scenario import Scenario


@dataclass(frozen=True)
class Setup:
    """Everything that decides what a run does."""

    scenario: Scenario
    app: App
    assist: Assist
    seed: int
    # Downloads at the same time, which nobody helps.
    beside: tuple[App, ...] = ()
    rt: int = 50
    pemi_options: tuple[str, ...] = ()
    kill_daemon_after_s: float | None = None
    # After it was killed.
    restart_daemon_after_s: float | None = None
    capture: bool = False
    programs: Programs = field(default_factory=Programs)

    @property
    def expected_s(self) -> float:
        """About how long it takes, for the time that is left."""
        lossy = self.scenario != self.scenario.lossless()
        slow = 3.5 if lossy and not self.assist.helps else 1.0
        if self.app.bytes is None:
            return 2 + self.app.seconds
        slowest_mbit = min(self.scenario.bw1, self.scenario.bw2)
        slow *= 1 + len(self.beside)
        return self.app.count * (1.5 + slow * self.app.bytes * 8e-6 / slowest_mbit)

    @property
    def name(self) -> str:
        """For people and for a directory of logs."""
        what = self.app.name if self.app.bytes is None else f"{self.app.name}-{self.app.bytes}"
        what = "-beside-".join([f"{what}-{self.app.stack}", *(app.stack for app in self.beside)])
        return f"{what}-{self.assist.name}-{self._hop}-seed{self.seed}"

    @property
    def _hop(self) -> str:
        """Which losses there are, so that a run with and one without them have two names."""
        scenario = self.scenario
        if scenario.wifi1 is not None:
            lossless = "-lossless" if scenario.wifi1_lossless else ""
            return f"wifi-{Path(scenario.wifi1).stem}{lossless}"
        if scenario.outages1 is not None:
            return "outages"
        return "bursts" if scenario.loss1ge is not None else f"loss{scenario.loss1:g}"

    def needed(self) -> list[Path]:
        """The programs that take part."""
        every = (self.app, *self.beside)
        needed = [self.programs.testbed / program for app in every for program in app.programs]
        if self.scenario.link == "linkem":
            needed.append(self.programs.testbed / "linkem")
        return needed + self.assist.programs(self.programs)

    def check(self) -> None:
        """Say now what is missing rather than half-way through."""
        for tool in (tool for app in (self.app, *self.beside) for tool in app.tools):
            if shutil.which(tool) is None:
                raise NotReady(f"{tool} is not there; `make setup` installs it")
        for path in (path for app in (self.app, *self.beside) for path in app.libraries):
            if not path.is_file():
                raise NotReady(f"{path} is not there; `make setup` installs it")
        for path in self.needed():
            if not path.is_file():
                raise NotReady(f"{path} is not there; build it with `make build`")
