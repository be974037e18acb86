# SPDX-License-Identifier: GPL-2.0-or-later
"""The presets of the air, and what each of them asks of the lab around it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from . import ROOT

_FILE = ROOT / "test/air/presets.toml"
_LOSSY = ROOT / "test/air/lossy.toml"
# Of the air unless a preset says otherwise.
_RATE_MBIT = 65
# Of a neighbour's packets, UDP payload: with its headers an Ethernet's 1,500 bytes.
_NEIGHBOUR_BYTES = 1472
# Where neighbours' packets go; nobody listens.
_NEIGHBOUR_PORT = 7001


@dataclass(frozen=True)
class Neighbour:
    """Another client with traffic of its own, between it and the router."""

    down_mbit: float
    up_mbit: float
    burst: int

    def lines(self, number: int, seconds: float) -> list[str]:
        """What the guest starts for the client of this number."""
        it, router = f"10.0.0.{100 + number}", "10.0.0.1"
        down = self._line(f"down{number}", "router", it, self.down_mbit, seconds)
        up = self._line(f"up{number}", f"cli{number}", router, self.up_mbit, seconds)
        return [line for line in (down, up) if line]

    def _line(self, name: str, where: str, to: str, mbit: float, seconds: float) -> str:
        rate = round(mbit * 1e6 / 8 / 1500)
        if rate == 0:
            return ""
        return (
            f"in_background {name} {where} stream send --at {to}:{_NEIGHBOUR_PORT} "
            f"--bytes {_NEIGHBOUR_BYTES} --rate {rate} --burst {self.burst} "
            f"--count {round(rate * seconds)}"
        )


@dataclass(frozen=True)
class Preset:
    """A name of `test/air/presets.toml`, with what is not the air's but the lab's."""

    name: str
    about: str
    sleeps: bool = False
    roams_every_ms: float | None = None
    neighbours: tuple[Neighbour, ...] = ()
    # Where nothing fails at this one's rate.
    lossless: str = "clean"

    @property
    def access_points(self) -> int:
        """One, or two to move between."""
        return 1 if self.roams_every_ms is None else 2

    @property
    def stations(self) -> int:
        """The client that is measured, and its neighbours."""
        return 1 + len(self.neighbours)

    @property
    def surroundings(self) -> tuple[int, int, bool]:
        """What its lab is like besides the air: presets that have the same lose the same where
        nothing fails, which is nothing."""
        return self.access_points, self.stations, self.sleeps


def read() -> dict[str, Preset]:
    """All that stand for a radio, by their names."""
    return _read(_FILE)


def known() -> dict[str, Preset]:
    """Those, and the airs that lose a chosen share."""
    return _read(_FILE) | _read(_LOSSY)


def _read(path: Path) -> dict[str, Preset]:
    with path.open("rb") as file:
        sections = tomllib.load(file)
    return {name: _preset(name, section) for name, section in sections.items()}


def _preset(name: str, section: dict) -> Preset:
    rate = section.get("link", {}).get("rate_mbit", _RATE_MBIT)
    return Preset(
        name=name,
        about=section["about"],
        sleeps="sleep" in section,
        roams_every_ms=section.get("roam", {}).get("every_ms"),
        neighbours=tuple(
            Neighbour(other["down_mbit"], other["up_mbit"], other["burst"])
            for other in section.get("neighbours", ())
        ),
        lossless="clean" if rate == _RATE_MBIT else f"clean-{rate:g}",
    )
