# SPDX-License-Identifier: GPL-2.0-or-later
"""Headless Chromium, spoken to over pipes (the DevTools protocol)."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import select
import subprocess
import time
from pathlib import Path

from .page import NAME, SCRIPT, BrowserError

# Chromium reads its commands from the first and answers on the second.
_COMMANDS_FD, _ANSWERS_FD = 3, 4
_BEYOND = 10


class Chromium:
    """The browser from its start to its end."""

    def __init__(self, address: str, spki: str, profile: Path, timeout_s: float) -> None:
        """The server is known by its certificate; no other may be looked for."""
        self._deadline = time.monotonic() + timeout_s
        self._numbers = itertools.count(1)
        self._received = b""
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()

        def place_pipes() -> None:
            # Either may have the number that the other one is to have.
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, _BEYOND) for end in (commands, answers)]
            os.dup2(ends[0], _COMMANDS_FD)
            os.dup2(ends[1], _ANSWERS_FD)

        # It complains at length of what a desktop would have.
        with (profile / "chromium.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["chromium", *options(address, spki, profile), "--remote-debugging-pipe"],
                env={**os.environ, "HOME": str(profile)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=place_pipes,
                close_fds=False,
            )
        # The browser's ends are its own: otherwise its death would not show here.
        os.close(commands)
        os.close(answers)

    def download(self, url: str) -> dict:
        """What the page's script measured."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        answer = self._call(
            "Runtime.evaluate",
            session,
            expression=f"{SCRIPT}({json.dumps(url)})",
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            thrown = answer["exceptionDetails"]
            raise BrowserError(thrown.get("exception", {}).get("description") or thrown["text"])
        return answer["result"]["value"]

    def close(self) -> None:
        """Returns when it has ended."""
        self._call("Browser.close")
        self._process.wait()

    def _call(self, method: str, session: str | None = None, **parameters: object) -> dict:
        """One command and its answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        # In between are events, which are of no interest here.
        while (answer := self._next()).get("id") != number:
            pass
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _next(self) -> dict:
        while b"\0" not in self._received:
            left_s = self._deadline - time.monotonic()
            if left_s <= 0 or not select.select([self._answers], [], [], left_s)[0]:
                raise BrowserError("not complete in time")
            part = os.read(self._answers, 1 << 16)
            if not part:
                raise BrowserError("the browser has ended")
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)


def options(address: str, spki: str, profile: Path) -> list[str]:
    """For one server, known by its certificate; no other may be looked for."""
    host, _, port = address.rpartition(":")
    return [
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
        f"--user-data-dir={profile}",
        f"--origin-to-force-quic-on={NAME}:{port}",
        f"--ignore-certificate-errors-spki-list={spki}",
        # What it asks others of its own accord would go over the link.
        *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
        *("--disable-sync", "--disable-extensions", "--disable-breakpad", "--no-proxy-server"),
        f"--host-resolver-rules=MAP {NAME} {host}, MAP * ~NOTFOUND",
        # The server's address is a private one, which pages must ask the user for.
        "--disable-features=LocalNetworkAccessChecks",
    ]
