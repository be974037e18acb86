# SPDX-License-Identifier: GPL-2.0-or-later
"""A router in QEMU between two network namespaces, and what is done with it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[3]
# The experiments' own way of running programs is used here too.
sys.path.insert(0, str(ROOT / "test" / "mininet"))

if TYPE_CHECKING:
    from .namespace import Namespace
    from .router import Router
    from .traffic import Download


@dataclass
class Lab:
    """What a scenario has to work with."""

    router: Router
    client: Namespace
    server: Namespace
    package: Path
    logs: Path
    # What earlier scenarios leave for later ones.
    notes: dict[str, object] = field(default_factory=dict)

    def download(self, ip: str, size: int) -> Download:
        """Begin one."""
        from .traffic import Download

        return Download(self.client, self.server, ip, size, self.logs)


def expect(truth: object, otherwise: str) -> None:
    """An assertion that stays in and says what was seen."""
    if not truth:
        raise AssertionError(otherwise)
