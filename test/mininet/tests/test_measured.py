# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured for the simulator to be held against."""

import argparse

import measured
from testbed.world.scenario import Scenario


def asked(**changes):
    options = {"seeds": 2, "seeds_off": 1, "wan": None, "stack": ("quinn", "quicgo"), "again": None}
    return argparse.Namespace(**{**options, **changes})


def test_each_path_is_measured_with_help_and_without_losses_and_each_rate_once_without_help():
    cells = measured.plan(asked())
    kinds = [(name, setup.scenario.bw2, setup.scenario.bw1) for name, (setup, *_) in cells]
    off = [kind for kind in kinds if kind[0] == "off"]
    assert off == [
        (*("off", wan), wifi)
        for wan, wifi in ((10, 20), (50, 100), (100, 200))
        for _ in ("quinn", "quicgo")
    ]
    assert len(kinds) == len(off) + 2 * 2 * 5
    assert {name: len(part) for name, part in cells} == {"off": 1, "pemi": 2, "lossless": 2}


def test_only_these_rates_and_stacks():
    cells = measured.plan(asked(wan=[50], stack=["quicgo"], seeds_off=0))
    assert [name for name, _ in cells] == ["pemi", "lossless"] * 2
    losses = {name: part[0].scenario.loss1 for name, part in cells}
    assert losses == {"pemi": 1.0, "lossless": 0.0}
    assert {setup.app.stack for _, part in cells for setup in part} == {"quicgo"}


def test_what_is_measured_again_takes_the_place_of_its_row():
    cells = measured.plan(asked(again=["pemi"]))
    assert {name for name, _ in cells} == {"pemi"} and len(cells) == 2 * 5
    first, other = (
        {"assist": "pemi", "stack": "quinn", "wan_mbit": n, "wifi_mbit": 20} for n in (10, 50)
    )
    assert measured.place(first | {"runs": [1]}) == measured.place(first | {"runs": [2]})
    assert measured.place(first) != measured.place(other)


def test_a_row_has_what_the_simulator_reads():
    run = {
        "stack": "quinn",
        "cc": "cubic",
        "bytes": 20_000_000,
        "seed": 3,
        "metrics": {"goodput_mbps": 31.41592},
        "inference": {"copies": 40},
        "sender": {"packets": 1000, "lost": 25, "spurious": None},
        "links": {
            "wifi": {"down": {"packets": 1030, "lost": 11}, "up": {"packets": 480}},
            "wan": {"down": {"queue_dropped": 10}},
        },
    }
    row = measured.row("pemi", Scenario(loss1=1.0, bw2=50.0, bw1=100.0), [run])
    assert (row["assist"], row["wan_mbit"], row["wifi_queue_bytes"]) == ("pemi", 50.0, 256 << 10)
    expected = {"seed": 3, "goodput_mbps": 31.416, "packets": 990, "copies": 40, "lost": 11}
    assert row["runs"] == [expected | {"told": 15, "replies": 480}]
