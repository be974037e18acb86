import os
import subprocess

import pytest
from testbed import assist


def test_nft_rules_are_good_syntax():
    # Checking needs a namespace of its own, and the kernel may lack the queue
    # statement, which is the one thing replaced here.
    rules = assist.nft_rules(4433).replace(f"queue num {assist.QUEUE} bypass", "accept")
    if os.geteuid() != 0:
        pytest.skip("nft needs root even to check")
    check = ["unshare", "-n", "nft", "-f", "-"]
    answer = subprocess.run(check, input=rules, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


def test_own_process_is_measured():
    assert assist.cpu_seconds(os.getpid()) > 0
    assert assist.peak_rss_kib(os.getpid()) > 1000
