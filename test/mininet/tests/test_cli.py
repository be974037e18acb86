import pytest
from testbed import cli


def test_output_options_may_follow_the_application():
    plan = cli.parse(["--preset", "train", "--pemi", "goodput", "--bytes", "1MB", "--json", "x"])
    assert str(plan.json) == "x"
    (setup,) = plan.setups
    assert (setup.assist, setup.app.bytes, setup.scenario.loss1) == ("pemi", 1_000_000, 1)
    assert str(cli.parse(["--json", "y", "rtc"]).json) == "y"


def test_same_seeds_with_and_without():
    plan = cli.parse(["--off", "--pemi", "--seeds", "2", "--loss-seed", "7", "goodput"])
    assert [(setup.seed, setup.assist) for setup in plan.setups] == [
        (7, "off"),
        (7, "pemi"),
        (8, "off"),
        (8, "pemi"),
    ]


def test_lossless_ceiling_comes_with_the_others():
    plan = cli.parse(["--preset", "train", "--pemi", "--lossless", "goodput"])
    assert [(s.assist, s.scenario.loss1) for s in plan.setups] == [("pemi", 1), ("off", 0)]


def test_codes_are_named_by_their_numbers():
    plan = cli.parse(["--off", "--fec", "2", "3", "--fec", "10", "12", "goodput"])
    assert [setup.assist for setup in plan.setups] == ["off", "fec-2-3", "fec-10-12"]


def test_bursty_loss():
    (setup,) = cli.parse(["--loss1ge", "1", "10", "100", "0", "rtc"]).setups
    assert setup.scenario.loss1ge == (1, 10, 100, 0)
    assert setup.assist == "off"


def stacks(*line):
    return [setup.app.stack for setup in cli.parse(list(line)).setups]


def test_stacks_in_turn():
    assert stacks("goodput") == ["quinn"]
    assert stacks("rtc", "--stack", "quicgo", "--stack", "quiche") == ["quicgo", "quiche"]
    assert stacks("goodput", "--stack", "all") == ["quinn", "quiche", "quicgo"]
    assert stacks("http", "--stack", "all") == ["tcp", "quicgo", "chromium"]
    assert stacks("connect", "--stack", "all") == ["quinn", "quinn-0rtt", "tcp"]


def test_each_stack_has_a_controller_of_its_own_by_default():
    plan = cli.parse(["goodput", "--stack", "all"])
    assert [setup.app.cc for setup in plan.setups] == ["cubic", "cubic", "newreno"]
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
        ["--capture", "goodput"],
        ["--seeds", "0", "goodput"],
        ["--rt", "100", "goodput"],
        ["--qdisc", "cake", "goodput"],
        ["--beside", "quinn", "rtc"],
        ["--beside", "quinn", "--fec", "2", "3", "goodput"],
        ["--pep", "goodput"],
        ["--fec", "3", "2", "goodput"],
        ["--fec", "2", "goodput"],
    ],
)
def test_nonsense_ends_with_one_line_and_exit_code_2(line, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.parse(line)
    assert ended.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("run.py: error: ")
