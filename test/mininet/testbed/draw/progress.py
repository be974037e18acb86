# SPDX-License-Identifier: GPL-2.0-or-later
"""One line that says how far a series of runs is."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TextIO


class Progress:
    """On a terminal the line is rewritten in place; elsewhere (a CI log) each run
    gets one line when it begins and one when it ends."""

    def __init__(self, expected_s: Sequence[float], stream: TextIO = sys.stderr) -> None:
        self._expected_s = expected_s
        self._total = len(expected_s)
        self._stream = stream
        self._live = stream.isatty()
        self._done = 0
        self._spent_s = 0.0
        self._what = ""
        self._width = 0
        self._drawn_at = 0.0
        self._began = time.monotonic()
        self._run_began = self._began

    def begin(self, what: str) -> None:
        """The next run starts."""
        self._what = what
        self._run_began = time.monotonic()
        self._drawn_at = 0.0
        if self._live:
            self.tick()
        else:
            self._print(f"{self._head()} ...")

    def tick(self) -> None:
        """Call often while a run is going on."""
        now = time.monotonic()
        if self._live and now - self._drawn_at >= 0.5:
            self._drawn_at = now
            line = f"{self._head()}  {now - self._run_began:.0f} s  {self._times()}"
            self._stream.write("\r" + line.ljust(self._width))
            self._stream.flush()
            self._width = len(line)

    def end(self, outcome: str) -> None:
        """The run is over; `outcome` is its result in a few words."""
        now = time.monotonic()
        took = now - self._run_began
        self._spent_s = now - self._began
        line = f"{self._head()}: {outcome} ({took:.1f} s)"
        self._done += 1
        if self._live:
            self._stream.write("\r" + " " * self._width + "\r")
            self._width = 0
        self._print(f"{line}  {self._times()}")

    def clear(self) -> None:
        """Leave the line alone: something else is about to be printed."""
        if self._live and self._width:
            self._stream.write("\n")
            self._width = 0

    def _head(self) -> str:
        return f"[{min(self._done + 1, self._total)}/{self._total}] {self._what}"

    def _times(self) -> str:
        now = time.monotonic()
        elapsed = f"elapsed {_clock(now - self._began)}"
        left = sum(self._expected_s[self._done :])
        if self._done == self._total:
            return elapsed
        if self._done:
            # What the finished runs took, against what they were thought to take.
            left *= self._spent_s / sum(self._expected_s[: self._done])
        left -= now - self._began - self._spent_s
        return f"{elapsed}, about {_clock(max(left, 0))} left"

    def _print(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
