# SPDX-License-Identifier: GPL-2.0-or-later
"""Addresses, and what the links are like. Both links are made on the router, by
its own traffic control: this host's kernel need not have any."""

from __future__ import annotations

from .namespace import Namespace
from .router import Router

# As an OpenWrt router has them out of the box.
LAN = {4: "192.168.1.1", 6: "fd00:0:0:1::1"}
CLIENT = {4: "192.168.1.2", 6: "fd00:0:0:1::2"}
WAN = {4: "198.51.100.1", 6: "fd00:0:0:2::1"}
SERVER = {4: "198.51.100.2", 6: "fd00:0:0:2::2"}
# In the client's subnet, for the router that only bridges.
NEIGHBOUR = {4: "192.168.1.3", 6: "fd00:0:0:1::3"}

LAN_TAP, WAN_TAP = "lan", "wan"
HOP_MS, WAN_MS, WAN_MBIT = 1, 20, 10


def address(client: Namespace, server: Namespace) -> None:
    """The two ends' addresses and routes."""
    for end, tap, own, router in (
        (client, LAN_TAP, CLIENT, LAN),
        (server, WAN_TAP, SERVER, WAN),
    ):
        end.run(f"ip link set {tap} up")
        end.run(f"ip addr add {own[4]}/24 dev {tap}")
        end.run(f"ip addr add {own[6]}/64 dev {tap} nodad")
        end.run(f"ip route add default via {router[4]}")
        end.run(f"ip -6 route add default via {router[6]}")


def join(server: Namespace) -> None:
    """Put the server into the client's subnet. Routed packets cannot reach it any more."""
    server.run(f"ip addr add {NEIGHBOUR[4]}/24 dev {WAN_TAP}")
    server.run(f"ip addr add {NEIGHBOUR[6]}/64 dev {WAN_TAP} nodad")


def hop(router: Router, loss_percent: float) -> None:
    """A Wi-Fi hop that loses and delays what goes to the client."""
    lossy = f"netem delay {HOP_MS}ms loss {loss_percent}% limit 1000"
    router.run(f"/sbin/tc qdisc replace dev {router.lan_port} root {lossy}")


def wan(router: Router) -> None:
    """A slow and long WAN: downstream on an intermediate device, since only what
    leaves can be shaped."""
    tc, port = "/sbin/tc", router.wan_port
    router.run(
        f"""
        set -e
        {tc} qdisc add dev {port} root netem delay {WAN_MS}ms limit 1000
        /sbin/ip link add ifb0 type ifb 2>/dev/null || true
        /sbin/ip link set ifb0 up
        {tc} qdisc add dev ifb0 root netem delay {WAN_MS}ms rate {WAN_MBIT}mbit limit 100
        {tc} qdisc add dev {port} ingress
        {tc} filter add dev {port} parent ffff: protocol all prio 1 matchall \
            action mirred egress redirect dev ifb0
        """
    )


def plain(router: Router) -> None:
    """Plain links, as fast as the machine carries."""
    router.run(
        f"""
        for dev in {router.lan_port} {router.wan_port}; do
            /sbin/tc qdisc del dev $dev root; /sbin/tc qdisc del dev $dev ingress
        done 2>/dev/null; /sbin/ip link del ifb0 2>/dev/null; true
        """
    )


def losses(router: Router) -> int:
    """What the emulated hop has dropped so far."""
    said = router.run(f"/sbin/tc -s qdisc show dev {router.lan_port}")
    return int(said.partition("(dropped ")[2].split(",")[0])
