# SPDX-License-Identifier: GPL-2.0-or-later
"""What comes in at one of the two ends, whoever it is for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from testbed.world.process import ExperimentError

from .namespace import Namespace, die_with_parent

STRANGER = Path(__file__).with_name("stranger.py")


class Watch:
    """Sees every frame while it lasts."""

    def __init__(self, end: Namespace, device: str) -> None:
        self._process = end.popen(
            [sys.executable, str(STRANGER), "watch", device],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,
        )
        if self._process.stdout.readline().strip() != "ready":
            raise ExperimentError(f"nobody watches {device}")

    def take(self) -> list[tuple[str, str, str, int]]:
        """Kind, sender, receiver and number of frames since the last call."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return [tuple(entry) for entry in json.loads(self._process.stdout.readline())]

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def stranger(end: Namespace, *what: str) -> None:
    """Does something and ends (stranger.py)."""
    end.run(" ".join([sys.executable, str(STRANGER), *what]))
