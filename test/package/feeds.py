# SPDX-License-Identifier: GPL-2.0-or-later
"""Feeds of small packages, with keys of their own, laid out by the code that lays out ours."""

import dataclasses
import gzip
import subprocess
import sys
from pathlib import Path, PurePosixPath

import apk
import apk_index
import every
import ipk
import meta
import opkg_index
import sign
from tree import File, below

ROOT = Path(__file__).resolve().parents[2]
ABOUT = meta.read(ROOT / "package/pemi/Makefile")
PORTABLE = ROOT / "package/portable"
# A daemon is not needed to see a package come and go.
DAEMON = File(PurePosixPath("usr/sbin/pemi"), 0o755, b"#!/bin/sh\n")
TOOLS = File(PurePosixPath("usr/sbin/pemi-tools"), 0o755, b"#!/bin/sh\n")
TIME = 1_700_000_000
ARCH = "x86_64"


def make_keys(folder: Path) -> subprocess.CompletedProcess:
    command = [PORTABLE / "feed-key.sh", folder]
    return subprocess.run(command, capture_output=True, text=True)


def pack(
    version: str = ABOUT.version, daemon: File = DAEMON, daemon_arch: str = ARCH
) -> list[tuple[meta.Meta, str, list[File]]]:
    """Our packages as if of that version."""
    found = [(ABOUT, daemon_arch, [daemon, *below(ROOT / "files")])]
    found += [(meta.read_tools(ROOT / "package/pemi/Makefile"), daemon_arch, [TOOLS])]
    found += [(about, "all", files) for about, files in every.all_packages()]
    return [
        (dataclasses.replace(about, version=version), arch, files) for about, arch, files in found
    ]


def pack_base() -> list[tuple[meta.Meta, str, list[File]]]:
    """What ours depend on, empty."""
    names = ["libc", "kmod-nft-queue", "kmod-nft-bridge", "nftables", "luci-base"]
    names += ["prometheus-node-exporter-lua", "libubus-lua"]
    bare = {"depends": [], "user": "", "conffiles": (), "postinst": ""}
    return [
        (dataclasses.replace(ABOUT, name=name, source=f"feeds/base/{name}", **bare), "all", [])
        for name in names
    ]


def lay_out(kind: str, packages: list, keys: Path, folder: Path):
    """A folder that opkg or apk can be pointed at."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    paths = []
    for about, arch, files in packages:
        if kind == "ipk":
            path = folder / f"{about.name}_{about.version}_{arch}.ipk"
            path.write_bytes(ipk.write(about, arch, files, TIME))
        else:
            path = folder / f"{about.name}-{about.version}.apk"
            arch = "noarch" if arch == "all" else arch
            path.write_bytes(apk.write(about, arch, files, TIME))
        paths.append(path)
    if kind == "ipk":
        index = folder / "Packages"
        index.write_bytes(opkg_index.write(paths))
        (folder / "Packages.gz").write_bytes(gzip.compress(index.read_bytes(), mtime=0))
        sign.signify(index, keys / "pemi.sec")
    else:
        (folder / "packages.adb").write_bytes(apk_index.write(paths, keys / "pemi.key"))


def make_feed(packages: Path, keys: Path, out: Path, *arches: str):
    """What the end of `make feed` does."""
    command = [sys.executable, PORTABLE / "feed.py", packages, keys, out, *arches]
    subprocess.run(command, check=True, capture_output=True)
