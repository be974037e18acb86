# SPDX-License-Identifier: GPL-2.0-or-later
"""What `protocols all` must show: TCP and UDP of any port over a radio that loses one frame in
a hundred after its attempts. Needs the built programs: `make test-wifi`."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

import pytest
from bed import options, presets, series, web
from bed.setups import Echo, Setup
from testbed.loads import apps

pytestmark = pytest.mark.guest

_ONE_PERCENT = "radio.attempts = 4\nlink.errors.good = 0.32\n"
_OPTIONS = "--repair radio --protocols all"
# Over in less than `release_s`, after which a flow that lost nothing meanwhile is let go.
_ECHOES = 300
_AT = "10.0.2.2:7000"


@dataclass(frozen=True, kw_only=True)
class _Exchange(Echo):
    """Echoes of the server, so of packets that are routed: a protocol that nobody knows."""

    def before(self, _place: apps.Place) -> list[str]:
        return [
            f"in_background reflect srv stream reflect --at {_AT}",
            "until_true grep -q listening $logs/reflect.out",
        ]

    def client(self, _place: apps.Place) -> list[str]:
        return ["stream", "echo", "--at", _AT, *self.options]


def _exchange() -> _Exchange:
    return _Exchange(
        name="echo",
        stack="udp",
        cc="none",
        label=f"{_ECHOES} echoes of the server",
        timeout_s=60,
        programs=("stream",),
        seconds=_ECHOES / 50,
        options=("--count", str(_ECHOES), "--interval-ms", "20", "--bytes", "56"),
    )


def _setup(app: apps.App, assist: str, seed: int = 1) -> Setup:
    known = presets.read()["clean"]
    lab = options.lab(known, "6.1", "open", {})
    return Setup(lab, known, app, assist, seed, _OPTIONS, _ONE_PERCENT)


def _plan() -> list[Setup]:
    download = web.http(3_000_000, None, 10)
    return [
        _setup(download, "lossless"),
        *[_setup(download, "pemi", seed) for seed in (1, 2, 3)],
        _setup(_exchange(), "pemi"),
    ]


@pytest.fixture(scope="module")
def runs() -> list[series.Run]:
    (runs,) = series.carry_out([_plan()], jobs=1)
    return runs


def test_tcp_is_as_fast_as_where_nothing_is_lost(runs):
    lossless, *helped = runs[:4]
    for run in helped:
        status = run["router"]["status"]
        assert run["station"]["tx_failed"] >= 5
        assert status["losses"]["repaired"] == status["reports"]["losses"]
        # Each copy for a loss, of a packet or of a copy.
        assert status["resent"]["packets"] <= run["station"]["tx_failed"]
        assert status["queues"][0]["verdict_errors"] == 0
    # A client's first packet may get lost before the router has seen anything of it.
    goodput = statistics.median(run["metrics"]["goodput_mbps"] for run in helped)
    assert goodput >= 0.98 * lossless["metrics"]["goodput_mbps"]


def test_packets_of_an_unknown_protocol_get_lost_before_the_router_only(runs):
    run = runs[4]
    status = run["router"]["status"]
    assert status["reports"]["losses"] > 0
    assert status["losses"]["repaired"] == status["reports"]["losses"]
    assert status["flows"]["bypassed"] == 0
    # What has come to the router has come to the client. One more is sent before those that count.
    assert run["metrics"]["lost"] <= _ECHOES + 1 - status["packets"]["down"]
    # Nothing waits for anything: a round trip is 40 ms and what the air takes.
    assert max(run["metrics"]["echo_us"]) < 50_000
