#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Every source file says under which licence it is, in its first comment line: what is
copied out of the project takes it along. Lists the files that do not."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TAG = "SPDX-License-Identifier: GPL-2.0-or-later"
SUFFIXES = {".c", ".css", ".go", ".h", ".js", ".mjs", ".nft", ".py", ".rs", ".sh"}
# What CI runs is neither product nor testbed; a corpus has anything, even what looks like a script.
LEFT_OUT = {".ci", "corpus"}


def is_source(path):
    """Programs, by name or by their first line; data, documents and settings are not."""
    if LEFT_OUT & set(path.relative_to(ROOT).parts):
        return False
    if path.suffix in SUFFIXES or path.name == "Makefile":
        return True
    with path.open("rb") as file:
        return not path.suffix and file.read(2) == b"#!"


def is_tagged(text):
    lines = text.splitlines() or [""]
    first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else lines[0]
    return re.fullmatch(rf"(//|#) {TAG}|/\* {TAG} \*/", first) is not None


def sources():
    """The files that git knows, and those that it soon will."""
    names = subprocess.check_output(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True
    )
    paths = (ROOT / name for name in names.split("\0") if name)
    return [path for path in paths if path.is_file() and is_source(path)]


def main():
    untagged = [path for path in sources() if not is_tagged(path.read_text())]
    for path in untagged:
        print(f"{path.relative_to(ROOT)}: the first comment line has to be: {TAG}")
    return 1 if untagged else 0


if __name__ == "__main__":
    sys.exit(main())
