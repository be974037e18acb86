# SPDX-License-Identifier: GPL-2.0-or-later
"""client - [wifi] - router - [wan] - server, each in a network namespace of its own.

`wifi` and `wan` are where the links are emulated; they forward frames between
their two interfaces and take no part in IP. Building all this takes a fifth of
a second, so every run gets a fresh one and nothing leaks from run to run.
"""

from __future__ import annotations

from types import TracebackType

from .process import ExperimentError, NotReady

CLIENT_MAC, SERVER_MAC = "02:00:00:00:01:02", "02:00:00:00:02:02"
ROUTER_MACS = ("02:00:00:00:01:01", "02:00:00:00:02:01")
# The router's interface towards the clients.
ROUTER_WIFI = "router-eth0"
# (client, router's side of link 1, router's side of link 2, server)
ADDRESSES = {
    4: ("10.0.1.2", "10.0.1.1", "10.0.2.1", "10.0.2.2"),
    6: ("fd00:0:0:1::2", "fd00:0:0:1::1", "fd00:0:0:2::1", "fd00:0:0:2::2"),
}
_PREFIX = {4: 24, 6: 64}
_OFFLOADS = "gro off gso off tso off tx off rx off"


class Topology:
    """The five namespaces; a context manager that takes everything away again."""

    def __init__(self, *, ipv6: bool) -> None:
        self.version = 6 if ipv6 else 4
        self.client_ip, self.router_ip, _, self.server_ip = ADDRESSES[self.version]
        self._net = None

    def __enter__(self) -> Topology:
        try:
            from mininet.log import setLogLevel
            from mininet.net import Mininet
        except ImportError as error:
            raise NotReady(
                f"Mininet is not there for this Python ({error}); run `make setup` and use "
                "/usr/bin/python3"
            ) from error
        setLogLevel("error")
        self._net = Mininet(controller=None)
        try:
            self._build()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._net.stop()

    def _build(self) -> None:
        net = self._net
        self.client, self.wifi, self.router, self.wan, self.server = (
            net.addHost(name, ip=None) for name in ("client", "wifi", "router", "wan", "server")
        )
        net.addLink(self.client, self.wifi, addr1=CLIENT_MAC)
        net.addLink(self.wifi, self.router, addr2=ROUTER_MACS[0])
        net.addLink(self.router, self.wan, addr1=ROUTER_MACS[1])
        net.addLink(self.wan, self.server, addr2=SERVER_MAC)
        net.build()

        # Emulated loss hits the n-th packet of a link. Whatever the kernel would
        # send of its own accord (router solicitations, duplicate address detection,
        # neighbour lookups) would shift the pattern from run to run.
        for node in net.hosts:
            quiet = ["net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0"]
            for interface in node.intfNames():
                quiet.append(f"net.ipv4.conf.{interface}.rp_filter=0")
                if self.version == 6 and node not in (self.wifi, self.wan):
                    quiet += [
                        f"net.ipv6.conf.{interface}.{setting}"
                        for setting in ("accept_ra=0", "dad_transmits=0", "addr_gen_mode=1")
                    ]
                else:
                    quiet.append(f"net.ipv6.conf.{interface}.disable_ipv6=1")
            must(node, "sysctl -qw " + " ".join(quiet))
            for interface in node.intfNames():
                # Emulators and the queue must see packets as they are on the wire,
                # not batches of them with unfinished checksums.
                must(node, f"ethtool -K {interface} {_OFFLOADS}", harmless="Actual changes")

        client, router_1, router_2, server = ADDRESSES[self.version]
        forwarding = {4: "net.ipv4.ip_forward=1", 6: "net.ipv6.conf.all.forwarding=1"}
        must(self.router, f"sysctl -qw {forwarding[self.version]}")
        self._address(self.client, "client-eth0", client)
        self._address(self.router, ROUTER_WIFI, router_1)
        self._address(self.router, "router-eth1", router_2)
        self._address(self.server, "server-eth0", server)
        self._neighbour(self.client, "client-eth0", router_1, ROUTER_MACS[0])
        self._neighbour(self.router, ROUTER_WIFI, client, CLIENT_MAC)
        self._neighbour(self.router, "router-eth1", server, SERVER_MAC)
        self._neighbour(self.server, "server-eth0", router_2, ROUTER_MACS[1])
        must(self.client, f"ip -{self.version} route add default via {router_1}")
        must(self.server, f"ip -{self.version} route add default via {router_2}")

    def points(self) -> dict[str, tuple[object, str]]:
        """Where packets can be seen: node and interface by the name of the point."""
        return {
            "server": (self.server, "server-eth0"),
            "router_wan": (self.router, "router-eth1"),
            "router_wifi": (self.router, ROUTER_WIFI),
            "client": (self.client, "client-eth0"),
        }

    def _address(self, node, interface: str, address: str) -> None:
        nodad = " nodad" if self.version == 6 else ""
        must(node, f"ip addr add {address}/{_PREFIX[self.version]} dev {interface}{nodad}")

    def _neighbour(self, node, interface: str, address: str, mac: str) -> None:
        must(node, f"ip neigh replace {address} lladdr {mac} nud permanent dev {interface}")


def must(node, command: str, harmless: str | None = None) -> None:
    """Run a command in a namespace; whatever it says is an error, unless it begins
    with the words known to be harmless."""
    said, error, code = node.pexec(command)
    if code != 0 or (error and not (harmless and error.startswith(harmless))):
        raise ExperimentError(f"{node.name}: `{command}` failed: {(error or said).strip()}")
