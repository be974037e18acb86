# SPDX-License-Identifier: GPL-2.0-or-later
import pytest
from testbed import cli, series
from testbed.loads.apps import Place


def test_output_options_may_follow_the_application():
    plan = cli.parse(["--preset", "train", "--pemi", "goodput", "--bytes", "1MB", "--json", "x"])
    assert str(plan.json) == "x"
    (setup,) = plan.setups
    assert (setup.assist.name, setup.app.bytes, setup.scenario.loss1) == ("pemi", 1_000_000, 1)
    assert str(cli.parse(["--json", "y", "rtc"]).json) == "y"


def test_same_seeds_with_and_without():
    plan = cli.parse(["--off", "--pemi", "--seeds", "2", "--loss-seed", "7", "goodput"])
    assert [(setup.seed, setup.assist.name) for setup in plan.setups] == [
        (7, "off"),
        (7, "pemi"),
        (8, "off"),
        (8, "pemi"),
    ]


def test_lossless_ceiling_comes_with_the_others():
    plan = cli.parse(["--preset", "train", "--pemi", "--lossless", "goodput"])
    assert [(s.assist.name, s.scenario.loss1) for s in plan.setups] == [("pemi", 1), ("off", 0)]


def test_codes_are_named_by_their_numbers():
    plan = cli.parse(["--off", "--fec", "2", "3", "--fec", "10", "12", "goodput"])
    assert [setup.assist.name for setup in plan.setups] == ["off", "fec-2-3", "fec-10-12"]


def test_quacks_are_named_by_their_interval():
    line = ["--off", "--sidekick", "2p", "--sidekick", "10ms", "--sidekick", "adaptive", "media"]
    plan = cli.parse(line)
    names = ["off", "sidekick-2p", "sidekick-10ms", "sidekick-adaptive"]
    assert [setup.assist.name for setup in plan.setups] == names
    assert all(setup.app.stack == "udp" for setup in plan.setups)


def test_the_shape_of_a_voice_call(tmp_path):
    line = ["media", "--seconds", "7", "--bytes", "100", "--interval-ms", "5"]
    (setup,) = cli.parse(line).setups
    place = Place(tmp_path, "10.0.2.2:4433", 10, tmp_path, ("--sidekick", "10.0.1.1:5103"))
    words = "client --connect 10.0.2.2:4433 --sidekick 10.0.1.1:5103 --seconds 7 --bytes 100"
    assert " ".join(setup.app.client(place)[1:]) == f"{words} --interval-ms 5 --rt 10"
    assert " ".join(setup.app.server(place)[1:]) == "server --listen 10.0.2.2:4433 --rt 10"
    assert setup.expected_s == 9


def test_an_upload_is_controlled_by_the_client(tmp_path):
    line = ["--cc", "bbr", "--sidekick", "4p", "upload", "--bytes", "1MB", "--bytes", "2MB"]
    setups = cli.parse(line).setups
    assert [setup.app.bytes for setup in setups] == [1_000_000, 2_000_000]
    place = Place(tmp_path, "10.0.2.2:4433", 10, tmp_path, ("--sidekick", "10.0.1.1:5103"))
    words = " ".join(setups[0].app.client(place))
    assert "--bytes 1000000" in words
    assert words.endswith("--cc bbr --sidekick 10.0.1.1:5103")


@pytest.mark.parametrize("interval", ["2", "0p", "2x", "1001p", "1001ms", "1.5p", "-2p", "", "2P"])
def test_what_is_no_interval_is_named(interval, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.parse([f"--sidekick={interval}", "media"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert f"--sidekick {interval}: it is a number of packets (2p)" in said
    assert len(said.splitlines()) == 1


def test_only_a_sender_that_asks_can_have_quacks(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.parse(["--sidekick", "2p", "rtc"])
    assert ended.value.code == 2
    assert (
        "--sidekick needs a sender that asks for it: media or upload, not rtc"
        in capsys.readouterr().err
    )


def test_the_daemon_may_come_back():
    line = ["--off", "--sidekick", "2p", "--kill-daemon-after", "2", "--restart-daemon-after", "1"]
    off, on = cli.parse([*line, "media"]).setups
    assert (on.kill_daemon_after_s, on.restart_daemon_after_s) == (2, 1)
    assert off.assist.name == "off"


def test_a_radio_by_its_preset():
    (setup,) = cli.parse(["--preset", "train", "--wifi", "poor-no-bar", "rtc"]).setups
    assert (setup.scenario.wifi1, setup.scenario.loss1) == ("poor-no-bar", 0)


@pytest.mark.parametrize(
    "hop", [["--loss1", "1"], ["--loss1ge", "1", "10", "100", "0"], ["--wifi", "poor"]]
)
def test_a_run_without_the_losses_has_a_name_and_words_of_its_own(hop):
    setups = cli.parse([*hop, "--off", "--lossless", "goodput"]).setups
    assert len({setup.name for setup in setups}) == len(setups) == 2
    assert len({series.describe(setup) for setup in setups}) == 2


def test_bursty_loss():
    (setup,) = cli.parse(["--loss1ge", "1", "10", "100", "0", "rtc"]).setups
    assert setup.scenario.loss1ge == (1, 10, 100, 0)


def test_outages():
    (setup,) = cli.parse(["--preset", "train", "--outages1", "3000", "200", "rtc"]).setups
    assert setup.scenario.outages1 == (3000, 200)
    assert setup.name.endswith("outages-seed1")
    assert series.describe(setup).count("outages of 200 ms, 3000 ms apart")
    assert setup.assist.name == "off"


def stacks(*line):
    return [setup.app.stack for setup in cli.parse(list(line)).setups]


def test_stacks_in_turn():
    assert stacks("goodput") == ["quinn"]
    assert stacks("rtc", "--stack", "quicgo", "--stack", "quiche") == ["quicgo", "quiche"]
    assert stacks("goodput", "--stack", "all") == ["quinn", "quiche", "quicgo", "s2n"]
    assert stacks("rtc", "--stack", "all") == ["quinn", "quiche", "quicgo"]
    assert stacks("http", "--stack", "all") == ["tcp", "quicgo", "curl", "chromium", "firefox"]
    assert stacks("connect", "--stack", "all") == ["quinn", "quinn-0rtt", "tcp"]


def test_each_stack_has_a_controller_of_its_own_by_default():
    plan = cli.parse(["goodput", "--stack", "all"])
    assert [setup.app.cc for setup in plan.setups] == ["cubic", "cubic", "newreno", "cubic"]
    (setup,) = cli.parse(["--cc", "bbr", "rtc", "--stack", "quiche"]).setups
    assert setup.app.cc == "bbr"


def test_a_controller_that_a_stack_lacks_is_named_with_what_it_has(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.parse(["--cc", "cubic", "goodput", "--stack", "all"])
    assert ended.value.code == 2
    assert "--cc cubic: quicgo has only newreno" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["http", "--stack", "quinn"],
        ["goodput", "--stack", "tcp"],
        ["connect", "--count", "0"],
        ["goodput", "--bytes", "much"],
        ["--loss1", "200", "goodput"],
        ["--kill-daemon-after", "1", "goodput"],
        ["--restart-daemon-after", "1", "--pemi", "goodput"],
        ["--capture", "goodput"],
        ["--seeds", "0", "goodput"],
        ["--rt", "100", "goodput"],
        ["--qdisc", "cake", "goodput"],
        ["--beside", "quinn", "rtc"],
        ["--beside", "quinn", "--fec", "2", "3", "goodput"],
        ["--pep", "goodput"],
        ["--fec", "3", "2", "goodput"],
        ["--fec", "2", "goodput"],
        ["--sidekick", "media"],
        ["--sidekick", "2p", "http"],
        ["--cc", "bbr", "media"],
        ["--beside", "quinn", "media"],
        ["--beside", "quinn", "upload"],
        ["--pep", "upload"],
        ["media", "--seconds", "0"],
        ["media", "--interval-ms", "-1"],
        ["media", "--interval-ms", "nan"],
        ["media", "--bytes", "0"],
    ],
)
def test_nonsense_ends_with_one_line_and_exit_code_2(line, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.parse(line)
    assert ended.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("run.py: error: ")
