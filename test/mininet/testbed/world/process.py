# SPDX-License-Identifier: GPL-2.0-or-later
"""Child processes that cannot outlive us and that say why they failed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from . import interruption

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_POLL_S = 0.01
_TAIL = 2000


class ExperimentError(Exception):
    """An experiment could not be carried out; the message is for a person."""


class NotReady(ExperimentError):
    """Something that an experiment needs is not there: a program, a tool, a right."""


class GaveUp(ExperimentError):
    """A client ended without a result, or was not done in time: links may be so bad."""


def _die_with_parent() -> None:
    # Also when we are killed with SIGKILL, where no clean-up code of ours runs.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """One running program in one of the namespaces."""

    def __init__(self, name: str, node, argv: list[str], logs: Path) -> None:
        self.name = name
        self.stdout_path = logs / f"{name}.out"
        self.stderr_path = logs / f"{name}.err"
        with self.stdout_path.open("wb") as out, self.stderr_path.open("wb") as err:
            # mnexec enters the namespace and becomes the program, so the process
            # id is the program's own.
            self._process: subprocess.Popen = node.popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                preexec_fn=_die_with_parent,
            )
        self.pid = self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def output(self) -> str:
        """What it has printed so far."""
        return self.stdout_path.read_text(errors="replace")

    def failure(self, what: str, kind: type[ExperimentError] = ExperimentError) -> ExperimentError:
        """An error that shows the end of what the program said."""
        tail = (self.stderr_path.read_text(errors="replace") or self.output())[-_TAIL:].strip()
        said = "\n".join(f"    {line}" for line in tail.splitlines()) or "    (it said nothing)"
        return kind(f"{self.name} {what}\n{said}")

    def check(self) -> None:
        """Raise if it has ended although it should still run."""
        if self.exit_code is not None:
            # Ctrl-C in a terminal reaches every program there.
            interruption.check()
            raise self.failure(f"ended early with {describe_exit(self.exit_code)}")

    def kill(self) -> None:
        """End it at once, as a crash would."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Ask it to end, and make it end if it does not."""
        if self.exit_code is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self.failure(f"did not stop within {timeout_s:g} s of SIGTERM") from None

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        # On the way out of a failed run nothing is asked politely any more.
        if self.exit_code is None:
            self.kill()


def describe_exit(code: int) -> str:
    """`exit code 1`, or the name of the signal."""
    if code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"


def wait_until(
    ready: Callable[[], bool],
    what: str,
    alive: Iterable[Child],
    timeout_s: float = 15.0,
) -> None:
    """Wait for an event while these programs keep running."""
    deadline = time.monotonic() + timeout_s
    watched = list(alive)
    while not ready():
        interruption.check()
        for child in watched:
            child.check()
        if time.monotonic() > deadline:
            raise ExperimentError(f"{what}: still not so after {timeout_s:g} s")
        time.sleep(_POLL_S)
