# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs commands in a guest that has guest/agent in it."""

from __future__ import annotations

import base64
import socket
import time

from .qemu import MachineError, Qemu
from .router import Answer


class Agent:
    """The host's ends of the guest's two ports: commands and answers, and files."""

    def __init__(self) -> None:
        self._commands, commands = socket.socketpair()
        self._data, data = socket.socketpair()
        self._guests = {"agent": commands, "data": data}
        self._received = b""
        self._last_id = 0
        self._qemu: Qemu | None = None

    def options(self) -> list[str]:
        """What QEMU has to be told of it."""
        options = ["-device", "virtio-serial-pci"]
        for name, end in self._guests.items():
            options += ["-chardev", f"socket,id={name},fd={end.fileno()}"]
            options += ["-device", f"virtserialport,chardev={name},name=pemi.{name}"]
        return options

    def descriptors(self) -> list[int]:
        """What QEMU has to inherit."""
        return [end.fileno() for end in self._guests.values()]

    def attach(self, qemu: Qemu, timeout_s: float) -> None:
        """Wait for the guest to come up."""
        self._qemu = qemu
        for end in self._guests.values():
            end.close()
        line = self._line(timeout_s)
        if line != b"ready":
            raise MachineError(f"the agent began with {line!r}")

    def close(self) -> None:
        """Nothing is sent any more."""
        for end in (self._commands, self._data, *self._guests.values()):
            end.close()

    def run(self, command: str, timeout_s: float, data: bytes = b"") -> Answer:
        """Run a shell command, which may read `data` from /dev/pemi.data."""
        self._last_id += 1
        encoded = base64.b64encode(command.encode()).decode()
        self._commands.sendall(f"{self._last_id} {timeout_s:.0f} {encoded}\n".encode())
        self._data.settimeout(timeout_s)
        self._data.sendall(data)
        # The guest ends what takes too long by itself, unless it is stuck as a whole.
        identity, code, output = self._line(timeout_s + 30).split(b" ", 2)
        if int(identity) != self._last_id:
            raise MachineError(f"answer {int(identity)} where {self._last_id} was expected")
        text = base64.b64decode(output).decode(errors="replace")
        if int(code) == 137:
            text += f"\n(killed; it had {timeout_s:.0f} s)"
        return Answer(int(code), text)

    def _line(self, timeout_s: float) -> bytes:
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._received:
            self._commands.settimeout(0.5)
            try:
                more = self._commands.recv(1 << 20)
            except TimeoutError:
                more = b""
                self._qemu.check()
                if time.monotonic() > deadline:
                    raise MachineError(f"no answer from the guest in {timeout_s:.0f} s") from None
            else:
                if not more:
                    self._qemu.check()
                    raise MachineError("the guest's port was closed")
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        return line
