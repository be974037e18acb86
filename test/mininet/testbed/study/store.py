# SPDX-License-Identifier: GPL-2.0-or-later
"""Finished runs on disk, so that an interrupted experiment goes on where it was.

A run is found again by everything that decides it: links, application, seed, and the
programs themselves. A new build of the daemon is measured anew; the runs without it
are not.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from pathlib import Path

from ..measure.result import Run, write_json
from ..setups import Setup

# Options that came when there were runs already, which are found as if there were none.
_LATER = ("restart_daemon_after_s",)
_LATER_OF_LINKS = ("wifi1", "wifi1_lossless", "trace1", "outages1")


class Store:
    """A folder with one file a run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, setup: Setup) -> Run | None:
        """The run, if it was done before."""
        try:
            return json.loads(self._path(setup).read_text())
        except FileNotFoundError:
            return None

    def put(self, setup: Setup, run: Run) -> None:
        """Written whole or not at all."""
        write_json(self._path(setup), run)

    def _path(self, setup: Setup) -> Path:
        programs = {path.name: digest(path) for path in setup.needed()}
        what = {field.name: getattr(setup, field.name) for field in dataclasses.fields(setup)}
        what = {name: value for name, value in what.items() if name not in _LATER or value}
        links = setup.scenario.to_json()
        links = {
            name: value for name, value in links.items() if name not in _LATER_OF_LINKS or value
        }
        what |= {"programs": programs, "scenario": links}
        what["assist"] = setup.assist.name
        what["app"] = dataclasses.asdict(setup.app)
        what["beside"] = [dataclasses.asdict(app) for app in setup.beside]
        text = json.dumps(what, sort_keys=True, default=str)
        return self._folder / f"{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"


def digest(path: Path) -> str:
    """Of a program's bytes."""
    about = path.stat()
    return _digest(path, about.st_mtime_ns, about.st_size)


@functools.cache
def _digest(path: Path, _mtime_ns: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
