# SPDX-License-Identifier: GPL-2.0-or-later
"""Downloads one after the other, and what is held against the daemon's comparison."""

import argparse
import subprocess
from pathlib import Path

import benefit
import pytest
from testbed import comparison, series
from testbed.assists.pemi import Pemi
from testbed.loads.apps import Place
from testbed.loads.downloads import downloads
from testbed.setups import Setup
from testbed.world.scenario import Scenario


def place(folder: Path) -> Place:
    program = folder / "goodput"
    program.write_text('#!/bin/sh\necho "{\\"goodput_mbps\\": 7.5}"\n')
    program.chmod(0o755)
    return Place(folder, "10.0.0.2:4433", 0, folder)


def test_each_download_is_told_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr("testbed.loads.downloads._OVER_S", 0)
    app = downloads(3, 1_000_000, "cubic", 10)
    command = app.client(place(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert app.measured(place(tmp_path), done.stdout) == {"goodputs_mbps": [7.5] * 3}


def test_they_take_as_long_as_all_of_them_together():
    """The demo said that seconds were left of what took four minutes."""
    size = comparison.Size(flows=60, truth=30)
    setups = comparison.plan(Scenario(), size, "cubic", 1)
    one = Setup(Scenario(), downloads(1, size.bytes, "cubic", 10), Pemi(), 1)
    assert [setup.expected_s for setup in setups[:2]] == [60 * one.expected_s, 30 * one.expected_s]


def test_one_that_fails_ends_all(tmp_path, monkeypatch):
    monkeypatch.setattr("testbed.loads.downloads._OVER_S", 0)
    where = place(tmp_path)
    (tmp_path / "goodput").write_text("#!/bin/sh\nexit 3\n")
    done = subprocess.run(downloads(3, 1_000_000, "cubic", 10).client(where))
    assert done.returncode == 3


@pytest.mark.parametrize(("interval", "held"), [([1.5, 2.1], 0), ([2.1, 2.5], 1), (None, 1)])
def test_a_truth_outside_of_its_interval_is_a_failure(interval, held, monkeypatch, capsys):
    told = {"sentence": "A sentence.", "verdict": "helps", "interval": interval}

    def run_all(setups):
        assert [setup.assist.name for setup in setups] == ["pemi", "pemi", "off"]
        assert setups[0].app.count == 60 and setups[0].assist.percent == 25
        rates = [[7.0], [7.2, 7.0, 7.1], [3.9, 4.0, 4.1]]
        runs = [{"router": {"benefit": told}, "metrics": {"goodputs_mbps": its}} for its in rates]
        return [(setups[0].scenario, runs)]

    monkeypatch.setattr(series, "run_all", run_all)
    options = {"loss": [1.0], "flows": 60, "truth": 3, "bytes": 1_000_000, "control_percent": 25}
    asked = argparse.Namespace(**options, seed=1, json=None)
    assert benefit.compare(asked) == held
    assert "the truth: 1.77 times" in capsys.readouterr().out
