# SPDX-License-Identifier: GPL-2.0-or-later
"""Headless Firefox, spoken to over a socket (the Marionette protocol)."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import time
from pathlib import Path

from .page import NAME, SCRIPT, BrowserError

_COMMAND = ("firefox-esr", "--headless", "--marionette", "--no-remote", "--profile")
_POLL_S = 0.05
# An asynchronous script of Marionette is told the function to call at its end.
_DOWNLOAD = f"""
const [url, done] = arguments;
({SCRIPT.strip()})(url).then(
  (measured) => done({{measured}}), (error) => done({{error: String(error)}}));
"""


class Firefox:
    """The browser from its start to its end."""

    def __init__(self, address: str, _spki: str, profile: Path, timeout_s: float) -> None:
        """Any certificate will do: Marionette can say so, and no other server is known."""
        self._deadline = time.monotonic() + timeout_s
        self._numbers = itertools.count(1)
        settings = preferences(address)
        (profile / "user.js").write_text(
            "".join(
                f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
                for name, value in settings.items()
            )
        )
        # It complains at length of what a desktop would have.
        with (profile / "firefox.log").open("wb") as log:
            self._process = subprocess.Popen(
                [*_COMMAND, str(profile)],
                env={**os.environ, "HOME": str(profile), "MOZ_CRASHREPORTER_DISABLE": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._socket = socket.create_connection(("127.0.0.1", self._port(profile)))
        self._answers = self._socket.makefile("rb")
        self._next()
        # Not among `capabilities`, where ESR 153 overlooks it.
        self._call("WebDriver:NewSession", acceptInsecureCerts=True)

    def download(self, url: str) -> dict:
        """What the page's script measured."""
        self._call("WebDriver:SetTimeouts", script=round(self._left_s() * 1000))
        told = self._call(
            "WebDriver:ExecuteAsyncScript", script=_DOWNLOAD, args=[url], sandbox=None
        )["value"]
        if "error" in told:
            raise BrowserError(told["error"])
        return told["measured"]

    def close(self) -> None:
        """Returns when it has ended."""
        self._call("Marionette:Quit", flags=["eForceQuit"])
        self._process.wait()

    def _port(self, profile: Path) -> int:
        """Where it says that it listens."""
        told = profile / "MarionetteActivePort"
        while not (told.exists() and (text := told.read_text())):
            if self._process.poll() is not None:
                raise BrowserError("the browser has ended")
            self._left_s()
            time.sleep(_POLL_S)
        return int(text)

    def _left_s(self) -> float:
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            raise BrowserError("not complete in time")
        return left_s

    def _call(self, command: str, **parameters: object) -> dict:
        """One command and its answer."""
        message = json.dumps([0, next(self._numbers), command, parameters]).encode()
        self._socket.sendall(b"%d:%s" % (len(message), message))
        _, _, error, result = self._next()
        if error is not None:
            raise BrowserError(f"{command}: {error['message']}")
        return result

    def _next(self) -> list:
        """A message: its length, a colon, JSON."""
        self._socket.settimeout(self._left_s())
        try:
            length = b""
            while (byte := self._answers.read(1)) != b":":
                if not byte:
                    raise BrowserError("the browser has ended")
                length += byte
            return json.loads(self._answers.read(int(length)))
        except TimeoutError:
            raise BrowserError("not complete in time") from None


def preferences(address: str) -> dict[str, object]:
    """For one server, to which it is to speak HTTP/3 from the first packet on; of its own accord
    it is to ask nobody, because that would go over the link."""
    host, _, port = address.rpartition(":")
    return {
        "network.http.http3.enable": True,
        "network.http.http3.alt-svc-mapping-for-testing": f'{NAME};h3=":{port}"',
        "network.http.http3.force-use-alt-svc-mapping-for-testing": True,
        # Our certificate is of no authority that comes with the browser.
        "network.http.http3.disable_when_third_party_roots_found": False,
        # Whatever the name.
        "network.dns.forceResolve": host.strip("[]"),
        # The server's address is a private one, which pages must ask the user for.
        "network.lna.enabled": False,
        # Milliseconds are too coarse for short downloads.
        "privacy.reduceTimerPrecision": False,
        # Any free one.
        "marionette.port": 0,
        "network.captive-portal-service.enabled": False,
        "network.connectivity-service.enabled": False,
        "app.normandy.enabled": False,
        "app.update.enabled": False,
        "browser.safebrowsing.malware.enabled": False,
        "browser.safebrowsing.phishing.enabled": False,
        "datareporting.policy.dataSubmissionEnabled": False,
        "extensions.update.enabled": False,
        "services.settings.server": "",
        "toolkit.telemetry.enabled": False,
    }
