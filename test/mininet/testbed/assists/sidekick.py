# SPDX-License-Identifier: GPL-2.0-or-later
"""Sidekick: the daemon's helper for senders on the Wi-Fi, which sends them quACKs. Nothing
goes through the packet queue: it has no rules here, so what is measured is Sidekick alone."""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..loads import apps
from ..loads.apps import App
from ..world.listening import wait_for_listener
from ..world.process import Child
from ..world.programs import Programs
from ..world.topology import ROUTER_WIFI
from .assist import Assist, Running, Site
from .pemi import Daemon

PORT = 5103
# Losses that one quACK can name; the daemon's default.
THRESHOLD = 8
_INTERVAL = re.compile(r"([1-9][0-9]*)(p|ms)")
_LARGEST = 1000
_QUACK = 5
# linkem counts the payload of UDP.
_HEADERS = {4: 28, 6: 48}


def _interval(text: str) -> str:
    """As argparse wants it."""
    try:
        return Sidekick(text).interval
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@dataclass(frozen=True)
class Sidekick(Assist):
    """The sender gets quACKs after so many packets, so much time, or when one is late."""

    interval: str
    option: ClassVar[str] = "sidekick"
    argument: ClassVar[dict[str, object]] = {
        "type": _interval,
        "metavar": "INTERVAL",
        "help": "the router's quACKs for the sender of media or upload: after packets (2p), after "
        "time (10ms), or adaptive",
    }
    has_daemon: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raises ValueError for what is no interval."""
        match = _INTERVAL.fullmatch(self.interval)
        if self.interval != "adaptive" and (match is None or int(match[1]) > _LARGEST):
            raise ValueError(
                f"--sidekick {self.interval}: it is a number of packets (2p) or milliseconds "
                f"(10ms) up to {_LARGEST}, or adaptive"
            )

    @property
    def name(self) -> str:
        return f"sidekick-{self.interval}"

    def programs(self, built: Programs) -> list[Path]:
        return [built.pemi]

    def accepts(self, load: App) -> None:
        if not load.asks_for_quacks:
            raise ValueError(
                f"--sidekick needs a sender that asks for it: media or upload, not {load.name}"
            )

    def at(self, site: Site) -> Running:
        return Helper(site, self.interval)


class Helper(Daemon):
    """The daemon with its helper and without flows of its own."""

    def __init__(self, site: Site, interval: str) -> None:
        super().__init__(site)
        self._interval = interval

    @property
    def sender_options(self) -> tuple[str, ...]:
        router = apps.endpoint(self._topology.router_ip, PORT)
        asked = ("--sidekick-interval", self._interval, "--threshold", str(THRESHOLD))
        return ("--sidekick", router, *asked)

    def start(self, stack: contextlib.ExitStack) -> None:
        """Returns when senders can ask."""
        self._config.write_text(json.dumps(config(self._interval), indent=1))
        super().start(stack)

    @property
    def _config(self) -> Path:
        return self._logs / "pemi.json"

    def _what(self) -> list[str]:
        return ["--config", str(self._config)]

    def _more(self) -> tuple[str, ...]:
        """They are about flows that go through the queue."""
        return ()

    def _attach(self) -> None:
        """Nothing is put on the queue."""

    def _ready(self, daemon: Child) -> None:
        super()._ready(daemon)
        wait_for_listener(daemon, PORT)

    def measured(self, wifi_log: Path) -> dict[str, object]:
        return {"overhead": overhead(wifi_log, apps.PORT, self._topology.version)}


def config(interval: str) -> dict[str, object]:
    """The daemon's file."""
    helper = {"enabled": True, "port": PORT, "interval": interval, "threshold": THRESHOLD}
    return {"device": [ROUTER_WIFI], "sidekick": helper}


def overhead(truth: Path, flow_port: int, version: int) -> dict[str, float] | None:
    """What the quACKs took on the Wi-Fi hop, lost ones as well, as IP packets and beside what
    the sender sent there."""
    quacks = quack_bytes = other_bytes = flow_bytes = 0
    times: list[float] = []
    with truth.open(newline="") as file:
        for row in csv.DictReader(file):
            length = int(row["len"]) + _HEADERS[version]
            if str(PORT) in (row["sport"], row["dport"]):
                # Byte 1 is the type of the message.
                if row["dir"] == "ab" and int(row["head"][2:4] or "0", 16) == _QUACK:
                    quacks += 1
                    quack_bytes += length
                else:
                    other_bytes += length
            elif row["dir"] == "ba" and row["dport"] == str(flow_port):
                flow_bytes += length
                times.append(float(row["us"]))
    seconds = (max(times) - min(times)) / 1e6 if times else 0
    if not seconds:
        return None
    return {
        "quacks": quacks,
        "quack_bytes": quack_bytes,
        "other_bytes": other_bytes,
        "flow_bytes": flow_bytes,
        "quack_bytes_per_s": round(quack_bytes / seconds, 1),
        "quack_percent": round(100 * quack_bytes / flow_bytes, 3),
    }
