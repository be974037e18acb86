# SPDX-License-Identifier: GPL-2.0-or-later
"""One daemon for all tests here, with 1,000 flows and a comparison that it has kept."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab

ROOT = Path(__file__).resolve().parents[2]
FLEET = ROOT / "package/fleet"
COLLECTOR = (
    ROOT / "package/prometheus-node-exporter-lua-pemi"
    "/files/usr/lib/lua/prometheus-collectors/pemi.lua"
)
FLOWS = 1000


class Exporter:
    """The collector, as prometheus-node-exporter-lua runs it: for long, a scrape now and then."""

    def __init__(self, control: Path):
        here = Path(__file__).parent
        self._process = subprocess.Popen(
            ["lua5.1", here / "exporter.lua", COLLECTOR, here, control],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def scrape(self) -> tuple[str, float]:
        """What it says, and the seconds that took."""
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        lines = []
        while not (line := self._process.stdout.readline()).startswith("#!"):
            assert line, "the collector has failed"
            lines.append(line)
        return "".join(lines), float(line.split()[1])

    def end(self):
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture(scope="session")
def control() -> Iterator[Path]:
    """Of the daemon: help is worth something on lan0."""
    if os.geteuid() != 0:
        pytest.skip("root is needed")
    with Lab() as lab:
        kept = lab.folder / "pemi/benefit"
        kept.parent.mkdir()
        faster = [
            [[18_000 + at * 10, 0] for at in range(90)],
            [[10_000 + at, 1] for at in range(10)],
        ]
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
