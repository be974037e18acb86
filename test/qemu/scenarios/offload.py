# SPDX-License-Identifier: GPL-2.0-or-later
"""Flow offloading: helped flows keep out of it, all others go on using it."""

from __future__ import annotations

import re

from lab import Lab, expect, path
from lab.router import Router
from lab.traffic import OTHER_PORT, QUIC_PORT, Echo

ECHOES = 30
_RULE = "/usr/share/nftables.d/ruleset-post/30-pemi.nft"


def offload(lab: Lab) -> dict[str, object]:
    """With fw4's offloading on, every packet of a helped flow passes the queue."""
    router = lab.router
    # Traffic control on the way in would keep packets from the flowtable's hook.
    path.plain(router)
    router.configure(release_s="2")
    router.service("reload")
    try:
        router.run(f"mv {_RULE} /tmp/")
        router.firewall(offload=True)
        without = _echoes(lab)
        router.run(f"mv /tmp/{_RULE.rpartition('/')[2]} {_RULE}")
        router.firewall(offload=True)
        with Echo(lab.client, lab.server, path.SERVER[4], OTHER_PORT) as other:
            expect(other.send(ECHOES) == ECHOES, "echoes were lost")
            expect(_offloaded(router, OTHER_PORT), "a flow that is not helped is not offloaded")
        with Echo(lab.client, lab.server, path.SERVER[4], QUIC_PORT) as helped:
            before = queued(router)
            expect(helped.send(ECHOES) == ECHOES, "echoes were lost")
            seen = queued(router) - before
            expect(seen == 2 * ECHOES, f"{seen} of {2 * ECHOES} packets were queued")
            expect(not _offloaded(router, QUIC_PORT), "a helped flow is offloaded")

            def released() -> bool:
                helped.send(5)
                return _offloaded(router, QUIC_PORT)

            release_s = router.wait(released, "a flow that was let go is offloaded", 20)
    finally:
        router.configure(release_s="30")
        router.firewall(offload=False)
        router.service("reload")
        path.wan(router)
        path.hop(router, 0)
    return {
        "queued_without_rule": without,
        "queued": seen,
        "of": 2 * ECHOES,
        "offloaded_after_s": round(release_s, 1),
    }


def _echoes(lab: Lab) -> int:
    """Packets of a fresh flow that were queued."""
    before = queued(lab.router)
    with Echo(lab.client, lab.server, path.SERVER[4], QUIC_PORT) as echo:
        expect(echo.send(ECHOES) == ECHOES, "echoes were lost")
    seen = queued(lab.router) - before
    lab.router.run(f"conntrack -D -p udp --dport {QUIC_PORT} 2>&1")
    return seen


def queued(router: Router, family: str = "inet") -> int:
    """Packets that our rules have sent to the queue."""
    rules = router.run(f"nft list chain {family} pemi help")
    counters = re.findall(r"counter packets (\d+) .* queue", rules)
    expect(counters, f"no counter at the queue: {rules}")
    return int(counters[0])


def _offloaded(router: Router, port: int) -> bool:
    return "[OFFLOAD]" in router.run(f"conntrack -L -p udp --dport {port} 2>/dev/null")
