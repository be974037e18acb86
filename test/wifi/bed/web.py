# SPDX-License-Identifier: GPL-2.0-or-later
"""nginx and curl in the guest: what TCP does where QUIC is measured, and curl over HTTP/3."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from testbed.loads import web
from testbed.loads.apps import App, Place, choose_cc, human_bytes, patience
from testbed.world.process import ExperimentError

STACKS = ("tcp", "curl")
# Where the guest has what is no program.
_FILES = "/usr/lib/wifi"
# What the guest's kernel has built in or loads by itself, and what it calls them.
_CCS = {"cubic": "cubic", "newreno": "reno"}


@dataclass(frozen=True, kw_only=True)
class GuestTcp(web.Tcp):
    """As in the Mininet testbed; but what a server needs is made where it runs."""

    def before(self, place: Place) -> list[str]:
        """What has to run first, the server at its end."""
        certificate, key = web.certificate_files(place.logs)
        config = web.nginx_config(place.address, place.logs, certificate, key)
        port = place.address.rpartition(":")[2]
        return [
            "certificate",
            f"web_files {self.bytes} {_CCS[self.cc]} {shlex.quote(config)}",
            "in_background server srv nginx -e stderr -c $logs/nginx.conf",
            f"until_true listens srv {int(port):04X}",
        ]


def check(app: App) -> None:
    """Raises ExperimentError if the guest cannot have what the application needs."""
    if isinstance(app, GuestCurl) and not web.libcurl().exists():
        raise ExperimentError("HTTP with curl needs libcurl with HTTP/3: make setup")


@dataclass(frozen=True, kw_only=True)
class GuestCurl(web.Curl):
    """As in the Mininet testbed, of files where image.sh puts them."""

    def before(self, place: Place) -> list[str]:
        """What has to run first."""
        certificate, key = web.certificate_files(place.logs)
        files = ("--certificate", str(certificate), "--key", str(key))
        server = [*self.role(place, "server", "--listen"), *files, "--cc", self.cc]
        return ["certificate", shlex.join(["server", *server])]

    def client(self, place: Place) -> list[str]:
        return ["python3.11", f"{_FILES}/curl.py", *self.asks(place)]


def http(size: int, cc: str | None, slowest_mbit: float, stack: str = "tcp") -> App:
    """A download with HTTP/1.1 over TLS 1.3, or with HTTP/3."""
    patience_s = patience(size, slowest_mbit)
    if stack == "curl":
        return GuestCurl(
            name="http",
            stack=stack,
            cc=choose_cc("quicgo", ("newreno",), cc),
            label=f"HTTP with curl, download of {human_bytes(size)}",
            timeout_s=patience_s + 10,
            patience_s=patience_s,
            programs=(),
            libraries=(Path(f"{_FILES}/_wrapper.abi3.so"),),
            bytes=size,
        )
    return GuestTcp(
        name="http",
        stack="tcp",
        cc=choose_cc("the guest's TCP", _CCS, cc),
        label=f"HTTP over TCP, download of {human_bytes(size)}",
        timeout_s=patience_s + 10,
        patience_s=patience_s,
        programs=(),
        bytes=size,
    )
