# SPDX-License-Identifier: GPL-2.0-or-later
from testbed.draw.timeline import build, held_windows, read_events
from testbed.measure.scoring import Packet


def packet(us, digest, fate="ok"):
    return Packet(
        us=us, length=1000, digest=digest, fate=fate, out_us=us + 1000 if fate == "ok" else None
    )


def test_times_are_since_the_first_packet_and_copies_count_once():
    packets = [
        packet(1_000_000, "a"),
        packet(1_001_000, "b", "lost"),
        packet(1_004_000, "b"),
        packet(1_005_000, "b"),
    ]
    events = [
        {"kind": "hold_start", "t_us": 1_003_000, "client": "c", "server": "s"},
        {"kind": "hold_end", "t_us": 1_006_000, "client": "c", "server": "s"},
    ]
    line = build(packets, events)
    assert line["losses"] == [0.001]
    assert line["repairs"] == [0.005]
    assert line["held"] == [(0.003, 0.006)]
    assert line["delivered"][-1] == (0.005, 2000)
    assert line["end_s"] == 0.005


def test_nothing_happened():
    assert build([], [])["delivered"] == []


def test_windows_of_different_flows_do_not_mix():
    events = [
        {"kind": "hold_start", "t_us": 1, "client": "a", "server": "s"},
        {"kind": "hold_end", "t_us": 2, "client": "b", "server": "s"},
        {"kind": "hold_end", "t_us": 3, "client": "a", "server": "s"},
    ]
    assert held_windows(events) == [(1, 3)]


def test_no_events_without_a_daemon(tmp_path):
    assert read_events(tmp_path / "events.jsonl") == []
