# SPDX-License-Identifier: GPL-2.0-or-later
"""Downloads over QUIC and plain UDP echoes between the two ends."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from testbed.loads import apps
from testbed.world.process import Child, ExperimentError, wait_until

from . import ROOT
from .namespace import Namespace, die_with_parent

QUIC_PORT, OTHER_PORT = 443, 4433
_PROGRAMS = ROOT / "test" / "target" / "release"
_ECHO = Path(__file__).with_name("echo.py")


def at(ip: str, port: int) -> str:
    """An address as the programs want it."""
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


class Download:
    """One that runs; both programs end with it."""

    def __init__(
        self, client: Namespace, server: Namespace, ip: str, size: int, logs: Path
    ) -> None:
        app = apps.goodput(size, "cubic", slowest_mbit=10)
        address = at(ip, QUIC_PORT)
        place = apps.Place(_PROGRAMS, address, 0, logs)
        self._result = place.result
        self._result.unlink(missing_ok=True)
        self._timeout_s = app.timeout_s
        with ExitStack() as stack:
            argv = app.server(place)
            self._server = stack.enter_context(Child("goodput-server", server, argv, logs))
            wait_until(lambda: "listening" in self._server.output(), "server", [self._server])
            argv = app.client(place)
            self._client = stack.enter_context(Child("goodput-client", client, argv, logs))
            self._stack = stack.pop_all()

    def __enter__(self) -> Download:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def check(self) -> None:
        """Raise if it is over already."""
        self._client.check()
        self._server.check()

    def stop(self) -> None:
        """End it before its time, where only a part of it was of interest."""
        self.check()
        self._stack.close()

    def finish(self) -> float:
        """Wait for its end; Mbit/s."""
        client = self._client
        wait_until(
            lambda: client.exit_code is not None, "download", [self._server], self._timeout_s
        )
        if client.exit_code != 0:
            raise client.failure("did not complete the download")
        return json.loads(self._result.read_text())["goodput_mbps"]


class Echo:
    """A flow of UDP packets that come back, as QUIC would look."""

    def __init__(self, client: Namespace, server: Namespace, ip: str, port: int) -> None:
        self._server = self._start(server, "server", ip, port)
        self._client = self._start(client, "client", ip, port)

    @staticmethod
    def _start(end: Namespace, role: str, ip: str, port: int) -> subprocess.Popen:
        process = end.popen(
            [sys.executable, str(_ECHO), role, ip, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,
        )
        if process.stdout.readline().strip() != "ready":
            raise ExperimentError(f"the echo {role} did not start")
        return process

    def begin(self, packets: int, pause_s: float = 0) -> None:
        """Start sending so many, one after the other."""
        self._client.stdin.write(f"{packets} {pause_s}\n")
        self._client.stdin.flush()

    def end(self) -> int:
        """Wait for them; how many came back."""
        return int(self._client.stdout.readline())

    def send(self, packets: int) -> int:
        """Both at once."""
        self.begin(packets)
        return self.end()

    def __enter__(self) -> Echo:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self._client, self._server):
            process.kill()
            process.communicate()
