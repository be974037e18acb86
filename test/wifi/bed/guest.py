# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest: made, booted with a plan, listened to."""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from testbed.world.process import ExperimentError

from . import ROOT
from .setups import Setup

_IMAGE = ROOT / "test/wifi/image.sh"
_MEMORY_MIB = 1024
_PARTS = ("base.cpio", "programs.cpio")
# One nanosecond an instruction, or two: a router of 1,000 or 500 MIPS. Idle time is skipped.
_SHIFTS = {1000: 0, 500: 1}
_MACHINE = (
    *("-accel", "tcg", "-smp", "1", "-M", "pc", "-m", str(_MEMORY_MIB)),
    *("-rtc", "base=2026-01-01,clock=vm"),
    # All that would be random in a machine: its `rdrand` and the kernel's seed. Westmere is the
    # first to have AES, which is cheaper to emulate than to compute.
    *("-seed", "1", "-cpu", "Westmere,+rdrand"),
    *("-nodefaults", "-no-reboot", "-display", "none"),
)
# Recorded, to nowhere: a recording QEMU lets its main loop and the processor's thread run only in
# turn. Otherwise the main loop may see a processor that has halted before what it executed last is
# counted, and skips idle time from too early a moment: on a busy host a third of the boots were
# some instructions apart at some moment, and then all that followed differed.
_IN_TURN = "rr=record,rrfile=/dev/null"
# Modules that nothing asks for by itself, in the order of the guest's list.
_MODULES = ("veth", "bridge", "sch_netem", "nft_queue", "nft_ct", "nft_limit")
_COMMAND_LINE = (
    "console=ttyS0 quiet panic=-1 nokaslr mitigations=off tsc=reliable cryptomgr.notests"
)
_POLL_S = 0.2
# Real seconds for a boot, and for a packet on a busy machine.
_PATIENCE_S = 300
_PATIENCE_PACKET_S = 0.2


@functools.cache
def make(kernel: str) -> Path:
    """The folder with what the guest of this kernel boots from; quick if it is there. Once, so
    that all boots of a series are alike."""
    made = subprocess.run([_IMAGE, kernel], stdout=subprocess.DEVNULL)
    if made.returncode != 0:
        raise ExperimentError(f"{_IMAGE.name} failed for Linux {kernel}")
    return ROOT / "out/wifi" / kernel


def key(setups: list[Setup]) -> str:
    """Of everything that decides what comes of these runs in one boot."""
    image = make(setups[0].lab.kernel)
    made_of = [(image / f"{part}.of").read_bytes() for part in _PARTS]
    machine = " ".join([*_machine(setups), _COMMAND_LINE]).encode()
    return hashlib.sha256(b"".join([*made_of, machine, _plan(setups)])).hexdigest()[:20]


def _machine(setups: list[Setup]) -> tuple[str, ...]:
    return (*_MACHINE, "-icount", f"shift={_SHIFTS[setups[0].lab.mips]},sleep=off,{_IN_TURN}")


def _plan(setups: list[Setup]) -> bytes:
    """An archive for the end of the guest's initial file system."""
    with tempfile.TemporaryDirectory() as directory:
        plan = Path(directory) / "plan"
        (plan / "runs").mkdir(parents=True)
        (plan / "modules").write_text("\n".join(_MODULES) + "\n")
        (plan / "boot").write_text(setups[0].lab.script())
        for number, setup in enumerate(setups):
            (plan / "runs" / _name(number)).write_text(setup.script(_name(number)))
            if setup.air is not None:
                (plan / "air").mkdir(exist_ok=True)
                (plan / "air" / _name(number)).write_text(setup.air)
        found = sorted(plan.rglob("*"))
        names = "\n".join(str(path.relative_to(directory)) for path in [plan, *found])
        # Times are the only thing that would differ from boot to boot.
        for path in [plan, *found]:
            os.utime(path, (0, 0))
        archive = ("cpio", "-o", "-H", "newc", "--quiet", "-R", "0:0", "--reproducible")
        packed = subprocess.run(
            archive, cwd=directory, input=names.encode(), stdout=subprocess.PIPE, check=True
        )
    return packed.stdout


class Guest:
    """One boot and the runs in it, in the order of the list."""

    def __init__(self, setups: list[Setup], directory: Path, stop: threading.Event) -> None:
        """All of one lab. Another thread may set `stop`: then the guest ends, with what it has
        by then."""
        self._stop = stop
        self._setups = setups
        self._directory = directory
        self._console = directory / "console.log"
        self._results = directory / "results"

    def carry_out(self, began: Callable[[Setup], None]) -> Iterator[tuple[Setup, Path]]:
        """Each run with the folder of its files, as they come."""
        image = make(self._setups[0].lab.kernel)
        initrd = self._directory / "initrd"
        with initrd.open("wb") as file:
            for part in _PARTS:
                file.write((image / part).read_bytes())
            file.write(_plan(self._setups))
        self._results.touch()
        with subprocess.Popen(self._command(image, initrd)) as process:
            try:
                yield from self._listen(process, began)
            finally:
                process.kill()
        initrd.unlink()

    def _command(self, image: Path, initrd: Path) -> list[str]:
        return [
            # Whatever becomes of this process, the guest does not stay behind.
            *("setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"),
            *_machine(self._setups),
            *("-serial", f"file:{self._console}", "-serial", f"file:{self._results}"),
            *("-kernel", str(image / "kernel"), "-initrd", str(initrd), "-append", _COMMAND_LINE),
        ]

    def _listen(
        self, process: subprocess.Popen, began: Callable[[Setup], None]
    ) -> Iterator[tuple[Setup, Path]]:
        deadline = time.monotonic() + _PATIENCE_S
        deadline += _PATIENCE_PACKET_S * sum(setup.work for setup in self._setups)
        lines = _Lines(self._results)
        done = 0
        if self._setups:
            began(self._setups[0])
        while done < len(self._setups) and not self._stop.is_set():
            over = process.poll() is not None
            if time.monotonic() > deadline:
                raise ExperimentError(f"the guest was not done in time\n{self._last_words()}")
            for text in lines.archives():
                yield self._setups[done], self._unpack(done, text)
                done += 1
                if done < len(self._setups):
                    began(self._setups[done])
            if over and done < len(self._setups):
                raise ExperimentError(f"the guest ended too early\n{self._last_words()}")
            time.sleep(_POLL_S)

    def _unpack(self, number: int, text: str) -> Path:
        directory = self._directory / self._setups[number].name
        directory.mkdir()
        unpack = ("tar", "-xz", "--no-same-owner", "-C", str(directory))
        subprocess.run(unpack, input=base64.b64decode(text), check=True)
        return directory

    def _last_words(self) -> str:
        said = self._console.read_text(errors="replace") if self._console.exists() else ""
        return "\n".join(said.splitlines()[-15:])


class _Lines:
    """What the second serial port has said: archives between `run NAME` and `end NAME`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def archives(self) -> Iterator[str]:
        text = self._path.read_bytes()[self._read :].decode("ascii", errors="replace")
        while True:
            start = text.find("run ")
            end = text.find("\nend ", start)
            whole = text.find("\n", end + 1)
            if start < 0 or end < 0 or whole < 0:
                return
            self._read += whole + 1
            yield text[text.index("\n", start) : end]
            text = text[whole + 1 :]


def _name(number: int) -> str:
    return f"{number:03}"
