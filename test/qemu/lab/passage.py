# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts the packets that come to the router and those that leave it again."""

from __future__ import annotations

import json

from testbed.world.process import ExperimentError

from .router import Router
from .traffic import QUIC_PORT

_COPIES = "0x20000000"


class Passage:
    """While it lasts, packets of QUIC flows are counted in both directions; copies,
    which have not come from anywhere, are not."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def __enter__(self) -> Passage:
        wan = self._router.wan_port
        chains = {
            "came": ("prerouting", "-400", f"iifname {wan}", f"iifname != {wan}"),
            "went": ("postrouting", "400", f"oifname != {wan}", f"oifname {wan}"),
        }
        rules = "table inet passage {\n"
        for counter in ("down_came", "up_came", "down_went", "up_went"):
            rules += f"counter {counter} {{ }}\n"
        for name, (hook, priority, down, up) in chains.items():
            rules += f"""
            chain {name} {{
                type filter hook {hook} priority {priority};
                meta mark & {_COPIES} != 0 accept
                {down} udp sport {QUIC_PORT} counter name down_{name}
                {up} udp dport {QUIC_PORT} counter name up_{name}
            }}
            """
        self._router.push((rules + "}\n").encode(), "/tmp/passage.nft")
        self._router.run("nft -f /tmp/passage.nft")
        return self

    def __exit__(self, *_: object) -> None:
        self._router.run("nft delete table inet passage")

    def check(self) -> dict[str, int]:
        """All that came must have left, once nothing is on its way any more."""
        try:
            self._router.wait(self._is_even, "all packets that came have left", 3)
        except ExperimentError as error:
            raise AssertionError(f"{error}: {self._counts()}") from None
        return self._counts()

    def _is_even(self) -> bool:
        counts = self._counts()
        return all(counts[f"{way}_came"] == counts[f"{way}_went"] for way in ("down", "up"))

    def _counts(self) -> dict[str, int]:
        said = json.loads(self._router.run("nft -j list counters table inet passage"))
        counters = (item["counter"] for item in said["nftables"] if "counter" in item)
        return {counter["name"]: counter["packets"] for counter in counters}
