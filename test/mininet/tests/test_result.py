# SPDX-License-Identifier: GPL-2.0-or-later
import json

import pytest
from testbed.measure import result
from testbed.world.scenario import Scenario

RUN = {
    "app": "goodput",
    "assist": "pemi",
    "bytes": 5,
    "metrics": {"goodput_mbps": 8.0},
    "links": None,
    "inference": {"repaired": 9, "losses": 10, "recall": 0.9, "unneeded_percent": 6.0},
}


def test_one_scenario_is_one_result():
    document = result.document([(Scenario(loss1=1), [RUN])])
    assert document["scenario"]["loss1"] == 1
    assert document["runs"] == [RUN]


def test_several_scenarios_are_results():
    document = result.document([(Scenario(loss1=1), [RUN]), (Scenario(), [RUN])])
    assert [part["scenario"]["loss1"] for part in document["results"]] == [1, 0]


def test_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "result.json"
    result.write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        result.write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [entry.name for entry in path.parent.iterdir()] == ["result.json"]


def test_median_leaves_out_what_is_missing():
    runs = [{**RUN, "metrics": {"goodput_mbps": value}} for value in (1.0, None, 3.0, 7.0)]
    assert result.median(runs, result.goodput) == 3
    assert result.median([], result.goodput) is None


def test_drops_of_the_emulator_itself_are_told():
    own = {"own_drops": 2}
    links = {"wifi": {"down": own, "up": own}}
    assert "CAUTION: the emulator itself dropped 4" in result.headline({**RUN, "links": links})


def test_headline_and_selection():
    assert "8.00 Mbit/s" in result.headline(RUN)
    assert "9 of 10 losses repaired in time (0.90)" in result.headline(RUN)
    assert result.select([RUN], assist="pemi", bytes=5) == [RUN]
    assert result.select([RUN], assist="off") == []
