# SPDX-License-Identifier: GPL-2.0-or-later
import pytest
from testbed.world.scenario import Scenario, ScenarioError, parse_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [("5MB", 5_000_000), ("64KiB", 65_536), ("65000", 65_000), ("1.5k", 1_500), ("2 GB", None)],
)
def test_sizes(text, size):
    if size is None:
        with pytest.raises(ScenarioError, match="not a size"):
            parse_bytes(text)
    else:
        assert parse_bytes(text) == size


def test_default_links_are_those_of_the_published_testbed():
    scenario = Scenario()
    assert (scenario.wifi.delay_ms, scenario.wifi.rate_mbit) == (1, 100)
    assert (scenario.wan.delay_ms, scenario.wan.rate_mbit) == (25, 10)
    assert scenario.rtt_ms == 52


def test_default_wan_queue_is_one_bdp_of_the_whole_path():
    assert Scenario().wan.queue_bytes == 65_000
    assert Scenario(queue2="4bdp").wan.queue_bytes == 260_000
    assert Scenario(queue2="30kB").wan.queue_bytes == 30_000


def test_preset_gives_way_to_what_is_given():
    scenario = Scenario.from_preset("train", loss1=3.0)
    assert scenario.loss1 == 3
    assert scenario.delay2 == 25
    assert scenario.to_json()["preset"] == "train"


def test_lossless_keeps_everything_but_the_loss():
    scenario = Scenario(loss1=1, loss1ge=(1, 10, 100, 0), loss2=2, delay1=5)
    assert scenario.lossless() == Scenario(delay1=5)
    assert Scenario(outages1=(3000, 200)).lossless() == Scenario()


@pytest.mark.parametrize(
    "wrong",
    [
        {"loss1": 101},
        {"bw2": 0},
        {"delay1": -1},
        {"queue2": "bdp"},
        {"queue1": "much"},
        {"qdisc": "cake"},
        {"outages1": (100, 0)},
        {"outages1": (100, 10), "link": "netem"},
        {"outages1": (100, 10), "loss1ge": (1, 10, 100, 0)},
    ],
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ScenarioError):
        Scenario(**wrong)
