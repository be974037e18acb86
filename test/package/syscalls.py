#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Which system calls the daemon and its children make: test/package/syscalls.py PROGRAM...

Runs the programs, which start daemons (the tests in src/pemi/tests), under strace and
prints the calls of every `pemi run`, from its first to its last, and of its threads and
children (`nft`). With --emulated the program is a daemon for another processor and is
run by the emulator given, which tells of the calls itself."""

import argparse
import json
import re
import subprocess
import tempfile
from pathlib import Path

CALL = re.compile(r"(\d+) +(?:<\.\.\. )?(\w+)(?: resumed>|\()(.*)")
CHILD = re.compile(r"= (\d+)$")
NEW_PROCESS = ("clone", "clone3", "fork", "vfork")


def calls(trace: str) -> set[str]:
    """Names of the calls of the daemons in a trace of `strace -f`."""
    lines = [(int(m[1]), m[2], m[3]) for m in map(CALL.match, trace.splitlines()) if m]
    parents = {}
    for process, name, rest in lines:
        if name in NEW_PROCESS and (child := CHILD.search(rest)):
            parents[int(child[1])] = process
    daemons, found = set(), set()

    def is_ours(process: int) -> bool:
        while process not in daemons and process in parents:
            process = parents[process]
        return process in daemons

    for process, name, rest in lines:
        if name == "execve" and re.search(r'/pemi", \["[^"]*pemi", "run"', rest):
            daemons.add(process)
        if is_ours(process):
            found.add(name)
    return found


def measure(programs: list[str]) -> set[str]:
    found = set()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        for program in programs:
            tests = [program, "--test-threads=1"]
            # Watched, a test that takes the time may fail; what it called it has called.
            traced = ["strace", "-f", "-qq", "-s", "64", "-o", trace, *tests]
            subprocess.run(traced, stdout=subprocess.DEVNULL, check=False)
            found |= calls(trace.read_text())
    return found


def emulated(emulator: str, command: list[str]) -> set[str]:
    """Calls that an emulator of one program tells of (qemu-user's -strace)."""
    said = subprocess.run([emulator, "-strace", *command], capture_output=True, check=False)
    text = (said.stderr + said.stdout).decode(errors="replace")
    return set(re.findall(r"^\d+ (\w+)\(", text, re.MULTILINE))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--emulated", metavar="EMULATOR")
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    if options.emulated:
        result = emulated(options.emulated, options.program)
    else:
        result = measure(options.program)
    print(json.dumps(sorted(result)))
