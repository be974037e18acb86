# SPDX-License-Identifier: GPL-2.0-or-later
"""What an experiment's links are like, and how that is written on a command line."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from . import radio
from .traces import Traces

PRESETS: dict[str, dict[str, object]] = {
    # A passenger's Wi-Fi and the train's cellular uplink, as in the PEMI paper.
    "train": {"loss1": 1.0, "delay1": 1.0, "bw1": 100.0, "delay2": 25.0, "bw2": 10.0},
}

# What `--wifi` stands for.
_OF_LINK_1 = ("loss1", "loss1ge", "outages1", "delay1", "bw1", "jitter1", "queue1")

# tbf: a token bucket filled at the link's rate is droptail at that rate.
QDISCS = ("droptail", "tbf", "codel", "fq_codel", "red", "cake", "none")

_SIZE = re.compile(r"(?P<number>\d+(\.\d+)?)(?P<unit>[kmg]?i?b?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


class ScenarioError(ValueError):
    """A value that makes no sense, in words for the person who gave it."""


def parse_bytes(text: str) -> int:
    """`5MB`, `64KiB` or a plain number of bytes."""
    match = _SIZE.fullmatch(text.strip())
    unit = match["unit"].lower().removesuffix("b") if match else None
    if match is None or unit not in _UNITS:
        raise ScenarioError(f"{text!r} is not a size; write for example 5MB, 64KiB or 65000")
    size = round(float(match["number"]) * _UNITS[unit])
    if size <= 0:
        raise ScenarioError(f"{text!r}: a size must be more than nothing")
    return size


@dataclass(frozen=True)
class Hop:
    """One link, the same in both directions."""

    rate_mbit: float
    delay_ms: float
    jitter_ms: float
    queue_bytes: int
    qdisc: str
    loss_percent: float
    gilbert_elliott: tuple[float, float, float, float] | None
    # From one outage to the next and how long one lasts, means in ms.
    outages_ms: tuple[float, float] | None = None
    # Instead of the rate and the delay, of what was recorded.
    trace: Traces | None = None
    # A Wi-Fi channel in place of everything else, by linkem's name of it.
    wifi: str | None = None
    tried_until_it_arrives: bool = False


@dataclass(frozen=True)
class Scenario:
    """The links of an experiment. Link 1 is the Wi-Fi hop between the client and
    the router, link 2 the way from there to the server. Delays are one way."""

    loss1: float = 0.0
    loss1ge: tuple[float, float, float, float] | None = None
    outages1: tuple[float, float] | None = None
    delay1: float = 1.0
    bw1: float = 100.0
    jitter1: float = 0.0
    queue1: str = "256KiB"
    loss2: float = 0.0
    delay2: float = 25.0
    bw2: float = 10.0
    jitter2: float = 0.0
    # One BDP of the whole path: the measurements this project rests on were made so.
    queue2: str = "1bdp"
    qdisc: str = "droptail"
    ipv6: bool = False
    link: str = "linkem"
    # Link 1 as a radio: a preset of test/air.
    wifi1: str | None = None
    wifi1_lossless: bool = False
    # Links 1 and 2 as recorded; of the rate and delay of a link, those that are in there are
    # then the usual values.
    trace1: Traces | None = None
    mm_config: Traces | None = None
    preset: str | None = None

    def __post_init__(self) -> None:
        for name in ("loss1", "loss2"):
            if not 0 <= getattr(self, name) <= 100:
                raise ScenarioError(f"--{name} is a percentage, not {getattr(self, name)}")
        for name in ("bw1", "bw2"):
            if getattr(self, name) <= 0:
                raise ScenarioError(f"--{name} must be more than 0 Mbit/s")
        for name in ("delay1", "delay2", "jitter1", "jitter2"):
            if getattr(self, name) < 0:
                raise ScenarioError(f"--{name} cannot be negative")
        if self.outages1 is not None:
            self._check_outages()
        if self.qdisc == "cake" and self.link != "netem":
            raise ScenarioError(
                "--qdisc cake needs --link netem and a kernel with sch_cake; linkem has no CAKE"
            )
        if self.wifi1 is not None:
            self._check_wifi()
        if self.mm_config is not None and self.link != "linkem":
            raise ScenarioError("--mm-config needs --link linkem; netem has no traces")
        if self.trace1 is not None and self.link != "linkem":
            raise ScenarioError("--trace1 needs --link linkem; netem has no traces")
        self.queue_bytes(self.queue1, self.bw1)
        self.queue_bytes(self.queue2, self.bw2)

    def _check_outages(self) -> None:
        if min(self.outages1) <= 0:
            raise ScenarioError("--outages1 takes two times in ms, each more than 0")
        if self.loss1ge is not None:
            raise ScenarioError("--outages1 and --loss1ge both say what is lost of link 1")
        if self.link != "linkem":
            raise ScenarioError("--outages1 needs --link linkem; netem counts bursts in packets")

    def _check_wifi(self) -> None:
        if self.link != "linkem":
            raise ScenarioError("--wifi needs --link linkem; netem has no radio")
        if self.lossy_hop or self.jitter1:
            raise ScenarioError("--wifi brings its own losses and delays of link 1")
        if self.trace1 is not None:
            raise ScenarioError("--wifi and --trace1 are both link 1")
        radio.check(self.wifi1)

    @classmethod
    def from_preset(
        cls,
        name: str | None,
        mm_config: Traces | None = None,
        trace1: Traces | None = None,
        **given: object,
    ) -> Scenario:
        """The preset's values, with those that were given by hand on top, or those of
        the traces."""
        if given.get("wifi1") is not None:
            others = [] if trace1 is None else ["trace1"]
            others += [name for name in _OF_LINK_1 if name in given]
            if others:
                other = f"--{others[0]}"
                raise ScenarioError(
                    f"{other} and --wifi both say what link 1 is like; leave out {other}"
                )
        for link, option, traces in ((1, "trace1", trace1), (2, "mm_config", mm_config)):
            if traces is None:
                continue
            usual = {f"bw{link}": traces.down.mean_mbit, f"delay{link}": traces.delay_ms}
            recorded = {key: value for key, value in usual.items() if value is not None}
            for key in recorded:
                if key in given:
                    raise ScenarioError(f"--{key} is in the traces of --{option.replace('_', '-')}")
            given |= recorded | {option: traces}
        values = dict(PRESETS.get(name or "", {}))
        if given.get("wifi1") is not None:
            # The radio replaces what the preset says of link 1.
            values = {key: value for key, value in values.items() if not key.endswith("1")}
        return cls(**{**values, **given, "preset": name})

    @property
    def lossy_hop(self) -> bool:
        """Whether link 1 has losses that were asked for; a radio has its own."""
        return bool(self.loss1) or self.loss1ge is not None or self.outages1 is not None

    @property
    def rtt_ms(self) -> float:
        """Round trip between client and server without any queueing."""
        return 2 * (self.delay1 + self.delay2)

    def queue_bytes(self, text: str, rate_mbit: float) -> int:
        """`1.5bdp` of the whole path at this rate, or a size."""
        if text.lower().endswith("bdp"):
            try:
                factor = float(text[:-3])
            except ValueError:
                factor = 0.0
            if factor <= 0:
                raise ScenarioError(f"{text!r} is not a queue size; write for example 1bdp")
            # A queue shorter than a few packets carries nothing at all.
            return max(round(factor * self.rtt_ms * rate_mbit * 125), 4 * 1514)
        return parse_bytes(text)

    @property
    def wifi(self) -> Hop:
        """Link 1."""
        return Hop(
            rate_mbit=self.bw1,
            delay_ms=self.delay1,
            jitter_ms=self.jitter1,
            queue_bytes=self.queue_bytes(self.queue1, self.bw1),
            qdisc="droptail",
            loss_percent=self.loss1,
            gilbert_elliott=self.loss1ge,
            outages_ms=self.outages1,
            trace=self.trace1,
            wifi=self.wifi1,
            tried_until_it_arrives=self.wifi1_lossless,
        )

    @property
    def wan(self) -> Hop:
        """Link 2."""
        return Hop(
            rate_mbit=self.bw2,
            delay_ms=self.delay2,
            jitter_ms=self.jitter2,
            queue_bytes=self.queue_bytes(self.queue2, self.bw2),
            qdisc=self.qdisc,
            loss_percent=self.loss2,
            gilbert_elliott=None,
            trace=self.mm_config,
        )

    def lossless(self) -> Scenario:
        """The same links without any loss of their own: the ceiling."""
        wifi1_lossless = self.wifi1 is not None
        return dataclasses.replace(
            self,
            loss1=0.0,
            loss1ge=None,
            outages1=None,
            loss2=0.0,
            wifi1_lossless=wifi1_lossless,
        )

    def to_json(self) -> dict[str, object]:
        """For the result file."""
        names = (field.name for field in dataclasses.fields(self))
        values = {name: getattr(self, name) for name in names}
        if self.wifi1 is not None:
            # What the radio stands for is not what these say.
            values |= dict.fromkeys(_OF_LINK_1) | {"wifi1": radio.to_json(self.wifi1)}
        return values | {
            name: values[name] and values[name].to_json() for name in ("trace1", "mm_config")
        }
