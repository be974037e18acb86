# SPDX-License-Identifier: GPL-2.0-or-later
"""An official OpenWrt image, reached by ssh from the client's side as a user would.

Not run where this was written: no image could be downloaded there.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import shutil
import subprocess
import urllib.request
from pathlib import Path

from .namespace import Namespace
from .path import CLIENT, LAN, LAN_TAP, SERVER, WAN
from .qemu import HARDWARE, MachineError, Qemu, interfaces
from .router import Answer, Router

_DOWNLOADS = "https://downloads.openwrt.org/releases/{version}/targets/{image}"
_IMAGES = {
    "x86_64": "x86/64/openwrt-{version}-x86-64-generic-squashfs-combined.img.gz",
    "arm64": "armsr/armv8/openwrt-{version}-armsr-armv8-generic-initramfs-kernel.bin",
    "mipsel": "malta/le/openwrt-{version}-malta-le-vmlinux-initramfs.elf",
}
# The router's key is another one at every boot.
_OPTIONS = "StrictHostKeyChecking=no UserKnownHostsFile=/dev/null LogLevel=ERROR BatchMode=yes"
_SSH = ["ssh", *(word for option in _OPTIONS.split() for word in ("-o", option))]
_SSH_FAILED = 255


def find_image(wanted: str, arch: str, cache: Path) -> Path:
    """A file, or a release by its number, which is downloaded."""
    if not re.fullmatch(r"\d+\.\d+\.\d+(-rc\d+)?", wanted):
        return Path(wanted)
    address = _DOWNLOADS.format(version=wanted, image=_IMAGES[arch].format(version=wanted))
    image = cache / address.rpartition("/")[2]
    if not image.exists():
        cache.mkdir(parents=True, exist_ok=True)
        part = image.with_suffix(".part")
        try:
            with urllib.request.urlopen(address, timeout=30) as source, part.open("wb") as target:
                shutil.copyfileobj(source, target)
        except OSError as error:
            raise MachineError(f"{address} cannot be downloaded: {error}") from error
        part.rename(image)
    return image


class OpenWrt(Router):
    """Boots a disk image, or a kernel with everything in it (`...initramfs...`)."""

    lan_port, wan_port = "eth0", "eth1"
    # Both package managers keep what a user has changed.
    kept = frozenset({"/etc/config/pemi"})

    def __init__(
        self, arch: str, folder: Path, taps: list[int], client: Namespace, image: Path
    ) -> None:
        self._client = client
        # Kernel modules and tools that are not in the image, as packages beside it.
        self._others = [*image.parent.glob("*.ipk"), *image.parent.glob("*.apk")]
        hardware = HARDWARE[arch]
        # Images need longer than the stand-in to come up, and so does ssh for each command.
        self.patience = 2 * hardware.patience
        if "initramfs" in image.name:
            boot = ["-kernel", str(image), "-append", hardware.append]
        else:
            disk = folder / "openwrt.img"
            _unpack(image, disk)
            boot = ["-drive", f"file={disk},format=raw,if=virtio"]
        self._qemu = Qemu(arch, folder, [*boot, *interfaces(taps)], taps)

    def __enter__(self) -> OpenWrt:
        try:
            for command in (
                f"ip link set {LAN_TAP} up",
                f"ip addr replace {CLIENT[4]}/24 dev {LAN_TAP}",
            ):
                self._client.run(command)
            self.wait(self._is_up, "ssh answers", 120)
            self._apk = self._ssh("command -v apk", 20).code == 0
            self.package_suffix = ".apk" if self._apk else ".ipk"
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._qemu.__exit__()

    def _is_up(self) -> bool:
        self._qemu.check()
        return self._ssh("true", 20).code == 0

    def _ssh(self, command: str, timeout_s: float, data: bytes = b"") -> Answer:
        argv = [*_SSH, f"root@{LAN[4]}", command]
        process = self._client.popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            output, _ = process.communicate(data, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            return Answer(137, f"{output.decode(errors='replace')}\n(had {timeout_s:.0f} s)")
        return Answer(process.returncode, output.decode(errors="replace"))

    def attempt(self, command: str, timeout_s: float = 20) -> Answer:
        answer = self._ssh(command, timeout_s * self.patience)
        if answer.code == _SSH_FAILED:
            self._qemu.check()
            raise MachineError(f"ssh: {answer.output}")
        return answer

    def push(self, data: bytes, path: str) -> None:
        answer = self._ssh(f"cat >{path}", 20 * self.patience, data)
        if answer.code != 0:
            raise MachineError(f"{path} could not be written: {answer.output}")

    def log(self) -> str:
        return self.run("logread")

    def status(self) -> dict:
        return json.loads(self.run("ubus call pemi status"))

    def console_tail(self) -> str:
        return self._qemu.console_tail()

    def install(self, package: Path) -> None:
        names = []
        for file in (*self._others, package):
            names.append(f"/tmp/{file.name}")
            self.push(file.read_bytes(), names[-1])
        add = "apk add --allow-untrusted" if self._apk else "opkg install"
        # What is beside the image first: the package depends on it.
        self.run(f"{add} {' '.join(map(shlex.quote, names))}", timeout_s=120)
        self.run(f"rm {' '.join(map(shlex.quote, names))}")

    def remove(self) -> None:
        self.run("apk del pemi" if self._apk else "opkg remove pemi", timeout_s=60)

    def route(self) -> None:
        self.run(
            f"""
            uci set network.lan.ip6addr={LAN[6]}/64
            uci -q delete network.wan6
            uci set network.wan=interface
            uci set network.wan.device={self.wan_port}
            uci set network.wan.proto=static
            uci set network.wan.ipaddr={WAN[4]}/24
            uci set network.wan.gateway={SERVER[4]}
            uci set network.wan.ip6addr={WAN[6]}/64
            uci commit network
            reload_config
            """
        )
        self.wait(lambda: self.succeeds(f"ip addr show | grep -q {WAN[6]}"), "the WAN is up", 20)
        self.firewall(offload=False)

    def bridge(self) -> None:
        self.run(
            f"""
            uci delete network.wan
            uci add_list network.@device[0].ports={self.wan_port}
            uci commit network
            reload_config
            """
        )
        ready = f"ls /sys/class/net/br-lan/brif/{self.wan_port}"
        self.wait(lambda: self.succeeds(ready), "the WAN port is in the bridge", 20)


def _unpack(image: Path, disk: Path) -> None:
    if image.suffix != ".gz":
        shutil.copyfile(image, disk)
        return
    with gzip.open(image) as source, disk.open("wb") as target:
        try:
            shutil.copyfileobj(source, target)
        except gzip.BadGzipFile:
            # Official images have a signature after the compressed data.
            if not target.tell():
                raise
