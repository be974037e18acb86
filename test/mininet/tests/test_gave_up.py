# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that give up: when that is a result of an experiment, and when it has failed."""

import pytest
import study
from test_study import MADE, TEXT, ready, run_of
from testbed import program
from testbed.study import carry, plan, report
from testbed.study.store import Store
from testbed.world.process import GaveUp


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "one.toml").write_text(TEXT)
    return tmp_path


def give_up(folder, monkeypatch, assists, losses=(1,)):
    """The experiment where clients give up with these assists; its failures, and its page."""
    one = plan.read(folder, "one", "quick")

    def run(setup, **_):
        if setup.assist.name in assists and setup.scenario.loss1 in losses:
            raise GaveUp("the client waited in vain")
        return run_of(setup)

    ready(monkeypatch, run)
    records, failures = carry.carry_out(one, Store(folder / "runs"), print)
    return carry.judged(failures, records), report.page(one, records, failures, MADE)


def test_a_client_that_gives_up_with_and_without_help_is_a_result(folder, monkeypatch):
    (results, failed), page = give_up(folder, monkeypatch, ["off", "pemi"])
    assert [failure.point.values["assist"] for failure in results] == ["off", "pemi"]
    assert failed == []
    assert "also without help" in page and "Runs that failed" not in page


def test_a_client_that_gives_up_only_without_help_is_a_result(folder, monkeypatch):
    (results, failed), _ = give_up(folder, monkeypatch, ["off"])
    assert (len(results), failed) == (1, [])


def test_a_client_that_gives_up_with_help_alone_is_a_failure(folder, monkeypatch):
    (results, failed), page = give_up(folder, monkeypatch, ["pemi"])
    assert (results, len(failed)) == ([], 1)
    assert "Runs that failed" in page


def test_where_nothing_is_lost_nobody_gives_up(folder, monkeypatch):
    (results, failed), _ = give_up(folder, monkeypatch, ["off", "pemi"], losses=(0,))
    assert results == []
    assert {failure.point.setup.scenario.loss1 for failure in failed} == {0}


def test_a_stack_of_which_no_run_ends_well_is_broken(folder, monkeypatch):
    (results, failed), _ = give_up(folder, monkeypatch, ["off", "pemi"], losses=(0, 1))
    assert results == []
    assert len(failed) == 4


@pytest.mark.parametrize(("assists", "code"), [(["off", "pemi"], 0), (["pemi"], 1)])
def test_a_result_without_figures_does_not_end_a_study_badly(folder, monkeypatch, assists, code):
    monkeypatch.setattr(study, "FOLDER", folder)
    monkeypatch.setattr(carry, "check", lambda _: None)
    monkeypatch.setattr(program, "made", lambda: MADE)

    def run(setup, **_):
        if setup.assist.name in assists and setup.scenario.loss1:
            raise GaveUp("the client waited in vain")
        return run_of(setup)

    ready(monkeypatch, run)
    arguments = ["study.py", "one", "--size", "quick", "--out", str(folder / "out")]
    monkeypatch.setattr("sys.argv", arguments)
    assert study.main() == code
