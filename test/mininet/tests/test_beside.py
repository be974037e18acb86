# SPDX-License-Identifier: GPL-2.0-or-later
"""Shares of flows side by side, counted on the link."""

import pytest
from testbed.loads.beside import shares
from testbed.world.process import ExperimentError

HEAD = "us,dir,proto,sport,dport,len,head,hash,fate,out_us\n"


def log(tmp_path, rows):
    path = tmp_path / "wifi.csv"
    lines = [f"0,{way},{proto},{port},9,{size},,,ok,{out}" for way, proto, port, size, out in rows]
    path.write_text(HEAD + "\n".join(lines) + "\n")
    return path


def flow(port, proto, size, begin_s, end_s, every_ms):
    times = range(int(begin_s * 1e6), int(end_s * 1e6), int(every_ms * 1e3))
    return [("ab", proto, port, size, us) for us in times]


def test_only_the_time_in_which_all_run_counts(tmp_path):
    # UDP's 28 bytes of headers are not in linkem's length, TCP's are.
    rows = flow(4433, 17, 1222, 0, 20, 2) + flow(4434, 6, 1250, 5, 15, 6)
    # Upstream and other ports are not theirs.
    rows += [("ba", 17, 4433, 9999, 8_000_000), ("ab", 17, 53, 9999, 8_000_000)]
    found = shares(log(tmp_path, rows), [4433, 4434], 4)
    # From 2 s after the second one's start to its end.
    assert found["window_s"] == pytest.approx(8, abs=0.01)
    assert found["rate_mbps"] == pytest.approx(5, rel=0.01)
    assert found["beside_mbps"] == [pytest.approx(5 / 3, rel=0.01)]
    assert found["share"] == pytest.approx(1.5, rel=0.01)
    assert found["jain"] == pytest.approx((4 / 3) ** 2 / (2 * (1 + 1 / 9)), rel=0.01)


def test_too_short_a_time_side_by_side_is_no_result(tmp_path):
    rows = flow(4433, 17, 1222, 0, 3, 2) + flow(4434, 17, 1222, 0, 30, 2)
    with pytest.raises(ExperimentError, match=r"side by side for 3\.0 s only.*more bytes"):
        shares(log(tmp_path, rows), [4433, 4434], 4)


def test_a_flow_that_never_came_is_no_result(tmp_path):
    rows = flow(4433, 17, 1222, 0, 9, 2)
    with pytest.raises(ExperimentError, match="port 4434"):
        shares(log(tmp_path, rows), [4433, 4434], 4)
