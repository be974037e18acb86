# SPDX-License-Identifier: GPL-2.0-or-later
"""The script for collectd's plugin exec, under busybox's ash with the real jshn."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from routers import FLEET, FLOWS, ROOT

TOOLS = ROOT / "out/realtools/native"
PEMI = ROOT / "target/debug/pemi"


@pytest.fixture
def script(tmp_path) -> Path:
    """With jshn.sh where it is here."""
    text = (FLEET / "collectd-pemi.sh").read_text()
    text = text.replace("/usr/share/libubox", str(TOOLS / "share/libubox"))
    found = tmp_path / "collectd-pemi.sh"
    found.write_text(text)
    return found


def run(script: Path, asks: str, **said: str) -> list[str]:
    """What it prints in one turn, where `pemi` asks the daemon at that socket."""
    tools = script.parent / "bin"
    tools.mkdir()
    (tools / "pemi").write_text(f'#!/bin/sh\nexec {PEMI} "$@" --control {asks}\n')
    (tools / "pemi").chmod(0o755)
    path = f"{tools}:{TOOLS}/bin:{os.environ['PATH']}"
    command = [shutil.which("busybox"), "ash", script, "once"]
    done = subprocess.run(command, env={"PATH": path, **said}, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.splitlines()


def test_what_collectd_is_told(script, control):
    said = {"COLLECTD_HOSTNAME": "router", "COLLECTD_INTERVAL": "30.000"}
    lines = run(script, control, **said)
    form = r'PUTVAL "router/pemi/(gauge|derive)-([a-z0-9_]+)" interval=30 N:(\d+(?:\.\d+)?)'
    found = {
        name: value for _, name, value in (re.fullmatch(form, line).groups() for line in lines)
    }
    assert (found["up"], found["flows_active"]) == ("1", str(FLOWS))
    assert (found["packets_down"], found["losses_repaired"]) == (str(FLOWS), "0")
    assert 1.7 < float(found["benefit_ratio_lan0"]) < 2
    assert 1 < float(found["benefit_low_lan0"]) <= float(found["benefit_high_lan0"])
    assert found["stands_back_lan0"] == "0"
    assert len(lines) == len(set(lines))


def test_a_daemon_that_is_not_there_is_told(script, tmp_path):
    lines = run(script, tmp_path / "none.sock", COLLECTD_HOSTNAME="router")
    assert lines == ['PUTVAL "router/pemi/gauge-up" interval=10 N:0']
