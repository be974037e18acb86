# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the index of a folder of .apk files, `packages.adb`, signed."""

import hashlib
import struct
from pathlib import Path

import adb
import apk
import sign

SCHEMA = b"indx"
INDEX = {"description": 1, "packages": 2}
# What apk-tools calls SHA-512; the layout of a signature is its version 0.
SHA512, VERSION = 4, 0


def write(packages: list[Path], key: Path) -> bytes:
    """The bytes of the index of these files, signed with `key` (PEM, private)."""
    out = adb.Tree()
    contents = [path.read_bytes() for path in packages]
    # By name; there is one version of each.
    listed = [_listed(content, out) for content in sorted(contents, key=_name)]
    root = out.object({INDEX["packages"]: out.array(listed)})
    tree = bytes(out.finish(root))
    return adb.file(
        SCHEMA, adb.block(adb.BLOCK_ADB, tree) + adb.block(adb.BLOCK_SIGNATURE, _signed(tree, key))
    )


def _listed(package: bytes, out: adb.Tree) -> int:
    """What the package says of itself, its size, and the sum that vouches for the rest."""
    tree, info = _info(package)
    fields = {number: adb.copy(tree, word, out) for number, word in enumerate(info, start=1)}
    fields[apk.INFO["file-size"]] = out.number(len(package))
    # In a package it is a name of its content, and apk would not check it.
    fields[apk.INFO["hashes"]] = out.blob(hashlib.sha256(tree).digest())
    return out.object(fields)


def _name(package: bytes) -> bytes:
    tree, info = _info(package)
    return adb.blob(tree, info[apk.INFO["name"] - 1])


def _info(package: bytes) -> tuple[bytes, list[int]]:
    """The package's tree of values, and of those the ones that an index has."""
    tree = adb.first_block(package, apk.SCHEMA)
    parts = adb.words(tree, adb.root(tree))
    return tree, adb.words(tree, parts[apk.PACKAGE["info"] - 1])


def _signed(tree: bytes, key: Path) -> bytes:
    """The schema, the signature's head and the tree's sum are what is signed."""
    head = struct.pack("BB", VERSION, SHA512) + sign.ecdsa_key_id(key)
    return head + sign.ecdsa(SCHEMA + head + hashlib.sha512(tree).digest(), key)
