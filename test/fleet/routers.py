# SPDX-License-Identifier: GPL-2.0-or-later
"""What is tested here, and the collector as routers run it."""

import subprocess
from pathlib import Path

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
