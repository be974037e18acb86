# SPDX-License-Identifier: GPL-2.0-or-later
"""Downloads one after the other, each a connection of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass

from .apps import OwnApp, Place, goodput

# A download counts as over after 3 s without a packet, and the daemon looks every 5 s.
_OVER_S = 10
# Each of them waits until the one before it has told its result.
_SCRIPT = 'n=$1; over=$2; shift 2; while [ "$n" -gt 0 ]; do "$@" || exit; n=$((n - 1)); done; sleep "$over"'  # noqa: E501 - a line of shell


@dataclass(frozen=True, kw_only=True)
class Downloads(OwnApp):
    def client(self, place: Place) -> list[str]:
        script = ["sh", "-euc", _SCRIPT, "downloads", str(self.count), str(_OVER_S)]
        return [*script, *super().client(place)]

    def measured(self, place: Place, output: str) -> dict[str, object]:
        """The goodput of each; each has printed its own result."""
        results = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        assert len(results) == self.count
        return {"goodputs_mbps": [result["goodput_mbps"] for result in results]}


def downloads(count: int, size: int, cc: str | None, slowest_mbit: float) -> Downloads:
    """As `goodput`, so many times."""
    one = goodput(size, cc, slowest_mbit)
    return Downloads(
        name="downloads",
        stack=one.stack,
        cc=one.cc,
        programs=one.programs,
        client_options=one.client_options,
        timeout_s=count * one.timeout_s,
        label=f"{count} times {one.label}",
        bytes=size,
        count=count,
    )
