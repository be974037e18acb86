# SPDX-License-Identifier: GPL-2.0-or-later
"""What an owner types with opkg, and with apk, and what the guest needs for either."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab import ROOT
from lab.router import Router

sys.path[:0] = [str(ROOT / "package" / "portable"), str(ROOT / "test" / "package")]
import apk  # noqa: E402 - where it is has to be said first
import feeds  # noqa: E402
import packages  # noqa: E402

_TOOLS = Path(os.environ.get("OPENWRT_TOOLS", "/nonexistent"))
# What the guest has of the packages' dependencies, as the firmware's own packages.
_THERE = ("libc", "kmod-nft-queue", "kmod-nft-bridge", "nftables", "luci-base")
_OPKG_LIST = "/etc/opkg/customfeeds.conf"
_OPKG_CONF = "dest root /\ndest ram /tmp\nlists_dir ext /var/opkg-lists\noption check_signature\n"
_APK_LIST = "/etc/apk/repositories.d/customfeeds.list"
# Debian's busybox ends by a signal when its wget is given a time limit, as apk does.
_WGET = """#!/bin/sh
[ "$1 $2" != "-q -T" ] || { shift 3; set -- -q "$@"; }
exec /bin/busybox wget "$@"
"""


@dataclass(frozen=True)
class Manager:
    """A package manager: its commands, `{url}` being the feed's, and its place in the guest."""

    name: str
    # Of its packages, and of the feed's folder that has them.
    kind: str
    address: str
    trust: str
    update: str
    install: str
    listing: str
    upgrade: str
    remove: str
    # A line of the listing
    line: str
    # Makes the guest a router that has it; tells which it is.
    prepare: Callable[[Router, str], str]
    forget: str

    def shows(self, listing: str, name: str, version: str) -> bool:
        """Whether a listing has that version of that package."""
        wanted = self.line.format(name=name, version=version)
        return any(line.startswith(wanted) for line in listing.splitlines())


def has_apk(arch: str) -> bool:
    """Whether there is one for the guest: of this there is no stand-in."""
    return (_TOOLS / "apk").exists() and arch == platform.machine()


def _prepare_opkg(router: Router, arch: str) -> str:
    words = "Version: 1\nStatus: install ok installed\nArchitecture: all\n"
    status = [f"Package: {name}\n{words}" for name in _THERE]
    router.run("mkdir -p /usr/lib/opkg/info /etc/opkg /var/lock")
    router.run(f"cd /usr/lib/opkg/info; touch {' '.join(f'{name}.list' for name in _THERE)}")
    router.push("\n".join([*status, ""]).encode(), "/usr/lib/opkg/status")
    router.push(f"{_OPKG_CONF}arch all 1\narch {arch} 10\n".encode(), "/etc/opkg.conf")
    router.push(f"DISTRIB_ARCH='{arch}'\n".encode(), "/etc/openwrt_release")
    router.run(f": >{_OPKG_LIST}; rm -rf /etc/opkg/keys")
    real = _TOOLS / "opkg"
    if not real.exists() or arch != platform.machine():
        return "a stand-in for opkg"
    router.push(real.read_bytes(), "/bin/opkg")
    return "the real opkg"


def tools_beside(package: Path) -> bytes:
    """The program of the package pemi-tools that was made together with the daemon's."""
    path = package.with_name(package.name.replace("pemi", "pemi-tools", 1))
    read = packages.read_ipk if path.suffix == ".ipk" else packages.read_apk
    return read(path).files()["usr/sbin/pemi-tools"].data


def _prepare_apk(router: Router, arch: str) -> str:
    folders = "/etc/apk/keys /etc/apk/repositories.d /lib/apk/db /var/cache/apk /tmp/firmware"
    router.run(f"mkdir -p {folders}; : >/etc/apk/world; : >/lib/apk/db/installed")
    router.push(f"{arch}\n".encode(), "/etc/apk/arch")
    router.push((_TOOLS / "apk").read_bytes(), "/usr/bin/apk")
    router.push(_WGET.encode(), "/usr/bin/wget")
    router.run("chmod 755 /usr/bin/apk /usr/bin/wget")
    for about, _, files in feeds.pack_base():
        package = apk.write(about, "noarch", files, feeds.TIME)
        router.push(package, f"/tmp/firmware/{about.name}-{about.version}.apk")
    names = " ".join(f"/tmp/firmware/{name}-*.apk" for name in _THERE)
    # The guest's root is memory, of which apk warns otherwise.
    how = "--no-network --allow-untrusted --force-non-repository"
    router.run(f"apk add {how} {names} && rm -r /tmp/firmware")
    return "the real apk, " + router.run("apk --version").strip().rstrip(".")


OPKG = Manager(
    name="opkg",
    kind="ipk",
    address='echo "src/gz pemi {url}/ipk/$(. /etc/openwrt_release; echo $DISTRIB_ARCH)"'
    f" >>{_OPKG_LIST}",
    trust="wget -q -O /tmp/pemi.pub {url}/pemi.pub && opkg-key add /tmp/pemi.pub",
    update="opkg update",
    install="opkg install luci-app-pemi",
    listing="opkg list-installed | grep pemi",
    upgrade="opkg upgrade pemi luci-app-pemi",
    remove="opkg remove luci-app-pemi pemi",
    line="{name} - {version}",
    prepare=_prepare_opkg,
    forget="rm -rf /usr/lib/opkg /etc/opkg /etc/opkg.conf",
)
APK = Manager(
    name="apk",
    kind="apk",
    address=f'echo "{{url}}/apk/$(apk --print-arch)/packages.adb" >>{_APK_LIST}',
    trust="wget -q -O /etc/apk/keys/pemi.pem {url}/pemi.pem",
    update="apk update",
    install="apk add luci-app-pemi",
    listing="apk list -I | grep pemi",
    upgrade="apk upgrade pemi luci-app-pemi",
    remove="apk del luci-app-pemi pemi",
    line="{name}-{version} ",
    prepare=_prepare_apk,
    forget="rm -rf /lib/apk /etc/apk /usr/bin/apk /usr/bin/wget /var/cache/apk",
)
