# SPDX-License-Identifier: GPL-2.0-or-later
import os

from testbed.assists import cost


def test_own_process_is_measured():
    assert cost.cpu_seconds(os.getpid()) > 0
    assert cost.peak_rss_kib(os.getpid()) > 1000
