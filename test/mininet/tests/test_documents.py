# SPDX-License-Identifier: GPL-2.0-or-later
"""The documents: every file and folder that they name is there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
# Where names in backticks begin, beside the document's own folder.
BASES = [ROOT, ROOT / "src/engine/src", ROOT / "src/pemi/src", ROOT / "test/mininet/testbed"]
# Those that say where things are; in others a name may be one of a program or of a router.
NAMING = ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"]
FOLDERS = ["src", "test", "package", "hardware", "files", "luci-app-pemi"]
# A path with a folder, or a file by the ending of its name.
PATH = re.compile(r"[\w.-]+(/[\w.-]+)+/?|[\w.-]+/|[\w-]+\.(rs|py|md|toml|sh|js)")
# What building and running make.
MADE = ("out/", "target/")


def documents():
    names = subprocess.check_output(["git", "ls-files", "*.md"], cwd=ROOT, text=True)
    return [name for name in names.splitlines() if (ROOT / name).exists()]


def without_programs(text):
    """The text without its fenced blocks, in which names are those of an example."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def links(text):
    """The targets of links within the repository, without the heading they go to."""
    found = re.findall(r"\]\(([^)\s]+)\)", without_programs(text))
    return [link.split("#")[0] for link in found if "://" not in link and link[0] != "#"]


def names(text):
    """What stands in backticks and is the name of a file or a folder."""
    found = re.findall(r"`([^`\n]+)`", without_programs(text))
    return [name for name in found if PATH.fullmatch(name) and not name.startswith(MADE)]


def test_what_is_a_name_and_what_is_not():
    text = "`a/b.rs` [c](d.md#e) [f](https://g/h)\n```\n`i/j.rs`\n```\n`/etc/k` `l` `out/m.json`"
    assert links(text) == ["d.md"]
    assert names(text) == ["a/b.rs"]


@pytest.mark.parametrize("document", documents())
def test_links_lead_to_files(document):
    folder = (ROOT / document).parent
    lost = [link for link in links((ROOT / document).read_text()) if not (folder / link).exists()]
    assert lost == []


@pytest.mark.parametrize("document", NAMING)
def test_named_files_are_there(document):
    found = names((ROOT / document).read_text())
    assert found, "nothing is named: has the way of naming changed?"
    lost = [name for name in found if not any((base / name).exists() for base in BASES)]
    assert lost == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_says_what_it_is(folder):
    text = (ROOT / "README.md").read_text()
    assert f"]({folder}" in text, "the README has no line for it"
    assert (ROOT / folder / "README.md").exists() or folder == "files"
