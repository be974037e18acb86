# SPDX-License-Identifier: GPL-2.0-or-later
"""What the firewall drops stays dropped, and who was not asked gets nothing twice."""

from __future__ import annotations

import ipaddress
import time

from lab import Lab, expect, path
from lab.router import Router
from lab.traffic import QUIC_PORT, Echo
from lab.watch import Watch, stranger

# All that is sent again to somebody silent is sent by then.
_SILENCE_S = 0.8
# Nobody is there.
_SCANNED = ipaddress.ip_network("fd00:0:0:1:0:0:1:0/112")
# Families and rules of a firewall for bridged packets: as the bridge's own, and as that
# of IP, to which br_netfilter shows them.
_BRIDGE = "bridge", "iifname {lan} accept; oifname {lan} udp sport 443 drop"
_IP = "inet", "udp sport 443 drop"


def strangers(lab: Lab) -> dict[str, object]:
    """With fw4's rules: a host of the WAN gets nothing into the LAN."""
    _anew(lab)
    leaks = attack(lab, path.SERVER)
    expect(not leaks, f"in spite of the firewall: {leaks}")
    return {"copies_for_the_client": _helped(lab, path.SERVER), "uplink": _uplink(lab)}


def bridged_strangers(lab: Lab) -> dict[str, object]:
    """The same on a bridge: with a filter of the bridge's, with one of IP's, with none."""
    router = lab.router
    seen = {}
    for name, begin, end in (
        ("bridge", _load(router, *_BRIDGE), "nft delete table bridge home"),
        (
            "br_netfilter",
            f"modprobe br_netfilter; {_load(router, *_IP)}",
            "nft delete table inet home; rmmod br_netfilter",
        ),
        ("open", "true", "true"),
    ):
        try:
            _anew(lab, begin)
            leaks = attack(lab, path.NEIGHBOUR)
            if name == "open":
                # What was sent may come in; more may not.
                leaks = {kind: count for kind, count in leaks.items() if kind in _OURS}
            expect(not leaks, f"filter {name}: {leaks}")
            seen[name] = _helped(lab, path.NEIGHBOUR)
        finally:
            router.run(end)
    return {"copies_for_the_client": seen}


# What only the daemon does.
_OURS = ("pings", "copies", "probes", "flows", "log lines", "more than was sent")


def attack(lab: Lab, own: dict[int, str]) -> dict[str, int]:
    """A stranger on the server's side tries; what was seen of it, by name."""
    router = lab.router
    sent = 2 * (1 + 16)
    logged = _flow_lines(lab)
    with Watch(lab.client, path.LAN_TAP) as lan:
        for version in (4, 6):
            stranger(lab.server, "knock", own[version], path.CLIENT[version])
        if own is path.SERVER:
            stranger(lab.server, "scan", own[6], str(_SCANNED[0]))
        time.sleep(_SILENCE_S * router.patience)
        frames = lan.take()
    found: dict[str, int] = {}

    def see(what: str, count: int) -> None:
        if count > 0:
            found[what] = found.get(what, 0) + count

    for version in (4, 6):
        came = sum(
            count
            for kind, source, to, count in frames
            if kind in ("payload", "udp") and source == own[version] and to == path.CLIENT[version]
        )
        see("datagrams", came)
        see("more than was sent", came - sent)
    for kind, _, to, count in frames:
        if kind == "ping":
            see("pings", count)
        if kind == "search" and _scanned(to):
            see("searches", count)
    neighbours = router.run("/sbin/ip -6 neigh show dev br-lan").splitlines()
    see("neighbours", sum(_scanned(line.split()[0]) for line in neighbours))
    status = router.status()
    see("copies", status["resent"]["packets"])
    see("probes", status["probes"]["sent"])
    see("flows", status["flows"]["active"])
    see("log lines", _flow_lines(lab) - logged)
    return found


def _scanned(address: str) -> bool:
    return ipaddress.ip_address(address) in _SCANNED


def _load(router: Router, family: str, rules: str) -> str:
    table = (
        f"table {family} home {{ chain forward {{ type filter hook forward priority filter; "
        f"ct state established,related accept; {rules.format(lan=router.lan_port)}; }}; }}"
    )
    return f"nft -f - <<'END'\n{table}\nEND\n"


def _anew(lab: Lab, begin: str = "true") -> None:
    """The service with nothing on its mind, started as always after the firewall."""
    router = lab.router
    router.service("stop")
    router.run("conntrack -F 2>&1; /sbin/ip neigh flush dev br-lan")
    router.run(begin)
    router.service("start")
    router.wait(router.answers, "the daemon answers", 5)


def _helped(lab: Lab, server: dict[int, str]) -> int:
    """A connection that the client begins is helped all the same: copies sent."""
    before = lab.router.status()["resent"]["packets"]
    for version in (4, 6):
        sent = lab.router.status()["resent"]["packets"]
        with Echo(lab.client, lab.server, server[version], QUIC_PORT) as echo:
            expect(echo.send(5) == 5, "echoes were lost")
            more = lab.router.status()["resent"]["packets"] - sent
            expect(more > 0, f"no copies for a connection of the client's, IPv{version}")
    return lab.router.status()["resent"]["packets"] - before


def _uplink(lab: Lab) -> dict[str, int]:
    """With `direction` `both` a silent server is greeted once more, under the translated
    address where the router translates."""
    router = lab.router
    router.configure(direction="both")
    router.service("reload")
    seen = {}
    try:
        for version, source in ((4, path.WAN[4]), (6, path.CLIENT[6])):
            with Watch(lab.server, path.WAN_TAP) as wan:
                stranger(lab.client, "greet", path.CLIENT[version], path.SERVER[version])
                time.sleep(_SILENCE_S * router.patience)
                came = [
                    entry
                    for entry in wan.take()
                    if entry[0] == "udp" and entry[2] == path.SERVER[version]
                ]
            expect(len(came) == 1 and came[0][1] == source, f"greetings: {came}")
            seen[f"ipv{version}"] = came[0][3]
            expect(came[0][3] == 2, f"greetings: {came}")
    finally:
        router.configure(direction="down")
        router.service("reload")
    return seen


def _flow_lines(lab: Lab) -> int:
    return lab.router.log().count("flow started")
