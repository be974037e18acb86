# SPDX-License-Identifier: GPL-2.0-or-later
import subprocess
import sys
import time
from pathlib import Path

import pytest
from testbed.world.process import Child, ExperimentError, describe_exit, wait_until


class Here:
    """Stands for a namespace: this one."""

    @staticmethod
    def popen(argv, **options):
        return subprocess.Popen(argv, **options)


def python(tmp_path, code):
    return Child("program", Here, [sys.executable, "-c", code], tmp_path)


def test_failure_shows_what_the_program_said(tmp_path):
    with (
        python(tmp_path, "import sys; sys.exit('no such device')") as child,
        pytest.raises(ExperimentError, match=r"exit code 1\n.*no such device"),
    ):
        wait_until(lambda: False, "never", [child])


def test_waiting_ends_with_the_event(tmp_path):
    with python(tmp_path, "print('ready', flush=True); import time; time.sleep(60)") as child:
        wait_until(lambda: "ready" in child.output(), "ready", [child])
        child.stop()
        assert describe_exit(child.exit_code) == "SIGTERM"


def test_waiting_has_an_end(tmp_path):
    with pytest.raises(ExperimentError, match="the moon: still not so"):
        wait_until(lambda: False, "the moon", [], timeout_s=0.05)


def test_a_deaf_program_is_killed_and_told_of(tmp_path):
    code = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True);"
        "time.sleep(60)"
    )
    with python(tmp_path, code) as child:
        wait_until(lambda: "deaf" in child.output(), "deaf", [child])
        with pytest.raises(ExperimentError, match="did not stop"):
            child.stop(timeout_s=0.1)
        assert child.exit_code == -9


def test_children_do_not_outlive_a_killed_parent(tmp_path):
    pid_file = tmp_path / "pid"
    code = f"""
import sys, time, pathlib
sys.path[:0] = {sys.path!r}
from test_process import python
child = python(pathlib.Path({str(tmp_path)!r}), "import time; time.sleep(60)")
pathlib.Path({str(pid_file)!r}).write_text(str(child.pid))
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        deadline = time.monotonic() + 10
        while not (pid_file.exists() and pid_file.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        parent.kill()
    stat = Path(f"/proc/{pid_file.read_text()}/stat")
    while time.monotonic() < deadline:
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except FileNotFoundError:
            return
        time.sleep(0.02)
    pytest.fail("the grandchild is still there")
