# SPDX-License-Identifier: GPL-2.0-or-later
"""A split-TCP proxy on the router (`test/pep`), for flows over TCP."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..loads import apps
from ..loads.apps import App
from ..world.process import Child, wait_until
from ..world.programs import Programs
from ..world.topology import ROUTER_WIFI, must
from .assist import Assist, Running, Site, without_value
from .cost import cpu_seconds, peak_rss_kib

PORT = 5104
MARK = "0x08000000/0x08000000"
TABLE = 104
# What the kernel calls otherwise than the applications do.
_KERNEL_CC = {"newreno": "reno"}


@dataclass(frozen=True)
class Pep(Assist):
    """Connections are split at the router."""

    option: ClassVar[str] = "pep"
    argument: ClassVar[dict[str, object]] = without_value("a split-TCP proxy on the router")

    def programs(self, built: Programs) -> list[Path]:
        return [built.testbed / "pep"]

    def accepts(self, load: App) -> None:
        if not load.over_tcp:
            raise ValueError(f"--pep helps flows over TCP, and {load.name} runs over QUIC")

    def at(self, site: Site) -> Running:
        return Proxy(site)


class Proxy(Running):
    """The proxy and the rules that hand connections to it."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self._program = site.programs.testbed / "pep"
        self._cc = _KERNEL_CC.get(site.app.cc, site.app.cc)
        self._proxy: Child | None = None

    @property
    def children(self) -> tuple[Child, ...]:
        return (self._proxy,) if self._proxy else ()

    def start(self, stack: contextlib.ExitStack) -> None:
        """Returns when new connections are split."""
        argv = [
            *(str(self._program), "--ready", "--port", str(PORT), "--rt", str(self._site.rt)),
            # As the sender: nothing but the split is to differ.
            *("--cc", self._cc, "--totals", str(self._totals_path)),
        ]
        proxy = stack.enter_context(Child("pep", self._topology.router, argv, self._logs))
        self._proxy = proxy
        wait_until(lambda: "ready" in proxy.output().split(), "pep ready", [proxy])
        for command in rules(apps.PORT, self._topology.version):
            must(self._topology.router, command)

    @property
    def _totals_path(self) -> Path:
        return self._logs / "pep.totals.json"

    def report(self) -> dict[str, object] | None:
        """What it cost and what it says of itself, which it does at its end."""
        assert self._proxy is not None
        cost = {"cpu_s": cpu_seconds(self._proxy.pid), "rss_kib": peak_rss_kib(self._proxy.pid)}
        self._proxy.stop()
        if self._proxy.exit_code != 0:
            raise self._proxy.failure(f"ended with exit code {self._proxy.exit_code}")
        return {**cost, "status": json.loads(self._totals_path.read_text())}

    def stop(self) -> None:
        """The report was its end."""


def rules(port: int, version: int) -> list[str]:
    """Connections to this server port go to the proxy, and so do the answers to it."""
    tables = "ip6tables" if version == 6 else "iptables"
    return [
        f"ip -{version} rule add fwmark {MARK} lookup {TABLE}",
        f"ip -{version} route add local default dev lo table {TABLE}",
        f"{tables} -w -t mangle -A PREROUTING -i {ROUTER_WIFI} -p tcp --dport {port} "
        f"-j TPROXY --on-port {PORT} --tproxy-mark {MARK}",
        f"{tables} -w -t mangle -A PREROUTING -p tcp --sport {port} -m socket --transparent "
        f"-j MARK --set-mark {MARK}",
    ]
