# SPDX-License-Identifier: GPL-2.0-or-later
"""How much memory a router's daemon has with many flows and a full cache."""

import os
import re
from pathlib import Path

import pytest
from lab import Lab
from routers import FLOWS

# Of a router, in KiB
MOST = 11 * 1024
# What a program for a router may have, in KiB (package/portable/README.md): all of it counts. The
# one that runs here has other libraries and is built for debuggers, so its own pages do not.
PROGRAM = 900
# The server's part of a connection, in datagrams of 1,228 bytes; together more than the cache takes
ANSWERS = 4


def anonymous(pid: int) -> int:
    """What a process has in memory that is of no file, in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    kinds = re.findall(r"^Rss(Anon|Shmem):\s+(\d+) kB$", status, re.MULTILINE)
    assert len(kinds) == 2, status
    return sum(int(size) for _, size in kinds)


def test_a_router_has_room_for_a_thousand_flows_and_a_full_cache():
    if os.geteuid() != 0:
        pytest.skip("root is needed")
    with Lab() as lab:
        control = lab.start("--max-flows", "4096", "--release-s", "0")
        lab.open_flows(FLOWS, ANSWERS)
        status = lab.until(control, lambda status: status["flows"]["active"] >= FLOWS)
        cache = status["cache"]
        resident = anonymous(lab.daemon.pid) + PROGRAM
        print(f"{FLOWS} flows, cache {cache}: {resident} KiB")
    assert cache["bytes"] > 0.99 * cache["limit"]
    assert resident <= MOST
