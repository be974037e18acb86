# SPDX-License-Identifier: GPL-2.0-or-later
"""What a process took of the machine."""

from __future__ import annotations

import os
from pathlib import Path

from ..world.process import ExperimentError


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    # The program's name comes first and may hold blanks and parentheses.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_rss_kib(pid: int) -> int:
    """The most memory it ever had resident."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise ExperimentError(f"process {pid} has no VmHWM")
