# SPDX-License-Identifier: GPL-2.0-or-later
"""Waits for a program that is to be reached."""

from __future__ import annotations

import contextlib
from pathlib import Path

from .process import Child, wait_until

_TCP_LISTEN = "0A"


def wait_for_listener(server: Child, port: int) -> None:
    """Until the server can be reached."""
    wait_until(lambda: listens(server.pid, port), f"{server.name} listening", [server])


def listens(pid: int, port: int) -> bool:
    """Whether somebody in this process's namespace has a UDP socket on the port, or
    listens on it with TCP."""
    wanted = f":{port:04X}"
    for table in ("udp", "udp6", "tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                _, local, _, state, *_ = line.split()
                if local.endswith(wanted) and (table.startswith("udp") or state == _TCP_LISTEN):
                    return True
    return False
