# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the built programs are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]


@dataclass(frozen=True)
class Programs:
    """The daemon, and the folder with all others."""

    pemi: Path = ROOT / "target/release/pemi"
    testbed: Path = ROOT / "test/target/release"
