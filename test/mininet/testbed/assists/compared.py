# SPDX-License-Identifier: GPL-2.0-or-later
"""PEMI as on somebody's router: some flows are left alone, the others compared with them."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass

from ..world.process import ExperimentError
from .assist import Running, Site
from .pemi import Daemon, Pemi


@dataclass(frozen=True)
class Compared(Pemi):
    """So many percent of the flows are left alone."""

    percent: int = 0

    def at(self, site: Site) -> Running:
        return _Comparing(site, self.percent)


class _Comparing(Daemon):
    def __init__(self, site: Site, percent: int) -> None:
        super().__init__(site)
        self._percent = percent

    def _more(self) -> tuple[str, ...]:
        # The last one counts.
        return (*super()._more(), "--control-percent", str(self._percent))

    def report(self) -> dict[str, object] | None:
        """What the comparison came to, as well."""
        command = [str(self._program), "benefit", "--json", "--control", str(self._control)]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
        if answer.returncode != 0:
            raise ExperimentError(f"pemi benefit failed: {answer.stderr.strip()}")
        (network,) = json.loads(answer.stdout)["networks"]
        own = super().report()
        return own and {**own, "benefit": network}
