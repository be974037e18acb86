# SPDX-License-Identifier: GPL-2.0-or-later
"""What it takes to hold the router's own comparison against the truth."""

from __future__ import annotations

from dataclasses import dataclass

from .assists.compared import Compared
from .assists.off import Off
from .assists.pemi import Pemi
from .loads.downloads import downloads
from .setups import Setup
from .world.scenario import Scenario


@dataclass(frozen=True)
class Size:
    """How many downloads are compared, and how many show each half of the truth."""

    flows: int = 60
    truth: int = 60
    bytes: int = 1_000_000
    # More than the usual five, so that sixty downloads say something.
    control_percent: int = 25


def plan(scenario: Scenario, size: Size, cc: str, seed: int) -> list[Setup]:
    """As on an owner's router; all helped; without help. In this order."""

    def load(count: int):
        return downloads(count, size.bytes, cc, scenario.bw2)

    compared = Compared(percent=size.control_percent)
    return [
        Setup(scenario, load(size.flows), compared, seed),
        # Other losses than those that the comparison has seen.
        Setup(scenario, load(size.truth), Pemi(), seed + 1),
        Setup(scenario, load(size.truth), Off(), seed + 1),
    ]
