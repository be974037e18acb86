# SPDX-License-Identifier: GPL-2.0-or-later
"""The files that a package installs, with their modes; all belong to root."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# By the folder; the feed's Makefile has the same rules.
MODES = {"etc/init.d": 0o755, "etc/config": 0o600}


@dataclass(frozen=True)
class File:
    path: PurePosixPath
    mode: int
    data: bytes


def collect(binary: Path, files: Path) -> list[File]:
    """The daemon and everything in `files`, by path."""
    return sorted([program(binary), *below(files)], key=lambda file: file.path)


def program(binary: Path) -> File:
    """By the name that it has."""
    return File(PurePosixPath("usr/sbin") / binary.name, 0o755, binary.read_bytes())


def below(folder: Path, place: str = "") -> list[File]:
    """Everything in the folder, by path, as it is installed below `place`."""
    tree = []
    for found in folder.rglob("*"):
        if found.is_file():
            path = PurePosixPath(place) / found.relative_to(folder).as_posix()
            tree.append(File(path, MODES.get(str(path.parent), 0o644), found.read_bytes()))
    return sorted(tree, key=lambda file: file.path)


def folders(tree: list[File]) -> list[PurePosixPath]:
    """Every folder that the files are in, by path, without the root."""
    found = {parent for file in tree for parent in file.path.parents}
    return sorted(found - {PurePosixPath(".")})
