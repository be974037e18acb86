# SPDX-License-Identifier: GPL-2.0-or-later
"""A plain router."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .assist import Assist, Running, Site, without_value


@dataclass(frozen=True)
class Off(Assist):
    """Nothing helps."""

    option: ClassVar[str] = "off"
    argument: ClassVar[dict[str, object]] = without_value("a plain router")
    helps: ClassVar[bool] = False

    def at(self, site: Site) -> Running:
        return Running(site)
