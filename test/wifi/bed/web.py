# SPDX-License-Identifier: GPL-2.0-or-later
"""nginx and curl in the guest: what TCP does where QUIC is measured."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from testbed.loads import web
from testbed.loads.apps import Place, choose_cc, human_bytes, patience

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
            f"web_files {self.bytes} {_CCS[self.cc]} {shlex.quote(config)}",
            "in_background server srv nginx -e stderr -c $logs/nginx.conf",
            f"until_true listens srv {int(port):04X}",
        ]


def http(size: int, cc: str | None, slowest_mbit: float) -> GuestTcp:
    """A download with HTTP/1.1 over TLS 1.3."""
    patience_s = patience(size, slowest_mbit)
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
