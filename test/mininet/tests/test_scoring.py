# SPDX-License-Identifier: GPL-2.0-or-later
import pytest
from testbed.measure.scoring import Packet, read_truth, score

RTT_MS = 52


def packet(ms, digest, fate="ok", length=1280):
    out_us = ms * 1000 + 1100 if fate == "ok" else None
    return Packet(us=ms * 1000, length=length, digest=digest, fate=fate, out_us=out_us)


def test_no_copies_no_losses():
    result = score([packet(0, "a"), packet(1, "b")], RTT_MS)
    assert result["precision"] is None
    assert result["recall"] is None
    assert result["unneeded_percent"] == 0
    assert result["packets"] == 2


def test_nothing_at_all():
    assert score([], RTT_MS)["unneeded_percent"] is None


def test_a_needed_copy_repairs_a_loss():
    result = score([packet(0, "a", "lost"), packet(1, "b"), packet(4, "a")], RTT_MS)
    assert result["precision"] == 1
    assert result["recall"] == 1
    assert result["repair_ms_median"] == pytest.approx(5.1)


def test_a_copy_of_a_packet_that_arrived_is_not_needed():
    result = score([packet(0, "a"), packet(4, "a"), packet(5, "b"), packet(6, "c")], RTT_MS)
    assert result["precision"] == 0
    assert result["unneeded_percent"] == 25


def test_a_second_copy_is_needed_only_if_the_first_was_lost_too():
    lost_twice = [packet(0, "a", "lost"), packet(4, "a", "lost"), packet(8, "a")]
    assert score(lost_twice, RTT_MS)["copies_needed"] == 2
    assert score(lost_twice, RTT_MS)["recall"] == 1
    once = [packet(0, "a", "lost"), packet(4, "a"), packet(8, "a")]
    assert score(once, RTT_MS)["copies_needed"] == 1


def test_a_copy_after_the_senders_own_repair_is_too_late():
    result = score([packet(0, "a", "lost"), packet(70, "a")], RTT_MS)
    assert result["losses"] == 1
    assert result["recall"] == 0
    assert result["precision"] == 1


def test_queue_drops_are_no_losses_of_the_hop():
    result = score([packet(0, "a", "queue"), packet(4, "a")], RTT_MS)
    assert result["losses"] == 0
    assert result["recall"] is None
    assert result["precision"] == 1


def test_truth_is_read_by_its_header_and_by_direction(tmp_path):
    log = tmp_path / "wifi.csv"
    log.write_text(
        "dir,us,proto,sport,dport,len,head,hash,fate,out_us\n"
        "ab,8.5,17,4433,50000,1280,40ab,h4,lost,\n"
        "ab,5,17,4433,50000,1280,40aa,h1,ok,1105\n"
        "ab,6,1,0,0,84,08,h2,ok,1106\n"
        "ba,7,17,50000,4433,60,41bb,h3,lost,\n"
        "ab,9,17,4433,50000,1280,40ac,h5,ok,\n"
    )
    down = read_truth(log, "ab", 4433)
    assert [(entry.us, entry.digest, entry.dropped, entry.out_us) for entry in down] == [
        (5, "h1", False, 1105),
        (8.5, "h4", True, None),
        (9, "h5", False, None),
    ]
    assert [entry.digest for entry in read_truth(log, "ba", 4433)] == ["h3"]
