# SPDX-License-Identifier: GPL-2.0-or-later
"""How many times as fast: what the daemon estimates, of downloads that it cannot know."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median


def quotient(helped: Iterable[float], alone: Iterable[float]) -> float:
    """The median of all quotients of rates, which is not that of the medians where rates are of
    two kinds, those that have lost something early and those that have not."""
    alone = list(alone)
    return median(rate / other for rate in helped for other in alone)
