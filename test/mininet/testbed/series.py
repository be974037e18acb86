# SPDX-License-Identifier: GPL-2.0-or-later
"""A series of runs: progress, results by scenario, and a clean end in any case."""

from __future__ import annotations

import os
from pathlib import Path

from . import experiment
from .draw.progress import Progress
from .measure.result import Run, headline
from .setups import Setup
from .world import interruption
from .world.process import NotReady
from .world.scenario import Scenario


def require_root() -> None:
    """Namespaces, queues and real-time priorities all need it."""
    if os.geteuid() != 0:
        raise NotReady("this needs root (network namespaces); run it with sudo")


def run_all(setups: list[Setup], *, keep: Path | None = None) -> list[tuple[Scenario, list[Run]]]:
    """Runs them in turn. Returns the runs by scenario, in order of appearance."""
    require_root()
    for setup in setups:
        setup.check()
    progress = Progress([setup.expected_s for setup in setups])
    results: dict[Scenario, list[Run]] = {}
    try:
        for setup in setups:
            interruption.check()
            progress.begin(describe(setup))
            outcome = experiment.run(setup, keep=keep, tick=progress.tick)
            results.setdefault(setup.scenario, []).append(outcome)
            progress.end(headline(outcome))
    finally:
        progress.clear()
    return list(results.items())


def describe(setup: Setup) -> str:
    """A setup for the progress line."""
    loss = f"{setup.scenario.loss1:g} % loss"
    if setup.scenario.loss1ge is not None:
        loss = "bursty loss"
    if setup.scenario.outages1 is not None:
        loss = "outages of {1:g} ms, {0:g} ms apart".format(*setup.scenario.outages1)
    if setup.scenario.wifi1 is not None:
        loss = f"radio {setup.scenario.wifi1}"
        if setup.scenario.wifi1_lossless:
            loss += " without its losses"
    if setup.scenario.trace1 is not None:
        loss += f" on {setup.scenario.trace1.name}"
    beside = "".join(f" beside {app.stack}" for app in setup.beside)
    return f"{setup.app.label}{beside}, {loss}, {setup.assist.name}, seed {setup.seed}"
