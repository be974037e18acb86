# SPDX-License-Identifier: GPL-2.0-or-later
"""The router's machine: QEMU without help of the processor (TCG)."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from testbed.world.process import ExperimentError

from .namespace import die_with_parent


@dataclass(frozen=True)
class Hardware:
    """What QEMU calls the machine."""

    program: str
    options: tuple[str, ...]
    # Where the kernel puts the console, and what else it is told.
    append: str
    # How much longer than on x86_64 something may take.
    patience: float = 1.0


HARDWARE = {
    # jshn waits for the kernel's random numbers, hence rdrand. The cures of this
    # processor's flaws cost most where it is emulated.
    "x86_64": Hardware(
        "qemu-system-x86_64",
        ("-M", "pc", "-cpu", "Nehalem,+rdrand"),
        "console=ttyS0 mitigations=off",
    ),
    "arm64": Hardware(
        "qemu-system-aarch64", ("-M", "virt", "-cpu", "cortex-a53"), "console=ttyAMA0", patience=2
    ),
    "mipsel": Hardware(
        "qemu-system-mipsel", ("-M", "malta", "-cpu", "24Kf"), "console=ttyS0", patience=4
    ),
}
# As on the wire: one packet a frame, checksums complete.
_NIC = ",csum=off,guest_csum=off,gso=off,guest_tso4=off,guest_tso6=off,host_tso4=off,host_tso6=off"


class MachineError(ExperimentError):
    """The machine itself is no longer of use."""


class Qemu:
    """A machine that runs, with a network interface for each of `taps`."""

    def __init__(self, arch: str, folder: Path, options: list[str], descriptors: list[int]) -> None:
        hardware = HARDWARE[arch]
        self.console = folder / "console.log"
        self.console.unlink(missing_ok=True)
        self._errors = folder / "qemu.err"
        argv = [hardware.program, "-accel", "tcg", *hardware.options]
        argv += ["-m", "256", "-nodefaults", "-no-reboot", "-display", "none"]
        argv += ["-serial", f"file:{self.console}", *options]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=subprocess.STDOUT,
                pass_fds=descriptors,
                preexec_fn=die_with_parent,
            )

    def __enter__(self) -> Qemu:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def check(self) -> None:
        """Raise if it does not run any more."""
        if self._process.poll() is not None:
            error = self._errors.read_text(errors="replace").strip()
            raise MachineError(f"the machine stopped. {error}")

    def console_tail(self, lines: int = 30) -> str:
        """The end of what the kernel and its children printed."""
        with suppress(FileNotFoundError):
            return "\n".join(self.console.read_text(errors="replace").splitlines()[-lines:])
        return ""


def interfaces(taps: list[int]) -> list[str]:
    """Options for network interfaces, first the clients' side."""
    options = []
    for number, tap in enumerate(taps):
        mac = f"02:00:00:00:00:{number + 1:02x}"
        options += ["-netdev", f"tap,id=net{number},fd={tap}"]
        options += ["-device", f"virtio-net-pci,netdev=net{number},mac={mac},romfile={_NIC}"]
    return options
