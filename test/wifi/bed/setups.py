# SPDX-License-Identifier: GPL-2.0-or-later
"""What decides a run, and the script that the guest makes of it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path

from testbed.loads.apps import PORT, App, Place

from .presets import Preset
from .troubles import TROUBLES
from .web import GuestCurl, GuestTcp

# How the LAN meets the WAN, and the server's address there.
NETWORKS = {
    "routed": "10.0.2.2",
    "ipv6": "[fd00:2::2]",
    "masquerade": "10.0.2.2",
    "bridged": "10.0.2.2",
}
# Where a run's files are in the guest.
_LOGS = Path("/run/logs")
_PROGRAMS = Path("/usr/bin")
# What `pemi run` is told where the way of repairing is what differs.
PEMI = {"pemi": "", "infer": "--repair infer", "radio": "--repair radio"}
# What an application costs to emulate, against a download or a call with QUIC: voice has few
# packets, and the kernel sends many of TCP's at once.
_COSTS = {"media": 0.2, "http": 0.4}


@dataclass(frozen=True)
class Lab:
    """What a guest is like from its start to its end."""

    kernel: str = "6.1"
    security: str = "open"
    network: str = "routed"
    access_points: int = 1
    stations: int = 1
    sleeps: bool = False
    # The WAN, by netem; its queue holds the packets under way as well.
    bw2: float = 10.0
    delay2: float = 20.0
    queue2: int = 60
    # Million instructions a second, of all programs together.
    mips: int = 500

    def script(self) -> str:
        """What the guest reads first."""
        return (
            f"ACCESS_POINTS={self.access_points}\nSTATIONS={self.stations}\n"
            f"SECURITY={self.security}\nNETWORK={self.network}\n"
            f"POWER_SAVE={'on' if self.sleeps else 'off'}\n"
            f"WAN_RATE={self.bw2:g}mbit\nWAN_QUEUE={self.queue2}\nWAN_DELAY={self.delay2:g}ms\n"
            f"PORT={PORT}\n"
        )


@dataclass(frozen=True)
class Setup:
    """A run."""

    lab: Lab
    preset: Preset
    app: App
    # `off`, one of PEMI, or `lossless`: off, and nothing goes wrong on the air.
    assist: str
    seed: int
    pemi_options: str = ""
    # In place of the preset's air: the text of a file in the form of one preset.
    air: str | None = None
    # Lines for the guest, before the client begins and when it is done.
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    # What happens in the middle: one of `troubles.TROUBLES`.
    trouble: str | None = None
    # So many do the same at once; the first is measured in full.
    clients: int = 1

    @property
    def name(self) -> str:
        """For people, and for files."""
        what = self.app.name if self.app.bytes is None else f"{self.app.name}-{self.app.bytes}"
        trouble = "" if self.trouble is None else f"-{self.trouble}"
        return f"{self.preset.name}-{what}-{self.app.stack}-{self.assist}{trouble}-seed{self.seed}"

    @property
    def rtt_ms(self) -> float:
        """Round trip of the whole path without any queue: the air takes about 1 ms each way."""
        return 2 * (self.lab.delay2 + 1)

    @property
    def guest_s(self) -> float:
        """About how long it takes in the guest."""
        if self.app.bytes is None:
            return 2 + self.app.seconds
        slow = 1 if self.assist == "lossless" else 1.5
        return 1.5 + slow * self.app.bytes * 8e-6 / self.lab.bw2

    @property
    def work(self) -> float:
        """What it costs to emulate, as packets; for the time that is left."""
        neighbours = 800 * len(self.preset.neighbours) * self.guest_s
        carried = (self.app.bytes or self.app.seconds * 375_000) / 1250
        return 500 + carried * _COSTS.get(self.app.name, 1.0) + neighbours

    def script(self, name: str) -> str:
        """What the guest reads for this run, of which the files have this name."""
        place = self.place(_LOGS / name)
        lossless = self.assist == "lossless"
        if isinstance(self.app, (Measurement, GuestTcp, GuestCurl)):
            before = self.app.before(place)
        else:
            before = [" ".join(["server", *self.app.server(place)])]
        if not lossless:
            before += self._around()
        before += self.before
        beside = [self.beside(_LOGS / name, number) for number in range(2, self.clients + 1)]
        before += [
            f"mkdir {path} && in_background {path.name} cli{number} "
            + shlex.join(self.app.client(self.place(path)))
            for number, path in enumerate(beside, start=2)
        ]
        after = [f"until_true test -s {self.place(path).result}" for path in beside]
        after += self.after
        if self.trouble is not None:
            before += ["watch_wan", *TROUBLES[self.trouble].lines]
        air = self.preset.name if self.air is None else f"/plan/air/{name}"
        lines = {
            "AIR": self.preset.lossless if lossless else air,
            "SEED": str(self.seed),
            "ASSIST": "pemi" if self.assist in PEMI else "off",
            "PEMI_OPTIONS": f"{PEMI.get(self.assist, '')} {self.pemi_options}".strip(),
            "LIMIT_S": f"{self.app.timeout_s:.0f}",
            "BEFORE": " &&\n".join(before),
            "AFTER": " &&\n".join(after),
            "CLIENT": shlex.join(self.app.client(place)),
        }
        return "".join(f"{key}={shlex.quote(value)}\n" for key, value in lines.items())

    def place(self, logs: Path) -> Place:
        """Where it happens, seen from the guest or, once it is over, from here."""
        return Place(_PROGRAMS, f"{NETWORKS[self.lab.network]}:{PORT}", 0, logs)

    @staticmethod
    def beside(logs: Path, number: int) -> Path:
        """The folder of another client, in that of the run."""
        return logs / f"client{number}"

    def _around(self) -> list[str]:
        """What goes on beside it."""
        lines = []
        for number, neighbour in enumerate(self.preset.neighbours, start=2):
            lines += neighbour.lines(number, self.app.timeout_s)
        if self.preset.roams_every_ms is not None:
            every_s = self.preset.roams_every_ms / 1000
            # Another moment of the download with each seed.
            lines.append(f"roaming {every_s:g} {self.seed * 0.7 % every_s + 0.5:.1f}")
        return lines


@dataclass(frozen=True, kw_only=True)
class Measurement(App):
    """Packets of the bed's own program `stream`."""

    options: tuple[str, ...] = field(default=())

    def before(self, place: Place) -> list[str]:
        """What has to run first."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Echo(Measurement):
    """Small packets to the router and back, one after the other."""

    def before(self, _place: Place) -> list[str]:
        return [
            "in_background reflect router stream reflect --at 10.0.0.1:7000",
            "until_true grep -q listening $logs/reflect.out",
        ]

    def client(self, place: Place) -> list[str]:
        return ["stream", "echo", "--at", "10.0.0.1:7000", *self.options]


@dataclass(frozen=True, kw_only=True)
class Probe(Measurement):
    """A stream from the router to the client, of which each packet tells its time."""

    def before(self, _place: Place) -> list[str]:
        to = "10.0.0.101:7000"
        # The receiver is there by then.
        return [f"later 1 send router stream send --at {to} " + " ".join(self.options)]

    def client(self, place: Place) -> list[str]:
        out = str(place.logs / "stream.csv")
        return ["stream", "receive", "--at", "10.0.0.101:7000", "--out", out]


def echo(count: int) -> App:
    """As `ping`, every 100 ms."""
    return Echo(
        name="echo",
        stack="udp",
        cc="none",
        label=f"{count} echoes",
        timeout_s=60 + count,
        programs=("stream",),
        seconds=count / 10,
        options=("--count", str(count), "--interval-ms", "100", "--bytes", "56"),
    )


def probe(seconds: float, rate: int, burst: int) -> App:
    """A stream of 1,250-byte packets: at 800 packets a second 8 Mbit/s."""
    options = ("--count", round(rate * seconds), "--rate", rate, "--burst", burst, "--bytes", 1250)
    return Probe(
        name="probe",
        stack="udp",
        cc="none",
        label=f"stream of {seconds:g} s",
        timeout_s=60 + 2 * seconds,
        programs=("stream",),
        seconds=seconds,
        options=tuple(map(str, options)),
    )
