# SPDX-License-Identifier: GPL-2.0-or-later
"""Ctrl-C, SIGTERM and a closed terminal end a run in order: with a clean-up.

The handler only takes note. An exception raised in it could strike anywhere, also in
one of Python's own callbacks around a fork, where it is printed and forgotten and the
run goes on; and it could break off the clean-up. So the loops that wait ask instead.
"""

from __future__ import annotations

import signal

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_noted: signal.Signals | None = None
_told = False


def watch() -> None:
    """From now on these signals are noted."""
    for name in _SIGNALS:
        signal.signal(name, _note)


def check() -> None:
    """Raise KeyboardInterrupt if there was such a signal: once, since what follows
    is the clean-up, which also waits."""
    global _told
    if _noted is not None and not _told:
        _told = True
        raise KeyboardInterrupt(_noted.name)


def _note(number: int, _frame: object) -> None:
    global _noted
    if _noted is None:
        _noted = signal.Signals(number)
