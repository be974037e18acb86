"""An erasure code under the datagrams (`test/fec`): a shim at both ends, nothing on the
router. The flow between the shims is that of the server's port, as without them."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from .process import Child, wait_until
from .topology import Topology

# The programs' own, on the loopback interfaces.
INNER_PORT = 4434
LARGEST_K = 32
LARGEST_REPAIRS = 32


def name(k: int, n: int) -> str:
    """The assist's name in results. Raises ValueError for what is no code."""
    if not (1 <= k <= LARGEST_K and k < n <= k + LARGEST_REPAIRS):
        raise ValueError(
            f"--fec {k} {n}: K is from 1 to {LARGEST_K}, N more than that by up to "
            f"{LARGEST_REPAIRS}"
        )
    return f"fec-{k}-{n}"


class Fec:
    """Both shims."""

    events_path: Path | None = None

    def __init__(
        self, topology: Topology, outer: str, assist: str, program: Path, rt: int, logs: Path
    ) -> None:
        """`outer` is the server's address and port, where the path ends."""
        self.name = assist
        self._topology = topology
        self._outer = outer
        self._code = assist.removeprefix("fec-").replace("-", ",")
        self._program = program
        self._rt = rt
        self._logs = logs
        self._shims: dict[str, Child] = {}

    @property
    def inner(self) -> str:
        """Where the application's server is to listen, and its client to connect to."""
        return f"[::1]:{INNER_PORT}" if self._topology.version == 6 else f"127.0.0.1:{INNER_PORT}"

    @property
    def children(self) -> tuple[Child, ...]:
        """What must keep running for the experiment to count."""
        return tuple(self._shims.values())

    def start(self, stack: contextlib.ExitStack) -> None:
        """Returns when datagrams are carried."""
        for role, listen, connect in (
            ("server", self._outer, self.inner),
            ("client", self.inner, self._outer),
        ):
            argv = [
                *(str(self._program), role, "--listen", listen, "--connect", connect, "--ready"),
                *("--code", self._code, "--rt", str(self._rt)),
                *("--totals", str(self._totals_path(role))),
            ]
            shim = Child(f"fec-{role}", getattr(self._topology, role), argv, self._logs)
            self._shims[role] = stack.enter_context(shim)
        for shim in self.children:
            wait_until(lambda s=shim: "ready" in s.output().split(), f"{shim.name} ready", [shim])

    def _totals_path(self, role: str) -> Path:
        return self._logs / f"fec-{role}.totals.json"

    def report(self) -> None:
        """Nothing ran on the router."""

    def stop(self) -> None:
        """The end, at which the shims say what they did."""
        for shim in self.children:
            shim.stop()
            if shim.exit_code != 0:
                raise shim.failure(f"ended with exit code {shim.exit_code}")

    def totals(self) -> dict[str, object]:
        """What each direction came to, for the result file."""
        said = {role: json.loads(self._totals_path(role).read_text()) for role in self._shims}
        return {
            "down": direction(said["server"]["sent"], said["client"]["received"]),
            "up": direction(said["client"]["sent"], said["server"]["received"]),
        }


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
