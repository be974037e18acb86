# SPDX-License-Identifier: GPL-2.0-or-later
"""RESULTS.md, which two programs write: each its own part, which begins with a title."""

from __future__ import annotations

from pathlib import Path

from testbed.measure import result


def put(path: Path, part: str) -> None:
    """Writes this part in place of the one with the same title, or behind the others."""
    title = part.partition("\n")[0]
    there = _parts(path.read_text()) if path.exists() else {}
    there[title] = part.rstrip() + "\n"
    result.write_text(path, "\n".join(there.values()))


def _parts(text: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    title = ""
    for line in text.splitlines():
        if line.startswith("# "):
            title = line
        parts[title] = parts.get(title, "") + line + "\n"
    return {title: part.rstrip() + "\n" for title, part in parts.items()}
