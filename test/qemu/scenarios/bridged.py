"""The router as an access point: it only bridges, and helps all the same."""

from __future__ import annotations

from lab import Lab, path

from .repairs import LOSS_PERCENT, compare


def bridged(lab: Lab) -> dict[str, object]:
    """Losses of flows that are bridged, not routed, are repaired."""
    router = lab.router
    router.bridge()
    router.configure(mode="bridged")
    path.hop(router, LOSS_PERCENT)
    return compare(lab, path.NEIGHBOUR)
