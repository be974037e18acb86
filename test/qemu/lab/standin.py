# SPDX-License-Identifier: GPL-2.0-or-later
"""The router made of Debian's kernel and OpenWrt's tools (image.sh)."""

from __future__ import annotations

from pathlib import Path

from testbed.world.process import ExperimentError

from .agent import Agent
from .path import LAN, WAN
from .qemu import HARDWARE, Qemu, interfaces
from .router import Answer, Router


class StandIn(Router):
    """Talks to the agent in the guest."""

    lan_port, wan_port = "eth0", "eth1"

    def __init__(self, arch: str, folder: Path, taps: list[int]) -> None:
        self._hardware = HARDWARE[arch]
        self.patience = self._hardware.patience
        self._agent = Agent()
        options = ["-kernel", str(folder / "kernel"), "-initrd", str(folder / "initrd.cpio")]
        options += ["-append", f"{self._hardware.append} panic=-1"]
        options += [*interfaces(taps), *self._agent.options()]
        self._qemu = Qemu(arch, folder, options, [*taps, *self._agent.descriptors()])

    def __enter__(self) -> StandIn:
        try:
            self._agent.attach(self._qemu, 60 * self.patience)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._qemu.__exit__()
        self._agent.close()

    def attempt(self, command: str, timeout_s: float = 20) -> Answer:
        return self._agent.run(command, timeout_s * self.patience)

    def push(self, data: bytes, path: str) -> None:
        command = f"head -c {len(data)} /dev/pemi.data >{path}"
        answer = self._agent.run(command, 20 * self.patience, data)
        if answer.code != 0:
            raise ExperimentError(f"router: {path} could not be written: {answer.output}")

    def console_tail(self) -> str:
        return self._qemu.console_tail()

    def route(self) -> None:
        # Absolute: this busybox has an `ip` of its own and prefers it.
        self.run(
            f"""
            set -e
            sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
            /sbin/ip link add br-lan type bridge
            /sbin/ip link set eth0 master br-lan
            for i in eth0 eth1 br-lan; do /sbin/ip link set $i up; done
            /sbin/ip addr add {LAN[4]}/24 dev br-lan
            /sbin/ip addr add {WAN[4]}/24 dev eth1
            /sbin/ip addr add {LAN[6]}/64 dev br-lan nodad
            /sbin/ip addr add {WAN[6]}/64 dev eth1 nodad
            """
        )
        self.push(b"lan br-lan\nwan eth1\n", "/var/state/devices")
        self.firewall(offload=False)

    def log(self) -> str:
        return self.run("cat /var/log/messages")

    def bridge(self) -> None:
        self.run(
            """
            set -e
            nft flush ruleset
            /sbin/ip addr flush dev eth1
            /sbin/ip link set eth1 master br-lan
            """
        )

    def install(self, package: Path) -> None:
        self.push(package.read_bytes(), "/tmp/pemi.ipk")
        self.run(
            """
            set -e
            mkdir -p /tmp/ipk
            tar -xzf /tmp/pemi.ipk -C /tmp/ipk
            tar -xzf /tmp/ipk/control.tar.gz -C /tmp/ipk
            tar -tzf /tmp/ipk/data.tar.gz | sed 's|^[.]||' | grep -v '/$' >/usr/lib/pemi.list
            tar -xzf /tmp/ipk/data.tar.gz -C /
            echo 'pemi:x:5443:5443:pemi:/var/run/pemi:/bin/false' >>/etc/passwd
            echo 'pemi:x:5443:' >>/etc/group
            rm -r /tmp/pemi.ipk /tmp/ipk
            for script in /etc/uci-defaults/*-pemi; do sh $script && rm $script; done
            /etc/init.d/pemi enable
            """
        )

    def remove(self) -> None:
        self.run(
            """
            /etc/init.d/pemi stop
            /etc/init.d/pemi disable
            xargs rm -f </usr/lib/pemi.list
            rm /usr/lib/pemi.list
            """
        )
