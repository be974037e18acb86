# SPDX-License-Identifier: GPL-2.0-or-later
"""Packages that are the same for every processor, by the word that pack.py knows them by."""

from pathlib import Path

import collector
import luci
from meta import Meta
from tree import File

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("luci", "collector")


def packages(word: str) -> list[tuple[Meta, list[File]]]:
    """What each is called, and the files in it."""
    if word == "luci":
        return luci.packages(ROOT / "luci-app-pemi")
    return collector.packages(ROOT / "package/prometheus-node-exporter-lua-pemi")


def all_packages() -> list[tuple[Meta, list[File]]]:
    return [found for word in WORDS for found in packages(word)]
