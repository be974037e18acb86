# SPDX-License-Identifier: GPL-2.0-or-later
"""How many times as fast: what the daemon estimates, and the truth that it cannot know."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from .result import Run


def quotient(helped: Iterable[float], alone: Iterable[float]) -> float:
    """The median of all quotients of rates, which is not that of the medians where rates are of
    two kinds, those that have lost something early and those that have not."""
    alone = list(alone)
    return median(rate / other for rate in helped for other in alone)


def beside_the_truth(compared: Run, helped: Run, alone: Run) -> dict[str, object]:
    """What the daemon said after downloads some of which it left alone, and what downloads came
    to that were all helped, and others without it."""
    told = compared["router"]["benefit"]
    on, off = (run["metrics"]["goodputs_mbps"] for run in (helped, alone))
    low, high = told["interval"] or (0, 0)
    truth = quotient(on, off)
    return {
        "sentence": told["sentence"],
        "verdict": told["verdict"],
        "interval": told["interval"],
        "truth": truth,
        "on": median(on),
        "off": median(off),
        "count": len(on),
        "held": low <= truth <= high,
    }
