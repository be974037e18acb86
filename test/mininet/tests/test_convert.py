# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings of real Wi-Fi become traces. The input is made up, in the sources' formats."""

import lzma
import tomllib

import convert
import pytest
from testbed.world import traces

HZ = 44_100
# The packets of a made-up call: how far apart, in RTP's time and in ms.
APART = 441
APART_MS = 10
BEGIN_NS = 1_735_574_855_345_706_496


def write(checkout, folder, name, content):
    path = checkout / folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".xz":
        path.write_bytes(lzma.compress(content.encode()))
    else:
        path.write_text(content)
    return path


def roc(checkout, content, name="20241230_gh674_clock_offset/01--some_wifi.csv.xz"):
    return write(checkout, "reports", name, content)


# Packets without an obstacle before and after: a recording is long.
QUIET = 300


def log(delays, first_stamp=7, slower_by=0.0):
    """Of roc-recv, for packets that took so many ms; None: there is no row of it."""
    lines = []
    for number, delay in enumerate([3] * QUIET + delays + [3] * QUIET):
        if delay is None:
            continue
        arrival = round((number * APART_MS * (1 + slower_by) + delay + 50) * 1e6)
        stamp = (first_stamp + number * APART) % (1 << 32)
        lines.append(f"m,{BEGIN_NS + arrival}.000000,{stamp}.000000,1.5,2.5,3.5")
        lines.append(f"d,{BEGIN_NS + arrival}.000000,0.000000,0.000000,0.000000")
    return "\n".join(lines) + "\n"


def delays(path):
    found = [float(line) for line in convert.delay_lines(path)]
    assert set(found[:QUIET] + found[-QUIET:]) == {1}
    return found[QUIET:-QUIET]


def test_delays_are_above_the_least(tmp_path):
    # Of the least, nobody knows how long it took.
    assert delays(roc(tmp_path, log([4, 9.5, 3, 3, 70, 60, 3]))) == [2, 7.5, 1, 1, 68, 58, 1]


def test_the_time_of_rtp_wraps(tmp_path):
    path = roc(tmp_path, log([3, 5, 3, 8, 3], first_stamp=(1 << 32) - (QUIET + 1) * APART))
    assert delays(path) == [1, 3, 1, 6, 1]


def test_a_clock_that_runs_slow_delays_nothing(tmp_path):
    packets = 6000 * 3
    path = roc(tmp_path, log([3, 4] * (packets // 2), slower_by=2e-5))
    found = [float(line) for line in convert.delay_lines(path)][QUIET:-QUIET]
    # Without the correction the last would be 3.6 ms above the first.
    assert len(found) == packets
    assert max(found) < 2.1
    assert min(found[-100:]) < 1.1


def test_what_came_at_once_waited_for_the_same_end(tmp_path):
    path = roc(tmp_path, log([3, 43, None, None, None, None, 5, None, 5, 3]))
    assert delays(path) == [1, 41, 31, 21, 11, 3, 3, 3, 3, 1]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("m,12.0,5.0\nm,x,6\n", "line 2: expected `m,` and the arrival in ns and the RTP time"),
        ("m,12.0,5.0\nm,13\n", "line 2: expected `m,` and the arrival in ns and the RTP time"),
        ("\nm,12.0,-5.0\n", "line 2: expected an RTP time of 32 bits, not -5"),
        ("d,12.0,0.0\n", "expected lines with `m,` of two packets or more"),
        ("m,0,0\nm,1000000000,11025\n", "expected an RTP clock of 8000, "),
        (log([70_000]), "expected delays of at most 60 s"),
    ],
)
def test_what_is_no_log_of_a_receiver_is_named(content, says, tmp_path):
    path = roc(tmp_path, content)
    with pytest.raises(convert.ConvertError) as error:
        convert.delay_lines(path)
    assert str(path) in str(error.value)
    assert says in str(error.value)


def test_an_archive_that_is_none_is_named(tmp_path):
    path = roc(tmp_path, "")
    path.write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(convert.ConvertError, match="expected an xz archive of text"):
        convert.delay_lines(path)


def opportunities(tmp_path, text):
    path = write(tmp_path, "traces", "wifi_cafe_1.txt", text)
    return [int(line) for line in convert.rate_lines(path)]


def test_rates_become_opportunities(tmp_path):
    # 12 Mbit/s is 1500 bytes each ms; the last row lasts as long as the others.
    found = opportunities(tmp_path, "300.0 12\n300.2 0\n300.4 6\n")
    assert found[:200] == list(range(1, 201))
    assert found[200:] == list(range(402, 601, 2))


def test_what_is_left_of_a_row_counts_in_the_next(tmp_path):
    # 18 kbit in all, and the end, where the trace begins again.
    assert opportunities(tmp_path, "0\t0.009\n1\t0.009\n") == [1334, 2000]


def test_rows_without_length_carry_nothing(tmp_path):
    rows = "0.0\t12\n1.0\t0\n3.5\t500\n3.5\t500\n3.5\t12\n4.5\t12\n"
    found = opportunities(tmp_path, rows)
    assert len(found) == 3000
    assert [ms for ms in found if 1000 < ms <= 3500] == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("0 5\n1 fast\n", "line 2: expected a time in s and a rate in Mbit/s, not '1 fast'"),
        ("0 5\n\n1\n", "line 3: expected a time in s and a rate in Mbit/s, not '1'"),
        ("0 5\n1 -5\n", "line 2: expected a rate of 0 Mbit/s or more"),
        ("0 5\n1 nan\n", "line 2: expected a rate of 0 Mbit/s or more"),
        ("2 5\n1 5\n", "line 2: expected no time before 2 s, not 1"),
        ("0 5\n", "expected two lines or more"),
        ("", "expected two lines or more"),
        ("0 5\n0 5\n", "expected times that differ"),
    ],
)
def test_what_is_no_rate_is_named(content, says, tmp_path):
    path = write(tmp_path, "traces", "wifi_cafe_1.txt", content)
    with pytest.raises(convert.ConvertError) as error:
        convert.rate_lines(path)
    assert str(path) in str(error.value)
    assert says in str(error.value)


ZHUGE = "ns-3.34-diff/real-exp/traces"


def test_a_checkout_becomes_traces_that_say_whose_they_are(tmp_path):
    write(tmp_path, ZHUGE, "office-wifi_0.pitree-trace", "300.05 12\n300.25 24\n")
    write(tmp_path, ZHUGE, "rest1_2.pitree-trace", "300.05 12\n300.25 24\n")
    # Cellular.
    write(tmp_path, ZHUGE, "abc4g_2.pitree-trace", "nonsense")
    out = tmp_path / "out"
    made = convert.convert("zhuge", tmp_path, out)
    assert [path.name for path in made] == ["zhuge-office-wifi-0.toml", "zhuge-rest1-2.toml"]
    head = tomllib.loads(made[0].read_text())
    assert head["source"] == f"transys-project/zhuge {ZHUGE}/office-wifi_0.pitree-trace"
    assert head["licence"] == "AGPL-3.0"
    read = traces.read(made[0])
    assert (read.down.mean_mbit, read.down.delay_ms) == (18, None)
    assert read.up == read.down


def test_delays_of_a_checkout_leave_the_rate_to_others(tmp_path):
    folder = "20250210_gh712_peak_jitter"
    roc(tmp_path, log([3, 9, 4]), f"{folder}/05--2ghz/roc_recv.csv.xz")
    roc(tmp_path, log([3, 8, 3]))
    roc(tmp_path, log([3, 8, 3]), "20241230_gh674_clock_offset/03--ethernet--no_load.csv.xz")
    made = convert.convert("roc", tmp_path, tmp_path / "out")
    assert [path.stem for path in made] == [
        "roc-20241230-gh674-clock-offset-01-some-wifi",
        "roc-20241230-gh674-clock-offset-03-ethernet-no-load",
        "roc-20250210-gh712-peak-jitter-05-2ghz-roc-recv",
    ]
    wifi, ethernet, _ = (tomllib.loads(path.read_text()) for path in made)
    assert "none is stated" in wifi["licence"]
    assert (wifi["title"][:6], ethernet["title"][:9]) == ("Wi-Fi ", "Ethernet ")
    read = traces.read(made[2])
    assert (read.down.mean_mbit, read.delay_ms) == (None, 1)


def test_a_folder_that_is_no_checkout_is_named_with_what_it_should_be(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        convert.main(["solis", str(tmp_path), "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{tmp_path}: expected a checkout of GreenLv/Solis-WiFi-Trace, with wifi_*.txt" in line
    assert not (tmp_path / "out").exists()
