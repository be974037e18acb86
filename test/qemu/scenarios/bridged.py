# SPDX-License-Identifier: GPL-2.0-or-later
"""The router as an access point: it only bridges, and helps all the same."""

from __future__ import annotations

from lab import Lab, expect, path
from lab.traffic import QUIC_PORT, Echo

from .offload import ECHOES, queued
from .repairs import LOSS_PERCENT, compare


def bridged(lab: Lab) -> dict[str, object]:
    """Losses of flows that are bridged, not routed, are repaired."""
    router = lab.router
    router.bridge()
    path.join(lab.server)
    router.configure(mode="bridged")
    path.hop(router, LOSS_PERCENT)
    seen = {f"ipv{version}": compare(lab, path.NEIGHBOUR[version]) for version in (4, 6)}
    path.hop(router, 0)
    seen["let_go_after_s"] = _let_go(lab)
    return seen


def _let_go(lab: Lab) -> float:
    """A flow without losses is let go, and is not queued any more."""
    router = lab.router
    router.configure(release_s="2")
    router.service("reload")
    with Echo(lab.client, lab.server, path.NEIGHBOUR[4], QUIC_PORT) as echo:

        def released() -> bool:
            echo.send(5)
            return path.NEIGHBOUR[4] in router.run("nft list set bridge pemi bypassed4")

        release_s = router.wait(released, "a flow is let go", 20)
        before = queued(router, "bridge")
        expect(echo.send(ECHOES) == ECHOES, "echoes were lost")
        more = queued(router, "bridge") - before
        expect(more == 0, f"{more} packets of a flow that was let go were queued")
    router.configure(release_s="30")
    return round(release_s, 1)
