# SPDX-License-Identifier: GPL-2.0-or-later
"""An erasure code under the datagrams (`test/fec`): a shim at both ends, nothing on the
router. The flow between the shims is that of the server's port, as without them."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..loads.apps import App
from ..world.process import Child, wait_until
from ..world.programs import Programs
from .assist import Assist, Running, Site

# The programs' own, on the loopback interfaces.
INNER_PORT = 4434
LARGEST_K = 32
LARGEST_REPAIRS = 32


@dataclass(frozen=True)
class Fec(Assist):
    """Every `n` packets are `k` datagrams and what repairs them."""

    k: int
    n: int
    option: ClassVar[str] = "fec"
    argument: ClassVar[dict[str, object]] = {
        "nargs": 2,
        "type": int,
        "metavar": ("K", "N"),
        "help": "an erasure code under the datagrams, N packets for K; nothing on the router",
    }
    # Repairs are no copies.
    scored: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Raises ValueError for what is no code."""
        if not (1 <= self.k <= LARGEST_K and self.k < self.n <= self.k + LARGEST_REPAIRS):
            raise ValueError(
                f"--fec {self.k} {self.n}: K is from 1 to {LARGEST_K}, N more than that by up to "
                f"{LARGEST_REPAIRS}"
            )

    @property
    def name(self) -> str:
        return f"fec-{self.k}-{self.n}"

    def programs(self, built: Programs) -> list[Path]:
        return [built.testbed / "fec"]

    def accepts(self, load: App) -> None:
        if load.over_tcp:
            raise ValueError(f"--fec carries UDP, and {load.name} runs over TCP")

    def accepts_others_beside(self) -> None:
        raise ValueError("--beside and --fec: the code is for one flow's whole path")

    def at(self, site: Site) -> Running:
        return Shims(site, f"{self.k},{self.n}")


class Shims(Running):
    """Both ends of the code."""

    def __init__(self, site: Site, code: str) -> None:
        super().__init__(site)
        self._code = code
        self._program = site.programs.testbed / "fec"
        self._shims: dict[str, Child] = {}

    @property
    def address(self) -> str:
        return f"[::1]:{INNER_PORT}" if self._topology.version == 6 else f"127.0.0.1:{INNER_PORT}"

    @property
    def children(self) -> tuple[Child, ...]:
        return tuple(self._shims.values())

    def start(self, stack: contextlib.ExitStack) -> None:
        """Returns when datagrams are carried."""
        # Between the shims it is the server's own address, where the path ends.
        inner, outer = self.address, super().address
        for role, listen, connect in (("server", outer, inner), ("client", inner, outer)):
            argv = [
                *(str(self._program), role, "--listen", listen, "--connect", connect, "--ready"),
                *("--code", self._code, "--rt", str(self._site.rt)),
                *("--totals", str(self._totals_path(role))),
            ]
            shim = Child(f"fec-{role}", getattr(self._topology, role), argv, self._logs)
            self._shims[role] = stack.enter_context(shim)
        for shim in self.children:
            wait_until(lambda s=shim: "ready" in s.output().split(), f"{shim.name} ready", [shim])

    def _totals_path(self, role: str) -> Path:
        return self._logs / f"fec-{role}.totals.json"

    def stop(self) -> None:
        """The end, at which the shims say what they did."""
        for shim in self.children:
            shim.stop()
            if shim.exit_code != 0:
                raise shim.failure(f"ended with exit code {shim.exit_code}")

    def totals(self) -> dict[str, object]:
        """What each direction came to."""
        said = {role: json.loads(self._totals_path(role).read_text()) for role in self._shims}
        down = direction(said["server"]["sent"], said["client"]["received"])
        up = direction(said["client"]["sent"], said["server"]["received"])
        return {"fec": {"down": down, "up": up}}


def direction(sent: dict, received: dict) -> dict[str, int]:
    """`undelivered` is of the whole path and all causes, as the two ends count it."""
    delivered = received["sources"] - received["duplicates"] - received["late"]
    delivered += received["recovered"]
    return {
        **sent,
        **{f"received_{name}": received[name] for name in ("sources", "repairs")},
        **{name: received[name] for name in ("recovered", "duplicates", "late")},
        "undelivered": sent["sources"] - delivered,
    }
