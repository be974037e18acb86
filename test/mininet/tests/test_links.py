# SPDX-License-Identifier: GPL-2.0-or-later
import pytest
from testbed.world import radio
from testbed.world.links import linkem_options, netem_queue
from testbed.world.scenario import QDISCS, Scenario, ScenarioError


def options(hop, seed=3):
    words = linkem_options(hop, seed)
    return dict(zip(words[::2], words[1::2], strict=True))


def test_wifi_hop_of_the_train():
    given = options(Scenario.from_preset("train").wifi)
    assert given["--rate"] == "100"
    assert given["--loss"] == "1"
    assert given["--seed"] == "3"
    assert given["--queue"] == "262144"


def test_gilbert_elliott_replaces_the_plain_loss():
    given = options(Scenario(loss1=5, loss1ge=(0.5, 20, 100, 0)).wifi)
    assert given["--ge"] == "0.5 20 100 0"
    assert "--loss" not in given


def test_outages_replace_the_plain_loss():
    given = options(Scenario(loss1=5, outages1=(3000, 200)).wifi)
    assert given["--outages"] == "3000 200"
    assert "--loss" not in given
    assert "--outages" not in options(Scenario(outages1=(3000, 200)).lossless().wifi)


def test_a_radio_replaces_everything_else_of_the_hop():
    scenario = Scenario.from_preset("train", wifi1="poor")
    assert linkem_options(scenario.wifi, 3) == ["--wifi", "poor", "--seed", "3"]
    assert linkem_options(scenario.lossless().wifi, 3)[-1] == "--wifi-lossless"
    assert options(scenario.wan)["--rate"] == "10"
    assert "--wifi" not in options(Scenario().lossless().wifi)


@pytest.mark.parametrize(
    "other", [{"loss1": 1.0}, {"outages1": (500, 50)}, {"jitter1": 1.0}, {"link": "netem"}]
)
def test_a_radio_has_its_own_losses_and_needs_linkem(other):
    with pytest.raises(ScenarioError, match="--wifi"):
        Scenario(wifi1="poor", **other)


@pytest.mark.parametrize("name", ["loss1", "delay1", "bw1", "jitter1", "queue1"])
def test_a_radio_leaves_nothing_of_link_1_to_be_said(name):
    value = "64KiB" if name == "queue1" else 5
    with pytest.raises(ScenarioError, match=f"leave out --{name}"):
        Scenario.from_preset(None, wifi1="poor", **{name: value})
    scenario = Scenario.from_preset("train", wifi1="poor", bw2=5, delay2=5)
    assert scenario.to_json()[name] is None
    assert scenario.to_json()["bw2"] == 5


def test_a_radio_is_a_preset_or_a_file(tmp_path):
    with pytest.raises(ValueError, match=r"--wifi perfect.*poor-no-bar"):
        Scenario(wifi1="perfect")
    air = tmp_path / "own.toml"
    air.write_text("link.rate_mbit = 6.5\n")
    scenario = Scenario(wifi1=str(air))
    assert linkem_options(scenario.wifi, 1)[:2] == ["--wifi", str(air)]
    before = scenario.to_json()["wifi1"]
    air.write_text("link.rate_mbit = 13.0\n")
    # Another file of this name is another hop.
    assert scenario.to_json()["wifi1"] != before
    assert Scenario(wifi1="poor").to_json()["wifi1"] == "poor"


def test_the_presets_of_the_radio_are_those_of_the_air():
    assert {"clean", "poor-no-bar", "crowded"} < set(radio.presets())
    for name in radio.presets():
        assert Scenario(wifi1=name).lossless().wifi1_lossless


def test_wan_has_the_queue_discipline():
    assert options(Scenario(qdisc="codel").wan)["--qdisc"] == "codel"
    assert options(Scenario(qdisc="codel").wifi)["--qdisc"] == "droptail"


@pytest.mark.parametrize("qdisc", [name for name in QDISCS if name != "cake"])
def test_linkem_is_asked_for_every_discipline_but_cake(qdisc):
    assert options(Scenario(qdisc=qdisc).wan)["--qdisc"] == qdisc


def test_netem_gets_rate_and_discipline():
    def queues(qdisc):
        hop = Scenario(qdisc=qdisc, link="netem").wan
        return [text for _, text in netem_queue(hop)]

    assert queues("tbf") == queues("droptail") == ["tbf rate 10mbit burst 1600 limit 65000"]
    assert queues("red")[1] == "red limit 65000 avpkt 1000"
    assert queues("fq_codel")[1] == "fq_codel limit 10000"
    assert queues("none") == ["tbf rate 10mbit burst 1600 limit 268435456"]
    # CAKE has a shaper of its own.
    assert queues("cake") == ["cake bandwidth 10mbit"]
