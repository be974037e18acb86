# SPDX-License-Identifier: GPL-2.0-or-later
"""What the programs that run experiments have in common: how they end, and where
their figures come from."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from collections.abc import Callable

from .world import interruption
from .world.process import ExperimentError, NotReady
from .world.programs import Programs


def exit_code(name: str, work: Callable[[], int], stopped: str = "") -> int:
    """Runs it. What ends it early is one line on standard error: 2 if something is
    missing, 1 if an experiment failed, 130 after a signal; `stopped` adds to that line."""
    interruption.watch()
    try:
        return work()
    except NotReady as error:
        print(f"{name}: error: {error}", file=sys.stderr)
        return 2
    except ExperimentError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        print(f"{name}: stopped by {error}; everything is cleaned up{stopped}", file=sys.stderr)
        return 130


def made() -> dict[str, str]:
    """When, on what machine and with which daemon."""
    version = subprocess.run(
        [Programs().pemi, "--version"], capture_output=True, text=True, timeout=10
    ).stdout.split()
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores {platform.machine()}, Linux {platform.release()}",
        "version": version[-1] if version else "unknown",
    }
