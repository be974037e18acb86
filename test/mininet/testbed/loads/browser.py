#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Headless Chromium downloads once over HTTP/3 and its own clock measures it.

To be run in a process namespace of its own: the browser is a dozen processes.
"""

from __future__ import annotations

import argparse
import fcntl
import itertools
import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

# Chromium reads its commands from the first and answers on the second.
_COMMANDS_FD, _ANSWERS_FD = 3, 4
_BEYOND = 10
# A name, because QUIC cannot be forced on an IPv6 address.
_NAME = "pemi-test"

# On a page of no server, so that the connection is made for this.
_DOWNLOAD = """
(async (url) => {
  const start = performance.now();
  const answer = await fetch(url, {cache: "no-store"});
  if (!answer.ok) throw new Error(`the server says ${answer.status}`);
  const reader = answer.body.getReader();
  let bytes = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read())
    bytes += part.value.length;
  const end = performance.now();
  const entry = await new Promise((found) => {
    new PerformanceObserver((list) => list.getEntriesByName(url).forEach(found))
      .observe({type: "resource", buffered: true});
  });
  return {
    bytes,
    fct_ms: end - start,
    handshake_ms: entry.connectEnd - entry.startTime,
    protocol: entry.nextHopProtocol,
  };
})
"""


class BrowserError(Exception):
    """The browser did not do what it should; the message is for a person."""


class Browser:
    """Chromium, spoken to over pipes (the DevTools protocol)."""

    def __init__(self, options: list[str], home: Path, timeout_s: float) -> None:
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
        with (home / "chromium.log").open("wb") as log:
            self.process = subprocess.Popen(
                ["chromium", *options, "--remote-debugging-pipe"],
                env={**os.environ, "HOME": str(home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=place_pipes,
                close_fds=False,
            )
        # The browser's ends are its own: otherwise its death would not show here.
        os.close(commands)
        os.close(answers)

    def call(self, method: str, session: str | None = None, **parameters: object) -> dict:
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
        f"--origin-to-force-quic-on={_NAME}:{port}",
        f"--ignore-certificate-errors-spki-list={spki}",
        # What it asks others of its own accord would go over the link.
        *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
        *("--disable-sync", "--disable-extensions", "--disable-breakpad", "--no-proxy-server"),
        f"--host-resolver-rules=MAP {_NAME} {host}, MAP * ~NOTFOUND",
        # The server's address is a private one, which pages must ask the user for.
        "--disable-features=LocalNetworkAccessChecks",
    ]


def download(browser: Browser, url: str) -> dict:
    """What the page's script measured."""
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    expression = f"{_DOWNLOAD}({json.dumps(url)})"
    answer = browser.call(
        "Runtime.evaluate",
        session,
        expression=expression,
        awaitPromise=True,
        returnByValue=True,
    )
    if "exceptionDetails" in answer:
        thrown = answer["exceptionDetails"]
        raise BrowserError(thrown.get("exception", {}).get("description") or thrown["text"])
    return answer["result"]["value"]


def metrics(measured: dict, size: int) -> dict:
    """As the other clients print them."""
    if measured["protocol"] != "h3":
        raise BrowserError(f"it came by {measured['protocol'] or 'nothing known'} and not by h3")
    if measured["bytes"] != size:
        raise BrowserError(f"{measured['bytes']} of {size} bytes came")
    fct_s = measured["fct_ms"] / 1000
    return {
        "app": "http",
        "stack": "chromium",
        "bytes": size,
        "protocol": measured["protocol"],
        "fct_s": round(fct_s, 6),
        "handshake_s": round(measured["handshake_ms"] / 1000, 6),
        "goodput_mbps": round(size * 8e-6 / fct_s, 6),
        "complete": True,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connect", required=True, help="the server's address and port")
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--spki", required=True, help="SHA-256 of its public key, as base64")
    parser.add_argument("--profile", type=Path, required=True, help="a folder of its own")
    parser.add_argument("--timeout", type=float, required=True, help="seconds")
    parser.add_argument("--json", type=Path, required=True, help="where the result goes")
    given = parser.parse_args()
    given.profile.mkdir(parents=True, exist_ok=True)
    chosen = options(given.connect, given.spki, given.profile)
    try:
        browser = Browser(chosen, given.profile, given.timeout)
        port = given.connect.rpartition(":")[2]
        measured = download(browser, f"https://{_NAME}:{port}/bytes/{given.bytes}")
        result = metrics(measured, given.bytes)
    except BrowserError as error:
        print(f"browser: {error}", file=sys.stderr)
        return 1
    given.json.write_text(json.dumps(result) + "\n")
    browser.call("Browser.close")
    browser.process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
