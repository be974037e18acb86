# SPDX-License-Identifier: GPL-2.0-or-later
"""Captures at every hop, as a second witness beside linkem's logs."""

from __future__ import annotations

import hashlib
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from ..world.process import NotReady
from .packets import LINKS, POINTS, Crossings
from .scoring import Packet as Crossing

# Links and captures are late by less than this.
_ABOUT_US = 1_000


@dataclass(frozen=True, slots=True)
class Sighting:
    """A packet at one point."""

    us: float
    length: int
    digest: str


def path(directory: Path, point: str) -> Path:
    """Where a point's capture is kept."""
    return directory / f"{point}.pcap"


def read(directory: Path, port: int) -> dict[tuple[str, str], list[Sighting]]:
    """All points, by direction and point."""
    try:
        import dpkt
    except ImportError:
        raise NotReady("python3-dpkt is not there; run `make setup`") from None
    seen: dict[tuple[str, str], list[Sighting]] = {}
    for point in POINTS["down"]:
        found: dict[str, list[Sighting]] = {"down": [], "up": []}
        with path(directory, point).open("rb") as file:
            for time, frame in dpkt.pcap.Reader(file):
                udp = _udp(dpkt, frame)
                if udp is not None and port in (udp.sport, udp.dport):
                    digest = hashlib.blake2b(udp.data, digest_size=8).hexdigest()
                    # The reader's times are decimals: nanoseconds of today do not fit a float.
                    sighting = Sighting(float(time % 10**6 * 10**6), len(udp.data), digest)
                    found["down" if udp.sport == port else "up"].append(sighting)
        for direction, sightings in found.items():
            seen[direction, point] = sightings
    return seen


def _udp(dpkt, frame: bytes):
    packet = dpkt.ethernet.Ethernet(frame).data
    inner = getattr(packet, "data", None)
    return inner if isinstance(inner, dpkt.udp.UDP) else None


def crossings(seen: dict[tuple[str, str], list[Sighting]]) -> Crossings:
    """What each link did, as far as its two ends show it."""
    found = {}
    for direction, links in LINKS.items():
        points = POINTS[direction]
        for index, link in enumerate(links):
            ends = points[2 * index], points[2 * index + 1]
            found[direction, link] = _link(*(seen[direction, end] for end in ends))
    return found


def _link(sent: list[Sighting], came: list[Sighting]) -> list[Crossing]:
    """A link keeps the order, so what came was sent behind what came before it; of
    several transmissions of the same bytes there, it is the first that would have taken
    about the usual time. A packet and its copy right behind it cannot be told apart."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, sighting in enumerate(sent):
        places[sighting.digest].append(place)
    usual_us = _usual_us(sent, came)
    out: dict[int, float] = {}
    last = -1
    for sighting in came:
        waiting = [place for place in places[sighting.digest] if place > last]
        if waiting:
            about = (
                place
                for place in waiting
                if abs(sighting.us - sent[place].us - usual_us) <= _ABOUT_US
            )
            last = next(about, waiting[0])
            out[last] = sighting.us
    return [
        Crossing(
            us=one.us,
            length=one.length,
            digest=one.digest,
            fate="ok" if place in out else "lost",
            out_us=out.get(place),
        )
        for place, one in enumerate(sent)
    ]


def _usual_us(sent: list[Sighting], came: list[Sighting]) -> float:
    """How long the link took for what crossed it once."""
    begun: dict[str, list[float]] = defaultdict(list)
    ended: dict[str, list[float]] = defaultdict(list)
    for times, sightings in ((begun, sent), (ended, came)):
        for sighting in sightings:
            times[sighting.digest].append(sighting.us)
    once = [
        ended[digest][0] - times[0]
        for digest, times in begun.items()
        if len(times) == len(ended[digest]) == 1
    ]
    return statistics.median(once) if once else 0.0


def disagreements(logs: Crossings, captured: Crossings) -> list[str]:
    """Counts in which the two witnesses differ, in words."""
    found = []
    for key, logged in logs.items():
        other = captured[key]
        for what, of in (
            ("entered", lambda crossing: True),
            ("came out of", lambda crossing: crossing.out_us is not None),
        ):
            counts = [sum(1 for crossing in side if of(crossing)) for side in (logged, other)]
            if counts[0] != counts[1]:
                direction, link = key
                found.append(
                    f"{direction}: {counts[0]} packets {what} the {link} by linkem's log, "
                    f"{counts[1]} by the captures"
                )
    return found
