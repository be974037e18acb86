# SPDX-License-Identifier: GPL-2.0-or-later
"""The feed's package as OpenWrt's own makefiles understand it."""

import os
import re
import subprocess
from pathlib import Path

import meta
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "package/pemi"
ABOUT = meta.read(PACKAGE / "Makefile")


@pytest.fixture(scope="module")
def dump() -> dict[str, str]:
    tree = os.environ.get("OPENWRT_TREE")
    if not tree:
        pytest.skip("OPENWRT_TREE is not set: a buildroot or SDK with feeds/packages")
    make = ["make", "-r", "-s", "--no-print-directory", f"TOPDIR={tree}", "DUMP=1"]
    answer = subprocess.run([*make, "-C", PACKAGE], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    return dict(re.findall(r"^([\w-]+): +(.*)$", answer.stdout, re.MULTILINE))


def test_metadata(dump):
    assert dump["Package"] == "pemi"
    assert dump["Version"] == ABOUT.version
    assert dump["Require-User"] == ABOUT.user
    assert dump["Build-Depends"] == "rust/host"
    words = dump["Depends"].split()
    needs = {word.lstrip("+") for word in words if word.startswith("+")}
    assert needs == {*ABOUT.depends, *meta.LINKED_IN}
    assert any(word.startswith("@(aarch64||") for word in words)


def test_the_app_is_of_the_same_people_version_and_licence():
    text = (ROOT / "luci-app-pemi/Makefile").read_text()
    said = dict(re.findall(r"^(PKG_\w+):=(.*)$", text, re.MULTILINE))
    assert f"{said['PKG_VERSION']}-r{said['PKG_RELEASE']}" == ABOUT.version
    assert (said["PKG_MAINTAINER"], said["PKG_LICENSE"]) == (ABOUT.maintainer, ABOUT.license)
    assert re.fullmatch(r".+ <\S+@\S+>", ABOUT.maintainer), "a name and an address"


def test_modes_are_those_of_the_portable_packages():
    """Both must treat files/ alike; the feed's rules are shell."""
    text = (PACKAGE / "Makefile").read_text()
    assert "chmod 0755 $(1)/etc/init.d/*" in text
    assert "chmod 0600 $(1)/etc/config/*" in text
