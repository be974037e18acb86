# SPDX-License-Identifier: GPL-2.0-or-later
"""What the host makes of plans and of what guests say, without a guest."""

from __future__ import annotations

import pytest
from bed import bars, collect, guest, options, presets, report, rows, sections, series


def plan(*words: str) -> options.Plan:
    return options.parse(list(words))


def test_all_presets_of_the_air_are_known():
    known = presets.read()
    assert list(known) == [
        "clean",
        "good",
        "busy",
        "poor",
        "poor-no-bar",
        "bursts",
        "far",
        "sleepy",
        "roam",
        "crowded",
    ]
    assert known["roam"].access_points == 2
    assert known["crowded"].stations == 4
    assert [name for name in known if known[name].sleeps] == ["sleepy"]


def test_a_plan_is_every_combination_in_order():
    words = ("--preset", "poor", "--off", "--pemi", "--lossless", "--seeds", "2")
    setups = plan(*words, "goodput", "--bytes", "1MB", "--stack", "all").setups
    assert [setup.name for setup in setups[:3]] == [
        "poor-goodput-1000000-quinn-off-seed1",
        "poor-goodput-1000000-quinn-pemi-seed1",
        "poor-goodput-1000000-quinn-lossless-seed1",
    ]
    assert len(setups) == 3 * 2 * 3


@pytest.mark.parametrize("words", [["--preset", "none", "echo"], ["echo"], ["--preset", "poor"]])
def test_a_command_line_without_sense_is_refused(words):
    with pytest.raises(SystemExit) as end:
        plan(*words)
    assert end.value.code == 2


def test_runs_of_one_lab_share_a_boot_and_no_others():
    setups = plan("--preset", "poor", "--preset", "roam", "--preset", "good", "echo").setups
    parts = series.boots(setups)
    assert [[setup.preset.name for setup in part] for part in parts] == [["poor", "good"], ["roam"]]


def test_a_script_says_what_the_run_is():
    (setup,) = plan("--preset", "crowded", "--pemi", "--cc", "bbr", "goodput").setups
    script = setup.script("007")
    assert "AIR=crowded\n" in script
    assert "server /usr/bin/goodput server --listen 10.0.2.2:4433 --cc bbr" in script
    assert "--json /run/logs/007/app.json" in script
    # Three neighbours, both ways.
    assert script.count("in_background") == 6
    (alone,) = plan("--preset", "crowded", "--lossless", "goodput").setups
    assert "AIR=clean\n" in alone.script("007")
    assert "in_background" not in alone.script("007")


def test_a_web_server_is_made_where_it_runs():
    (setup,) = plan("--preset", "poor", "--cc", "newreno", "http", "--bytes", "1MB").setups
    script = setup.script("007")
    assert "certificate &&\nweb_files 1000000 reno " in script
    assert "listen 10.0.2.2:4433 ssl;" in script
    assert "until_true listens srv 1151" in script
    assert "https://10.0.2.2:4433/file" in script


def test_curl_over_http3_has_the_server_of_quicgo():
    words = ("http", "--bytes", "1MB", "--stack", "curl")
    script = plan("--preset", "poor", *words).setups[0].script("007")
    assert "certificate &&\nserver /usr/bin/http-quicgo server --listen 10.0.2.2:4433 " in script
    assert "--library /usr/lib/wifi/_wrapper.abi3.so --connect 10.0.2.2:4433" in script


def test_archives_are_read_as_they_come(tmp_path):
    path = tmp_path / "results"
    lines = guest._Lines(path)
    path.write_text("booted 1\nready 2\nrun 000\nAAA\nBBB\nen")
    assert list(lines.archives()) == []
    path.write_text("booted 1\nready 2\nrun 000\nAAA\nBBB\nend 000\nrun 001\nCCC\nend 001\n")
    assert list(lines.archives()) == ["\nAAA\nBBB", "\nCCC"]
    assert list(lines.archives()) == []


def test_the_key_of_a_boot_is_of_all_that_decides_it(tmp_path, monkeypatch):
    monkeypatch.setattr(guest, "make", lambda kernel: tmp_path)
    for part in guest._PARTS:
        (tmp_path / f"{part}.of").write_text("one")

    def key(*words: str) -> str:
        return guest.key(plan("--preset", "poor", *words).setups)

    first = key("goodput")
    assert key("goodput") == first
    assert key("--loss-seed", "2", "goodput") != first
    (tmp_path / f"{guest._PARTS[0]}.of").write_text("another")
    assert key("goodput") != first


def test_a_stream_is_judged():
    rows = [
        # Numbers 2 and 3 are lost, and the last one.
        {"number": str(number), "sent_us": str(number * 1000), "got_us": str(got)}
        for number, got in [(0, 1000), (1, 2000), (4, 9000), (5, 9100), (6, 9200)]
    ]
    found = collect.stream(rows, 8)
    assert (found["lost"], found["runs"]) == (3, [1, 1])
    assert found["clumps"] == {"mean": 1.67, "max": 3}
    assert found["delay_ms"] == {"p50": 3.2, "p90": 5.0, "p99": 5.0, "max": 5.0}


def test_a_table_has_both_sides_of_a_preset():
    def run(assist: str, mbps: float, copies: int) -> dict:
        return {
            "app": "goodput",
            "stack": "quinn",
            "preset": "poor",
            "assist": assist,
            "bytes": 2_000_000,
            "lossless": False,
            "metrics": {"goodput_mbps": mbps},
            "inference": {"copies": copies, "copies_needed": 4, "repaired": 3},
            "links": {"wifi": {"down": {"lost": 5, "queue_dropped": 1}}},
        }

    runs = [run("off", 4.0, 0), run("pemi", 6.0, 10), run("off", 8.0, 0) | {"preset": "clean"}]
    made = {"date": "2026-11-22", "commit": "abc", "seeds": 1, "part": "all"}
    made |= {"kernel": "6.1", "security": "open"}
    known = list(presets.read().values())
    text = report.markdown(runs, known, made)
    # `clean` is what `poor` would be if nothing failed.
    assert "| `poor` | 8 | 4 | 6 | 1.50 | 5 / 5 | 1 / 1 | 10 | 6 | 3 |" in text
    assert "`crowded` | three other" in text
    assert "<td>1.50</td>" in report.page(runs, known, made)


def test_ways_of_repairing_are_told_to_the_daemon():
    words = ("--preset", "lossy1-150", "--infer", "--radio", "--lossless", "--bw2", "50")
    infer, radio, lossless = plan(*words, "--pemi-options", "--queues 2", "goodput").setups
    assert "ASSIST=pemi\nPEMI_OPTIONS='--repair infer --queues 2'\n" in infer.script("0")
    assert "PEMI_OPTIONS='--repair radio --queues 2'\n" in radio.script("0")
    assert len({infer.name, radio.name, lossless.name}) == 3
    # Where nothing fails the air is as fast as where something does.
    assert "AIR=lossy1-150\n" in radio.script("0")
    assert "AIR=clean-150\n" in lossless.script("0")
    assert "ASSIST=off\n" in lossless.script("0")


def test_every_row_is_measured_in_four_ways_and_has_a_bar():
    for row in rows.rows():
        assert [setup.assist for setup in row.setups(1, "6.1", "open", 1)] == list(rows.VARIANTS)
        assert len(row.setups(2, "6.1", "open", 2)) == 3
        compared = ["off"] if row.bar.compares_with_off else []
        assert [setup.assist for setup in row.setups(2, "6.1", "open", 1)] == [*compared, "radio"]
        assert row.bar != rows.Bar()
    names = [setup.name for row in rows.rows() for setup in row.setups(1, "6.1", "open", 1)]
    assert len(names) == len(set(names))


def _radio_run(assist: str, mbps: float, copies: int, lossless: bool = False) -> dict:
    return {
        "app": "goodput",
        "assist": assist,
        "lossless": lossless,
        "processor_busy": 0.5,
        "metrics": {"goodput_mbps": mbps},
        "router": {"status": {"resent": {"packets": copies}}},
        "links": {"wifi": {"down": {"lost": 10}}},
    }


def test_bars_are_held_or_not():
    runs = [_radio_run("off", 4.0, 0), _radio_run("off", 8.0, 0, lossless=True)]
    runs += [_radio_run("infer", 6.0, 20), *[_radio_run("radio", 7.9, 11) for _ in range(9)]]
    runs.append(_radio_run("radio", 7.0, 11))
    row = rows.Row("lossy1", "quinn", 3_000_000, rows.Bar(0.97, None, 0.9, 1.1))
    cells = bars.cells(row, runs)
    assert cells[:9] == ["`lossy1`", "quinn, 3 MB", "10", "4", "6", "7.9", "8", "0.99", "1.98"]
    assert cells[9:13] == ["0.88", "100", "2.00", "1.10"]
    assert cells[-1] == "not 10th >= 0.9 of lossless"
    assert bars.holds(rows.Bar(of_off=1.8, copies=0), bars.figures(runs)) == [
        (">= 1.8 x off", True),
        ("no copy", False),
    ]


def test_a_file_has_parts_of_two_programs(tmp_path):
    path = tmp_path / "RESULTS.md"
    sections.put(path, "# One\n\nold\n")
    sections.put(path, "# Two\n\n## Inside\n")
    sections.put(path, "# One\n\nnew\n")
    assert path.read_text() == "# One\n\nnew\n\n# Two\n\n## Inside\n"
