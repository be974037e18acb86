# SPDX-License-Identifier: GPL-2.0-or-later
"""Downloads over a hop that loses: without the service, then with it."""

from __future__ import annotations

from lab import Lab, expect, path

BYTES = 4_000_000
LOSS_PERCENT = 2


def repairs(lab: Lab) -> dict[str, object]:
    """Losses are repaired and downloads get faster, over NAT and over IPv6."""
    path.hop(lab.router, LOSS_PERCENT)
    seen = {f"ipv{version}": compare(lab, path.SERVER[version]) for version in (4, 6)}
    translated = lab.router.run(f"conntrack -L -p udp -s {path.CLIENT[4]} 2>/dev/null")
    expect(f"dst={path.WAN[4]}" in translated, f"no address translation: {translated}")
    path.hop(lab.router, 0)
    return seen


def compare(lab: Lab, ip: str) -> dict[str, object]:
    """Downloads with the service stopped and with it just started. Which packets are
    lost is chance, and while this machine pauses replies tell nothing by when they come:
    a lucky one, an unlucky one and a disturbed one get a second pair."""
    seen = _pair(lab, ip)
    if not seen["repaired"] or seen["on_mbps"] <= seen["off_mbps"]:
        seen = _pair(lab, ip)
    expect(seen["repaired"], f"nothing was repaired, twice: {seen}, {lab.router.status()}")
    expect(seen["on_mbps"] > seen["off_mbps"], f"no faster with it, twice: {seen}")
    return seen


def _pair(lab: Lab, ip: str) -> dict[str, object]:
    router = lab.router
    router.service("stop")
    with lab.download(ip, BYTES) as download:
        off = download.finish()
    router.service("start")
    router.wait(router.answers, "the daemon answers", 5)
    lost = path.losses(router)
    with lab.download(ip, BYTES) as download:
        on = download.finish()
    status = router.status()
    losses = status["losses"]
    return {
        "off_mbps": round(off, 2),
        "on_mbps": round(on, 2),
        # Copies that were lost as well are among them.
        "lost": path.losses(router) - lost,
        "inferred": losses["inferred"],
        "repaired": losses["repaired"],
        "resent": status["resent"]["packets"],
    }
