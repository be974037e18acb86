# SPDX-License-Identifier: GPL-2.0-or-later
"""The cells of a grid, as `sim matrix` has them: each value with each, the last option fastest."""

import itertools
import shlex
from pathlib import Path


def cells(vary: dict[str, list]) -> list[list[str]]:
    """Of options and their values, as `--vary` takes one of each."""
    values = [[f"{option}={_text(value)}" for value in of] for option, of in vary.items()]
    return [list(cell) for cell in itertools.product(*values)]


def options(grid: dict, cell: list[str], root: Path) -> str:
    """What `sim matrix` is called with for one of them."""
    words = [str(root / grid["scenario"])]
    for name, given in (("--set", grid.get("set", [])), ("--vary", cell)):
        words += [word for each in given for word in (name, each)]
    words += ["--seeds", str(grid["seeds"])]
    words += [word for assist in grid.get("assist", []) for word in ("--assist", assist)]
    return shlex.join(words)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
