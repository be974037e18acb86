#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes synthetic traces of links: a train, LTE in a car, a low-earth-orbit satellite, Wi-Fi.

Writes DIR/down and DIR/up, delivery opportunities as mahimahi reads them, and for leo
also DIR/delay, a line for each 10 ms as LeoReplayer reads it; for Wi-Fi only that, or
DIR/down-delay and DIR/up-delay, or only the opportunities. The same kind, seed and length
give the same bytes everywhere.

What the figures rest on is in README.md beside this; where it names no source, they
are our choice.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

STEP_MS = 10
PACKET_BITS = 1500 * 8
# Of the capacity towards the phone: of the AT&T driving trace (1.91 to 4.56 Mbit/s).
UPLINK_SHARE = 0.4


class Link:
    """Packets per second that a cellular link can carry: Brownian motion between a
    floor and a ceiling, as Sprout models it, and now and then an outage."""

    NOISE = 200.0  # packets per second per square root of a second
    FLOOR = 20.0  # packets per second
    OUTAGE_EVERY_S = 20.0
    OUTAGE_S = 1.0  # on average

    def __init__(self, rng: random.Random, ceiling: float) -> None:
        self._rng = rng
        self._ceiling = ceiling
        self._rate = ceiling * 0.5
        self._out_s = 0.0

    def step(self) -> float:
        """The rate of the next step."""
        seconds = STEP_MS / 1000
        self._rate += self.NOISE * math.sqrt(seconds) * normal(self._rng)
        if self._rate < self.FLOOR:
            self._rate = 2 * self.FLOOR - self._rate
        if self._rate > self._ceiling:
            self._rate = 2 * self._ceiling - self._rate
        self._out_s -= seconds
        if self._out_s <= 0 and self._rng.random() < seconds / self.OUTAGE_EVERY_S:
            self._out_s = -self.OUTAGE_S * math.log(1 - self._rng.random())
        return 0.0 if self._out_s > 0 else self._rate


class Train:
    """A regional train along a line of cells: which share of the link is left."""

    CRUISE = 140 / 3.6  # m/s
    ACCELERATION = 0.7  # m/s2, also when it brakes
    STANDS_S = (15.0, 25.0)
    RUNS_S = (45.0, 75.0)  # from a stop until it brakes for the next
    CELL_M = (800.0, 1600.0)
    EDGE_SHARE = 0.3  # of the rate, where two cells meet
    PLATFORM_SHARE = 0.6  # while many people wait in the same cell
    HANDOVER_S = (0.03, 0.08)
    HANDOVER_FAILS = 0.1
    REESTABLISHED_S = (1.0, 2.5)
    TUNNEL_EVERY_M = (800.0, 2400.0)
    TUNNEL_M = (80.0, 250.0)

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._speed = 0.0
        self._standing_s = rng.uniform(3.0, 8.0)
        self._running_s = 0.0
        self._cell_m = rng.uniform(*self.CELL_M)
        self._in_cell_m = self._cell_m / 2
        self._to_tunnel_m = rng.uniform(*self.TUNNEL_EVERY_M)
        self._tunnel_m = 0.0
        self._interrupted_s = 0.0

    def step(self) -> float:
        """The share during the next step."""
        seconds = STEP_MS / 1000
        self._drive(seconds)
        moved = self._speed * seconds
        self._in_cell_m += moved
        if self._in_cell_m >= self._cell_m:
            self._hand_over()
        self._to_tunnel_m -= moved
        # Neither where it brakes for a station nor where it starts from one.
        in_motion = self._speed >= self.CRUISE / 2 and self._running_s > 0
        if self._to_tunnel_m <= 0 and in_motion:
            self._tunnel_m = self._rng.uniform(*self.TUNNEL_M)
            self._to_tunnel_m = self._tunnel_m + self._rng.uniform(*self.TUNNEL_EVERY_M)
        self._tunnel_m -= moved
        self._interrupted_s -= seconds
        if self._tunnel_m > 0 or self._interrupted_s > 0:
            return 0.0
        # 1 in the middle of the cell, where its mast stands.
        from_edge = math.sin(math.pi * self._in_cell_m / self._cell_m)
        share = self.EDGE_SHARE + (1 - self.EDGE_SHARE) * from_edge
        return share * (self.PLATFORM_SHARE if self._speed == 0 else 1.0)

    def _drive(self, seconds: float) -> None:
        change = self.ACCELERATION * seconds
        if self._standing_s > 0:
            self._standing_s -= seconds
            self._running_s = self._rng.uniform(*self.RUNS_S) if self._standing_s <= 0 else 0.0
        elif self._running_s > 0 or self._tunnel_m > 0:
            self._running_s -= seconds
            self._speed = min(self.CRUISE, self._speed + change)
        else:
            self._speed = max(0.0, self._speed - change)
            if self._speed == 0:
                self._standing_s = self._rng.uniform(*self.STANDS_S)

    def _hand_over(self) -> None:
        self._in_cell_m = 0.0
        self._cell_m = self._rng.uniform(*self.CELL_M)
        failed = self._rng.random() < self.HANDOVER_FAILS
        self._interrupted_s = self._rng.uniform(
            *(self.REESTABLISHED_S if failed else self.HANDOVER_S)
        )


class Satellite:
    """A terminal that is given another satellite every 15 s: rate and delay."""

    SLOT_MS = 15_000
    MBIT = (25.0, 75.0)  # of a slot
    DELAY_MS = (8.0, 13.0)  # one way, of a slot
    GAP_MS = (50, 250)  # without a packet, when the satellite changes
    SPIKE_MS = (15.0, 45.0)  # on top, at its end

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._now_ms = 0
        # Somewhere within a slot.
        self._slot_ends_ms = rng.randrange(5000, self.SLOT_MS)
        self._gap_ends_ms = 0
        self._spike_ms = 0.0
        self._draw()

    def _draw(self) -> None:
        self._rate = self._rng.uniform(*self.MBIT) * 1e6 / PACKET_BITS
        self._delay_ms = self._rng.uniform(*self.DELAY_MS)

    def step(self) -> tuple[float, float]:
        """Packets per second and delay of the next step."""
        self._now_ms += STEP_MS
        if self._now_ms >= self._slot_ends_ms:
            self._slot_ends_ms += self.SLOT_MS
            self._gap_ends_ms = self._now_ms + self._rng.randrange(*self.GAP_MS)
            self._spike_ms = self._rng.uniform(*self.SPIKE_MS)
            self._draw()
        # The backlog of the change is gone after a few tens of ms.
        self._spike_ms *= 0.8
        delay_ms = self._delay_ms + self._spike_ms + self._rng.uniform(-1.0, 1.0)
        if self._now_ms < self._gap_ends_ms:
            return 0.0, delay_ms
        return self._rate * self._rng.uniform(0.7, 1.3), delay_ms


class Air:
    """The delay of a Wi-Fi hop that carries little: a few ms, of tries that failed."""

    LEAST_MS = 1.5
    # Of the backoffs of a packet, 1 ms each; the last of them is cut short.
    BACKOFFS = 1.0

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def step(self) -> float:
        """The delay of the next step."""
        backoffs = poisson(self._rng, self.BACKOFFS)
        return self.LEAST_MS + (backoffs - self._rng.random() if backoffs else 0.0)


class Stalls:
    """A hop whose radio is elsewhere now and then: what sets out meanwhile waits, in both
    directions, and comes all at once."""

    EVERY_S = 6.6
    STALL_MS = 220.0  # on average
    LONGEST_MS = 935.0

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._air = Air(rng)
        self._left_ms = 0.0

    def step(self) -> float:
        """The delay of the next step."""
        delay_ms = self._air.step()
        self._left_ms -= STEP_MS
        if self._left_ms <= 0 and self._rng.random() < STEP_MS / 1000 / self.EVERY_S:
            stall_ms = -self.STALL_MS * math.log(1 - self._rng.random())
            self._left_ms = min(stall_ms, self.LONGEST_MS)
        return max(delay_ms, self._left_ms)


class Dozing:
    """A client that sleeps between beacons while it has little to do. Its access point keeps
    what is for it until the beacon at which it wakes; to send, it need not wait."""

    BEACON_MS = 102.4
    # At each beacon or at each third one, as clients ask for.
    BEACONS = (1, 1, 1, 3)
    AWAKE_S = (2.0, 6.0)
    ASLEEP_S = (1.0, 3.0)

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._air = Air(rng)
        self._now_ms = 0
        self._asleep = True
        self._change_ms = 0.0
        self._wakes_ms = 0.0

    def step(self) -> tuple[float, float]:
        """The delays of the next step, to the client and from it."""
        if self._now_ms >= self._change_ms:
            self._asleep = not self._asleep
            seconds = self._rng.uniform(*(self.ASLEEP_S if self._asleep else self.AWAKE_S))
            self._change_ms = self._now_ms + seconds * 1000
            self._wakes_ms = self.BEACON_MS * self._rng.choice(self.BEACONS)
        wait_ms = self._wakes_ms - self._now_ms % self._wakes_ms if self._asleep else 0.0
        self._now_ms += STEP_MS
        return wait_ms + self._air.step(), self._air.step()


@dataclass(frozen=True)
class Place:
    """What Wi-Fi carries where people sit: its rate from second to second, and gaps in it."""

    mbit: float
    # Of the rate outside gaps, as parts of the usual one: from second to second it keeps so much
    # of its distance from it.
    deviation: float
    kept: float
    gap_every_s: float
    gap_s: float  # on average
    in_gap: float  # of the usual rate

    def rates(self, rng: random.Random, steps: int) -> Iterator[float]:
        """Packets per second of each step."""
        share, gap_s = 1.0, 0.0
        for step in range(steps):
            if step % (1000 // STEP_MS) == 0:
                noise = self.deviation * math.sqrt(1 - self.kept**2) * normal(rng)
                share = 1 + self.kept * (share - 1) + noise
            gap_s -= STEP_MS / 1000
            if gap_s <= 0 and rng.random() < STEP_MS / 1000 / self.gap_every_s:
                gap_s = -self.gap_s * math.log(1 - rng.random())
            now = self.in_gap if gap_s > 0 else max(share, self.in_gap)
            yield now * self.mbit * 1e6 / PACKET_BITS


PLACES = {
    "wifi-cafe": Place(
        mbit=7.8, deviation=0.06, kept=0.0, gap_every_s=1300.0, gap_s=3.0, in_gap=0.02
    ),
    "wifi-campus": Place(
        mbit=64.0, deviation=0.24, kept=0.3, gap_every_s=43.0, gap_s=3.4, in_gap=0.09
    ),
    "wifi-office": Place(
        mbit=15.5, deviation=0.5, kept=0.44, gap_every_s=27.0, gap_s=2.1, in_gap=0.07
    ),
}


def poisson(rng: random.Random, mean: float) -> int:
    """Knuth's way to a Poisson number; for means of a few."""
    number = 0
    product = rng.random()
    while product > math.exp(-mean):
        number += 1
        product *= rng.random()
    return number


def normal(rng: random.Random) -> float:
    """Box-Muller; random.gauss is not promised to stay the same."""
    return math.sqrt(-2 * math.log(1 - rng.random())) * math.cos(2 * math.pi * rng.random())


def opportunities(rng: random.Random, rates: Iterator[float]) -> Iterator[int]:
    """Times in ms of a Poisson process whose rate changes from step to step."""
    for step, rate in enumerate(rates):
        per_ms = rate / 1000
        for ms in range(step * STEP_MS, (step + 1) * STEP_MS):
            # Rates are a few packets per ms.
            for _ in range(poisson(rng, per_ms)):
                yield ms + 1


def train(seed: int, steps: int) -> dict[str, list[str]]:
    """Both directions go through the same tunnels."""
    way = Train(random.Random(f"train-{seed}"))
    shares = [way.step() for _ in range(steps)]
    return _both(seed, steps, ceiling=1600.0, share=shares.__getitem__)


def lte_driving(seed: int, steps: int) -> dict[str, list[str]]:
    """A car in a city."""
    return _both(seed, steps, ceiling=800.0, share=lambda _: 1.0)


def _both(
    seed: int, steps: int, ceiling: float, share: Callable[[int], float]
) -> dict[str, list[str]]:
    files = {}
    for name, part in (("down", 1.0), ("up", UPLINK_SHARE)):
        rng = random.Random(f"{name}-{seed}")
        link = Link(rng, ceiling)
        rates = (link.step() * share(step) * part for step in range(steps))
        files[name] = _whole(opportunities(rng, rates), steps)
    return files


def leo(seed: int, steps: int) -> dict[str, list[str]]:
    """Both directions change satellites together."""
    satellite = Satellite(random.Random(f"leo-{seed}"))
    path = [satellite.step() for _ in range(steps)]
    files = {"delay": [f"{delay:.1f}" for _, delay in path]}
    # A fifth: what terminals of this kind are sold with.
    for name, part in (("down", 1.0), ("up", 0.2)):
        rng = random.Random(f"{name}-{seed}")
        rates = (rate * part for rate, _ in path)
        files[name] = _whole(opportunities(rng, rates), steps)
    return files


def wifi_spikes(seed: int, steps: int) -> dict[str, list[str]]:
    """Both directions wait for the same end of a stall."""
    stalls = Stalls(random.Random(f"wifi-spikes-{seed}"))
    return {"delay": [f"{stalls.step():.1f}" for _ in range(steps)]}


def wifi_sleep(seed: int, steps: int) -> dict[str, list[str]]:
    """Only what is for the client waits."""
    client = Dozing(random.Random(f"wifi-sleep-{seed}"))
    path = [client.step() for _ in range(steps)]
    ways = zip(("down-delay", "up-delay"), zip(*path, strict=True), strict=True)
    return {name: [f"{delay:.1f}" for delay in delays] for name, delays in ways}


def wifi_place(name: str) -> Callable[[int, int], dict[str, list[str]]]:
    """Both directions have the same rate, as they share the air."""

    def make(seed: int, steps: int) -> dict[str, list[str]]:
        rates = list(PLACES[name].rates(random.Random(f"{name}-{seed}"), steps))
        return {
            way: _whole(opportunities(random.Random(f"{name}-{way}-{seed}"), iter(rates)), steps)
            for way in ("down", "up")
        }

    return make


def _whole(times: Iterator[int], steps: int) -> list[str]:
    """The last line is where the trace begins again, so it has to be the end."""
    lines = [str(ms) for ms in times]
    end = str(steps * STEP_MS)
    return lines if lines and lines[-1] == end else [*lines, end]


KINDS = {
    "train": train,
    "lte-driving": lte_driving,
    "leo": leo,
    "wifi-spikes": wifi_spikes,
    "wifi-sleep": wifi_sleep,
    **{name: wifi_place(name) for name in PLACES},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    if not 1 <= options.seconds <= 86_400:
        parser.error("--seconds must be from 1 to 86400")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
        for name, lines in KINDS[options.kind](options.seed, options.seconds * 100).items():
            (options.out / name).write_text("\n".join(lines) + "\n")
    except OSError as error:
        parser.error(f"--out: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
