# SPDX-License-Identifier: GPL-2.0-or-later
"""The rules that put flows on the daemon's queue: its own, as on a router."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ..world.process import ExperimentError
from ..world.topology import Topology


def attach(topology: Topology, program: Path, config: Path) -> None:
    """Puts flows on the queue, by the rules that the daemon prints for this
    configuration. `bypass`: with no daemon there, packets pass."""
    complaint = load(topology, ["nft", "-f", "-"], rules(program, config))
    if not complaint:
        return
    # Many kernels, container hosts' above all, are built without nft's queue
    # statement but have the target of iptables.
    restore = "ip6tables-restore" if topology.version == 6 else "iptables-restore"
    failed = load(topology, [restore, "-w", "--noflush"], rules(program, config, "--iptables"))
    if failed:
        raise ExperimentError(
            f"neither nft nor iptables can attach the queue:\n  nft: {complaint}\n"
            f"  {restore}: {failed}"
        )


def rules(program: Path, config: Path, *form: str) -> str:
    """The firewall rules of the daemon itself."""
    command = [str(program), "rules", "--config", str(config), *form]
    said = subprocess.run(command, capture_output=True, text=True, timeout=10)
    if said.returncode != 0:
        raise ExperimentError(f"pemi rules failed: {said.stderr.strip()}")
    return said.stdout


def load(topology: Topology, argv: list[str], text: str) -> str:
    """Hands rules to a program on the router; what it complains of."""
    child = topology.router.popen(argv, stdin=subprocess.PIPE, text=True)
    _, error = child.communicate(text, timeout=10)
    return (error.strip() or f"exit code {child.returncode}") if child.returncode != 0 else ""
