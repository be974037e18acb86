# SPDX-License-Identifier: GPL-2.0-or-later
"""Network namespaces for the client and the server, with a TAP device each.

They have no names and are held open by a process that dies with us, so nothing
of them is left whatever becomes of this program.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import subprocess
from pathlib import Path

from testbed.world.process import ExperimentError
from testbed.world.process import _die_with_parent as die_with_parent

_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000
_LIBC = ctypes.CDLL(None, use_errno=True)


class Namespace:
    """One end of the path."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Namespace:
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"],
            stdout=subprocess.PIPE,
            preexec_fn=die_with_parent,
        )
        assert self._holder.stdout is not None
        if not self._holder.stdout.readline():
            raise ExperimentError("no network namespace could be made; is this root?")
        self._path = Path(f"/proc/{self._holder.pid}/ns/net")
        self.run("ip link set lo up")
        return self

    def __exit__(self, *_: object) -> None:
        self._holder.kill()
        self._holder.wait()

    def popen(self, argv: list[str], **options) -> subprocess.Popen:
        """Start a program here; its process id is that of the program itself."""
        return subprocess.Popen(["nsenter", f"--net={self._path}", "--", *argv], **options)

    def run(self, command: str) -> None:
        """Run a command that has nothing to say."""
        process = self.popen(
            command.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        said, _ = process.communicate(timeout=30)
        if process.returncode != 0:
            raise ExperimentError(f"{self.name}: `{command}` failed: {said.strip()}")

    def _enter(self) -> None:
        with self._path.open() as file:
            if _LIBC.setns(file.fileno(), _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")

    def tap(self, interface: str) -> int:
        """A TAP device here, as a descriptor for QEMU; gone when that is closed."""
        with Path("/proc/thread-self/ns/net").open() as home:
            self._enter()
            try:
                descriptor = os.open("/dev/net/tun", os.O_RDWR)
                flags = _IFF_TAP | _IFF_NO_PI
                request = struct.pack("16sH22x", interface.encode(), flags)
                fcntl.ioctl(descriptor, _TUNSETIFF, request)
            finally:
                if _LIBC.setns(home.fileno(), _CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
        return descriptor
