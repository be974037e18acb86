"""Captures at every hop, as a second witness beside linkem's logs."""

from __future__ import annotations

import hashlib
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from .packets import LINKS, POINTS, Crossings
from .process import NotReady
from .scoring import Packet as Crossing


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
    arrivals: dict[str, list[float]] = defaultdict(list)
    for sighting in came:
        arrivals[sighting.digest].append(sighting.us)
    transmissions: dict[str, list[Sighting]] = defaultdict(list)
    for sighting in sent:
        transmissions[sighting.digest].append(sighting)
    once = [
        arrivals[digest][0] - own[0].us
        for digest, own in transmissions.items()
        if len(own) == len(arrivals[digest]) == 1
    ]
    usual_us = statistics.median(once) if once else 0.0
    out: dict[int, float] = {}
    for digest, own in transmissions.items():
        left = list(own)
        for us in arrivals[digest]:
            # Of several transmissions with the same bytes, that which would take the
            # usual time: a link keeps the order.
            nearest = min(left, key=lambda one: abs(us - one.us - usual_us), default=None)
            if nearest is not None:
                out[id(nearest)] = us
                left.remove(nearest)
    return [
        Crossing(
            one.us, one.length, one.digest, "ok" if id(one) in out else "lost", out.get(id(one))
        )
        for one in sent
    ]


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
