# SPDX-License-Identifier: GPL-2.0-or-later
"""`--wifi PRESET`: the Wi-Fi hop as a radio channel, by a preset of test/air or a file like one."""

from __future__ import annotations

import functools
import hashlib
import tomllib
from pathlib import Path

from .programs import ROOT

_PRESETS = ROOT / "test/air/presets.toml"


class RadioError(ValueError):
    """A radio that is not there, in words for a person."""


@functools.cache
def presets() -> tuple[str, ...]:
    """All names, in the order of the file."""
    return tuple(tomllib.loads(_PRESETS.read_text()))


def check(name: str) -> None:
    """Says now what linkem would say in the middle of a series."""
    # As in linkem, a preset's name wins over a file's.
    if name not in presets() and not Path(name).is_file():
        raise RadioError(
            f"--wifi {name}: neither a file nor a preset of test/air; presets are "
            + ", ".join(presets())
        )


def to_json(name: str) -> object:
    """For the result file: a name, and of a file what tells others of this name from it. A
    preset is part of linkem."""
    if name in presets():
        return name
    return {"name": name, "sha256": hashlib.sha256(Path(name).read_bytes()).hexdigest()}
