# SPDX-License-Identifier: GPL-2.0-or-later
"""The folders of the testbed: which may use which, read from their imports."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

TESTBED = Path(__file__).parents[1] / "testbed"
# Each folder, and the others that it may use. Files beside the folders may use all of them.
MAY_USE = {
    "world": set(),
    "loads": {"world"},
    "assists": {"world", "loads"},
    "measure": {"world"},
    "draw": {"measure", "loads"},
}


def modules():
    """The files by their dotted names below `testbed`."""
    return {
        ".".join(path.relative_to(TESTBED).with_suffix("").parts): path
        for path in TESTBED.rglob("*.py")
        if path.name != "__init__.py"
    }


def imports(name, path, known):
    """The modules of the testbed that this one imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or node.level == 0:
            continue
        base = [*name.split(".")[: -node.level], *(node.module or "").split(".")]
        base = ".".join(part for part in base if part)
        inside = {f"{base}.{each.name}".lstrip(".") for each in node.names} & set(known)
        found |= inside or {base}
    return found


def graph():
    known = modules()
    return {name: imports(name, path, known) for name, path in known.items()}


def test_imports_are_found():
    found = graph()
    assert "world.process" in found["assists.pemi"]
    assert {"draw.progress", "experiment"} <= found["series"]
    assert {"study.plan", "experiment"} <= found["study.carry"]
    assert all(used in found for uses in found.values() for used in uses)


def test_no_circles_of_files():
    # Raises CycleError with the names.
    TopologicalSorter(graph()).prepare()


def test_a_folder_uses_only_those_below_it():
    for name, uses in graph().items():
        folder = name.split(".")[0]
        if folder in MAY_USE:
            used = {use.split(".")[0] for use in uses} - {folder}
            assert used <= MAY_USE[folder], name
