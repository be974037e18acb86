# SPDX-License-Identifier: GPL-2.0-or-later
"""The workflow with two jobs on this machine: what it puts together is what one sweep gives."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SNAKEMAKE = ROOT / "out/snakemake/bin/snakemake"
SIM = ROOT / "test/target/release/sim"
sys.path.insert(0, str(ROOT / "test/sweep"))
import grid  # noqa: E402 - after the folder is known

GRID = {
    "scenario": "test/sim/scenarios/train.toml",
    "set": ["flow.bytes=200000"],
    "vary": {"wan.queue_bdp": [1.0, 4.0], "wifi.loss_down": ["{ percent = 2.0 }"]},
    "seeds": 2,
}


def snakemake(out: Path, config: dict, *options: str, base: tuple[Path, ...] = ()) -> str:
    if not SNAKEMAKE.exists():
        pytest.skip("no Snakemake: run test/sweep/setup.sh")
    file = out / "config.json"
    file.write_text(json.dumps({"out": str(out), **config}))
    where = ["--snakefile", ROOT / "test/sweep/Snakefile", "--directory", out]
    command = [SNAKEMAKE, *where, "--configfile", *base, file, "--cores", "2", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_two_jobs_give_what_one_sweep_gives(tmp_path):
    snakemake(tmp_path, {"grids": {"small": GRID}}, "--jobs", "2")
    vary = ["--vary", "wan.queue_bdp=1.0,4.0", "--vary", "wifi.loss_down={ percent = 2.0 }"]
    scenario = ROOT / GRID["scenario"]
    command = [SIM, "matrix", scenario, "--set", GRID["set"][0], *vary, "--seeds", "2"]
    for kind, more in (("json", ["--json"]), ("txt", [])):
        whole = subprocess.run([*command, *more], capture_output=True, text=True, check=True)
        assert (tmp_path / f"grids/small.{kind}").read_text() == whole.stdout


def test_an_experiment_is_dealt_into_parts_and_reported_once(tmp_path):
    config = {"experiments": {"pemi-rtc": {"size": "quick", "parts": 3, "seeds": 2}}}
    said = snakemake(tmp_path, config, "--dry-run", "--printshellcmds")
    for number in (1, 2, 3):
        assert f"study.py pemi-rtc --size quick --seeds 2 --out {tmp_path}/experiments" in said
        assert f"--part {number}/3" in said
    assert said.count("rule report:") == 1


def test_the_example_can_be_planned(tmp_path):
    file = ROOT / "test/sweep/config.yaml"
    said = snakemake(tmp_path, {}, "--dry-run", base=(file,))
    assert "rule merged:" in said and "rule part:" in said


def test_cells_are_those_of_the_simulator():
    vary = {"wan.queue_bdp": [1.0, 4.0], "flow.cc": ["cubic", "bbr"]}
    assert grid.cells(vary) == [
        ["wan.queue_bdp=1.0", "flow.cc=cubic"],
        ["wan.queue_bdp=1.0", "flow.cc=bbr"],
        ["wan.queue_bdp=4.0", "flow.cc=cubic"],
        ["wan.queue_bdp=4.0", "flow.cc=bbr"],
    ]
