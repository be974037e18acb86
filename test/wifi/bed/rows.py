# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of the table of what exact repair is worth, and their bars.

Each is measured with nothing on the router, with losses inferred, with losses that the radio
reports, and where nothing fails.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.loads import apps
from testbed.loads.apps import App

from . import options, presets, web
from .setups import Setup

VARIANTS = ("off", "infer", "radio", "lossless")
# 600 frames: the first three come late while the sender's window opens, with and without losses,
# and of 300 they alone would be the latest hundredth.
_CALL_S = 20


@dataclass(frozen=True)
class Wan:
    """How fast the WAN is, and what goes with it."""

    mbit: float
    # Of netem, with the packets under way: about 1.5 of what the path holds.
    queue: int
    # What keeps up with it: measured at 50 Mbit/s, half of it does not.
    mips: int


_SLOW, _FAST, _FASTEST = Wan(10, 60, 500), Wan(50, 300, 1000), Wan(100, 600, 1000)


@dataclass(frozen=True)
class Bar:
    """What `radio` is to reach. Absent is what a row does not ask."""

    # Medians, of that without losses, and of that without help.
    of_lossless: float | None = None
    of_off: float | None = None
    # Its tenth percentile, of the median without losses.
    tenth_of_lossless: float | None = None
    # Packets sent again for each that the air lost; 0: none at all.
    copies: float | None = None
    # The latest frames of a call: so many ms behind those without losses, or none behind `off`.
    behind_lossless_ms: float | None = None
    behind_off_ms: float | None = None

    @property
    def compares_with_off(self) -> bool:
        """Whether it takes as many seeds without help."""
        return self.of_off is not None or self.behind_off_ms is not None


@dataclass(frozen=True)
class Row:
    """One row: a load over an air."""

    air: str
    stack: str
    # Of a download; none: a call.
    bytes: int | None
    bar: Bar
    wan: Wan = _SLOW
    # Of the daemon, besides what the variant tells it.
    pemi_options: str = ""

    @property
    def name(self) -> str:
        """For people, and to choose it by its beginning."""
        what = f"{self.bytes / 1e6:g}MB" if self.bytes else "call"
        return f"{self.air} {self.stack} {what}"

    def app(self) -> App:
        """What is done."""
        if self.bytes is None:
            return apps.rtc(_CALL_S, 30, 3000, None, self.stack)
        if self.stack in web.STACKS:
            return web.http(self.bytes, None, self.wan.mbit, self.stack)
        return apps.goodput(self.bytes, None, self.wan.mbit, self.stack)

    def setups(self, seed: int, kernel: str, security: str, compared: int) -> list[Setup]:
        """Its runs with one seed. Without failures one seed is much like another, and what no
        bar asks for is run with the first `compared` seeds only: it takes the longest."""
        seeds = {"lossless": 1, "infer": compared, "radio": seed}
        seeds["off"] = seed if self.bar.compares_with_off else compared
        preset = presets.known()[self.air]
        wan = {"bw2": self.wan.mbit, "queue2": self.wan.queue, "mips": self.wan.mips}
        return [
            Setup(
                lab=options.lab(preset, kernel, security, wan),
                preset=preset,
                app=self.app(),
                assist=variant,
                seed=seed,
                pemi_options=self.pemi_options if variant in ("infer", "radio") else "",
            )
            for variant in VARIANTS
            if seed <= seeds[variant]
        ]


_MB = 1_000_000
# A needless copy takes airtime from others.
_EXACT = Bar(of_lossless=0.97, tenth_of_lossless=0.90, copies=1.1)
_TCP = Bar(of_lossless=0.98)
_UNHARMED = Bar(of_off=0.98)
_UNHARMED_CALL = Bar(behind_off_ms=0)
_ALL = "--protocols all"


def rows() -> list[Row]:
    """All of them, in the order of the table."""
    sizes = (1 * _MB, 3 * _MB, 10 * _MB)
    one_percent = [
        Row("lossy1", stack, size, _EXACT)
        for stack in ("quinn", "quicgo", "s2n", "curl")
        for size in sizes
    ]
    tcp = [Row("lossy1", "tcp", size, _TCP, pemi_options=_ALL) for size in sizes]
    more = [
        Row(air, "quinn", 3 * _MB, Bar(of_lossless=0.97, copies=1.1))
        for air in ("lossy3", "lossy5")
    ]
    radios = [
        # A copy comes at once, and the client keeps what came behind the hole for 100 ms all the
        # same. In `poor-no-bar` so little is lost that there is hardly anything to win.
        *[Row(air, "quinn", 3 * _MB, Bar(of_off=1.8)) for air in ("lossy1-no-bar", "poor-no-bar")],
        # Fades of 20 ms, which ten attempts do not always outlast, and of 6 ms with four.
        Row("poor", "quinn", 3 * _MB, Bar(of_lossless=0.95)),
        Row("bursts", "quinn", 3 * _MB, Bar(of_lossless=0.95)),
        Row("clean", "quinn", 5 * _MB, Bar(of_off=0.999, copies=0)),
        *[Row(air, "quinn", 3 * _MB, _UNHARMED) for air in ("roam", "sleepy", "busy")],
    ]
    calls = [
        Row("lossy1", "quinn", None, Bar(behind_lossless_ms=5)),
        *[Row(air, "quinn", None, _UNHARMED_CALL) for air in ("roam", "sleepy", "busy")],
    ]
    faster = [
        Row(air, stack, 10 * _MB, bar, wan, _ALL if stack == "tcp" else "")
        for air, wan, bar in (
            ("lossy1-150", _FAST, Bar(of_lossless=0.97)),
            ("lossy1-300", _FASTEST, Bar(of_lossless=0.9)),
        )
        for stack in ("quinn", "quicgo", "tcp")
    ]
    return one_percent + tcp + more + radios + calls + faster
