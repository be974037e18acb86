# SPDX-License-Identifier: GPL-2.0-or-later
"""Signals end a run at the next place that waits, wherever they strike."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# A signal in a callback around a fork, where exceptions are printed and forgotten;
# then a clean-up that waits, too, and a second signal in it.
PROGRAM = """
import os, signal, subprocess, sys
from testbed.world import interruption
from testbed.world.process import wait_until

interruption.watch()
number = int(sys.argv[1])
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), number))
subprocess.run(["true"], preexec_fn=lambda: None)
try:
    wait_until(lambda: False, "the end of the world", [])
except KeyboardInterrupt as error:
    os.kill(os.getpid(), signal.SIGINT)
    rounds = iter(range(3))
    wait_until(lambda: next(rounds) == 2, "the clean-up", [])
    print("stopped by", error)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_no_signal_is_lost_and_the_clean_up_is_not_broken_off(number):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(int(number))],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.stdout == f"stopped by {signal.Signals(number).name}\n", done.stderr
