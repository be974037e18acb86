# SPDX-License-Identifier: GPL-2.0-or-later
"""One daemon for all tests here, with 1,000 flows and a comparison that it has kept."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab
from routers import FLOWS, Exporter


@pytest.fixture(scope="session")
def control() -> Iterator[Path]:
    """Of the daemon: help is worth something on lan0."""
    if os.geteuid() != 0:
        pytest.skip("root is needed")
    with Lab() as lab:
        kept = lab.folder / "pemi/benefit"
        kept.parent.mkdir()
        # Whether it was helped, its kbit/s, and how often it stood still.
        faster = [[1, 18_000 + at * 10, 0] for at in range(90)]
        faster += [[0, 10_000 + at, 1] for at in range(10)]
        kept.write_text(json.dumps({"lan0": {"replies": faster}}))
        options = ["--max-flows", "4096", "--release-s", "0", "--benefit", kept]
        control = lab.start(*options)
        lab.open_flows(FLOWS)
        lab.until(control, lambda status: status["flows"]["active"] >= FLOWS)
        yield control


@pytest.fixture
def exporter(control) -> Iterator[Exporter]:
    found = Exporter(control)
    yield found
    found.end()
