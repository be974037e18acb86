# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes an .apk of apk-tools 3, as OpenWrt has it from 25.12 on, without a signature."""

import hashlib
import struct
from pathlib import PurePosixPath

import adb
import scripts
from meta import Meta
from tree import File, folders

SCHEMA = b"pckg"

# Numbers of the fields, as apk-tools counts them
PACKAGE = {"info": 1, "paths": 2, "scripts": 3}
INFO = {
    "name": 1,
    "version": 2,
    "hashes": 3,
    "description": 4,
    "arch": 5,
    "license": 6,
    "origin": 7,
    "maintainer": 8,
    "url": 9,
    "installed-size": 12,
    "file-size": 13,
    "depends": 15,
    "provides": 16,
    "tags": 21,
}
DEPENDENCY = {"name": 1}
FOLDER = {"name": 1, "acl": 2, "files": 3}
FILE = {"name": 1, "acl": 2, "size": 3, "mtime": 4, "hash": 5}
ACL = {"mode": 1, "user": 2, "group": 3}
SCRIPTS = {"post-install": 3, "pre-deinstall": 4, "post-upgrade": 7}

# apk's own name for a package's content: so many bytes of a SHA-256
IDENTITY = bytes(20)


def write(meta: Meta, arch: str, tree: list[File], time: int) -> bytes:
    """The package's bytes; all files in it bear the same `time`."""
    tree = sorted([*tree, *_records(meta, tree)], key=lambda file: file.path)
    out = adb.Tree()
    identity = out.blob(IDENTITY)
    words = {
        "name": out.blob(meta.name),
        "version": out.blob(meta.version),
        "hashes": identity,
        "description": out.blob(" ".join(meta.description)),
        "arch": out.blob(arch),
        "license": out.blob(meta.license),
        "origin": out.blob(meta.source),
        "maintainer": out.blob(meta.maintainer),
        "url": out.blob(meta.url),
        "installed-size": out.number(sum(len(file.data) for file in tree)),
        "depends": _dependencies(out, meta.depends),
        # As the SDK does for every package, for variants of it
        "provides": _dependencies(out, [f"{meta.name}-any"]),
        "tags": out.array([out.blob(f"openwrt:section={meta.section}")]),
    }
    # Folders and the files in them, both sorted by their bytes; apk expects that.
    paths, data = [], b""
    for path_number, folder in enumerate(sorted(["", *map(str, folders(tree))]), start=1):
        files = [file for file in tree if file.path.parent == PurePosixPath(folder)]
        files.sort(key=lambda file: file.path.name)
        for file_number, file in enumerate(files, start=1):
            if file.data:
                place = struct.pack("<II", path_number, file_number)
                data += adb.block(adb.BLOCK_DATA, place + file.data)
        entry = {
            "name": out.blob(folder),
            "acl": _acl(out, 0o755),
            "files": out.array([_file(out, file, time) for file in files]),
        }
        paths.append(_object(out, FOLDER, entry))

    made = scripts.for_apk(meta.name, meta.postinst)
    texts = {name: out.blob(text) for name, text in made.items()}
    package = {
        "info": _object(out, INFO, words),
        "paths": out.array(paths),
        "scripts": _object(out, SCRIPTS, texts),
    }
    header = out.finish(_object(out, PACKAGE, package))
    # Taken while its own place is still zero
    digest = hashlib.sha256(header).digest()[: len(IDENTITY)]
    header[adb.blob_place(identity, IDENTITY)] = digest

    return adb.file(SCHEMA, adb.block(adb.BLOCK_ADB, bytes(header)) + data)


def _records(meta: Meta, tree: list[File]) -> list[File]:
    """What OpenWrt's scripts read about an installed package."""

    def record(kind: str, lines: list[str]) -> File:
        path = PurePosixPath(f"lib/apk/packages/{meta.name}.{kind}")
        return File(path, 0o644, "".join(f"{line}\n" for line in lines).encode())

    by_path = {f"/{file.path}": file.data for file in tree}
    kept = [path for path in meta.conffiles if path in by_path]
    found = [record("rusers", [meta.user])] if meta.user else []
    # Made before the records that follow it, but after that one
    listed = sorted([*by_path, *(f"/{users.path}" for users in found)])
    found.append(record("list", listed))
    if kept:
        sums = [f"{path} {hashlib.sha256(by_path[path]).hexdigest()}" for path in kept]
        found += [record("conffiles", kept), record("conffiles_static", sums)]
    return found


def _dependencies(out: adb.Tree, names: list[str]) -> int:
    entries = [_object(out, DEPENDENCY, {"name": out.blob(name)}) for name in sorted(names)]
    return out.array(entries)


def _file(out: adb.Tree, file: File, time: int) -> int:
    entry = {
        "name": out.blob(file.path.name),
        "acl": _acl(out, file.mode),
        "size": out.number(len(file.data)),
        "mtime": out.number(time),
        "hash": out.blob(hashlib.sha256(file.data).digest()),
    }
    return _object(out, FILE, entry)


def _acl(out: adb.Tree, mode: int) -> int:
    root = out.blob("root")
    return _object(out, ACL, {"mode": out.number(mode), "user": root, "group": root})


def _object(out: adb.Tree, numbers: dict[str, int], words: dict[str, int]) -> int:
    return out.object({numbers[name]: word for name, word in words.items()})
