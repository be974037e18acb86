from testbed.links import linkem_options
from testbed.scenario import Scenario


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


def test_wan_has_the_queue_discipline():
    assert options(Scenario(qdisc="codel").wan)["--qdisc"] == "codel"
    assert options(Scenario(qdisc="codel").wifi)["--qdisc"] == "droptail"
