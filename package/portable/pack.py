#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Packs the daemon and files/ into a package, and the tools beside it into another:
pack.py {ipk,apk} ARCH BINARY OUT; or what is the same for all into theirs:
pack.py {ipk,apk} luci OUT, the LuCI app and its translations, or
pack.py {ipk,apk} collector OUT, that for Prometheus."""

import os
import subprocess
import sys
from pathlib import Path

import apk
import every
import ipk
import meta
import tree
from meta import Meta
from tree import File

ROOT = Path(__file__).resolve().parents[2]
# What opkg and apk call packages that are for every processor
EVERY = {"ipk": "all", "apk": "noarch"}


def main() -> None:
    match sys.argv[1:]:
        case [kind, word, out] if word in every.WORDS:
            for about, files in every.packages(word):
                path = pack(kind, EVERY[kind], about, files, Path(out))
                print(f"{path}: {size(path)}")
        case [kind, arch, binary, out]:
            makefile, daemon = ROOT / "package/pemi/Makefile", Path(binary)
            tools = daemon.with_name("pemi-tools")
            files = tree.collect(daemon, ROOT / "files")
            path = pack(kind, arch, meta.read(makefile), files, Path(out))
            print(f"{path}: {size(path)}; the daemon: {size(daemon)}")
            path = pack(kind, arch, meta.read_tools(makefile), [tree.program(tools)], Path(out))
            print(f"{path}: {size(path)}; the tools: {size(tools)}")
        case _:
            sys.exit(__doc__)


def pack(kind: str, arch: str, about: Meta, files: list[File], out: Path) -> Path:
    """Writes a package and says where."""
    writers = {
        "ipk": (ipk.write, f"{about.name}_{about.version}_{arch}.ipk"),
        # The name that apk and OpenWrt use has no architecture in it.
        "apk": (apk.write, f"{arch}/{about.name}-{about.version}.apk"),
    }
    write, name = writers[kind]
    path = out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(write(about, arch, files, source_time()))
    return path


def size(path: Path) -> str:
    """In KiB as well, which is what README.md has."""
    found = path.stat().st_size
    return f"{found} bytes, {found / 1024:.0f} KiB"


def source_time() -> int:
    """Of the last commit, so that building twice gives the same bytes."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    answer = subprocess.run(git, capture_output=True, text=True)
    if answer.returncode == 0:
        return int(answer.stdout)
    # Not a repository, but an unpacked release
    return int((ROOT / "CHANGELOG.md").stat().st_mtime)


if __name__ == "__main__":
    main()
