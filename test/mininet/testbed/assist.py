"""What the router does for the flows: nothing, or PEMI on a netfilter queue."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import tempfile
from pathlib import Path

from .process import Child, ExperimentError, wait_until
from .topology import Topology

QUEUE = 0
COPY_MARK = "0x20000000"
BYPASS_MARK = "0x10000000"


class Off:
    """A plain router."""

    name = "off"
    children: tuple[Child, ...] = ()
    events_path: Path | None = None

    def start(self, stack: contextlib.ExitStack) -> None:
        """Nothing to start."""

    def report(self) -> dict[str, object] | None:
        """Nothing ran on the router, so there is nothing to account for."""
        return None

    def stop(self) -> None:
        """Nothing to stop."""


class Pemi:
    """The daemon, with both directions of the flows on one queue."""

    name = "pemi"

    def __init__(
        self, topology: Topology, port: int, program: Path, extra: list[str], logs: Path
    ) -> None:
        self._topology = topology
        self._port = port
        self._program = program
        self._extra = extra
        self._logs = logs
        self._control: Path | None = None
        self._stack: contextlib.ExitStack | None = None
        self._starts = 0
        self._killed = False
        self.events_path: Path | None = logs / "events.jsonl"
        self._daemon: Child | None = None

    @property
    def children(self) -> tuple[Child, ...]:
        """What must keep running for the experiment to count."""
        return (self._daemon,) if self._daemon and not self._killed else ()

    def start(self, stack: contextlib.ExitStack) -> None:
        """Returns when the daemon answers and packets go through its queue."""
        # Not among the logs: a socket's path has to be shorter than 108 bytes.
        directory = tempfile.TemporaryDirectory(prefix="pemi-", dir="/tmp")
        self._control = Path(stack.enter_context(directory)) / "control"
        self._stack = stack
        self._start_daemon()
        self._attach()

    def _start_daemon(self) -> None:
        argv = [
            *(str(self._program), "run"),
            *self._what(),
            *("--queue", str(QUEUE)),
            *("--control", str(self._control)),
            *("--events", str(self.events_path)),
            *("--log-level", "info"),
            *self._extra,
        ]
        self._starts += 1
        # What the first one said is not lost when there is a second.
        name = "pemi" if self._starts == 1 else f"pemi-{self._starts}"
        daemon = Child(name, self._topology.router, argv, self._logs)
        self._daemon = self._stack.enter_context(daemon)
        self._ready(daemon)

    def _what(self) -> list[str]:
        """What it is to help."""
        return ["--port", str(self._port)]

    def _ready(self, daemon: Child) -> None:
        wait_until(self._answers, "the daemon's control socket", [daemon])

    def _attach(self) -> None:
        attach(self._topology, self._port)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as control:
            try:
                control.connect(str(self._control))
            except (FileNotFoundError, ConnectionRefusedError):
                return False
        return True

    def kill(self) -> None:
        """A crash in mid-flow: the kernel has to let the packets pass by itself."""
        assert self._daemon is not None
        self._daemon.check()
        self._killed = True
        self._daemon.kill()

    def restart(self) -> None:
        """After it was killed, as procd would; what brings it packets is still there."""
        self._start_daemon()
        self._killed = False

    def report(self) -> dict[str, object] | None:
        """What it cost and what it says of itself, since it was started last."""
        if self._killed or self._daemon is None:
            return None
        return {
            "cpu_s": cpu_seconds(self._daemon.pid),
            "rss_kib": peak_rss_kib(self._daemon.pid),
            "status": self._status(),
        }

    def _status(self) -> object:
        command = [str(self._program), "status", "--json", "--control", str(self._control)]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
        if answer.returncode != 0:
            raise ExperimentError(f"pemi status failed: {answer.stderr.strip()}")
        return json.loads(answer.stdout)

    def stop(self) -> None:
        """A clean end, so that the events file is complete."""
        if self._killed or self._daemon is None:
            return
        self._daemon.stop()
        if self._daemon.exit_code != 0:
            raise self._daemon.failure(f"ended with exit code {self._daemon.exit_code}")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    # The program's name comes first and may hold blanks and parentheses.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_rss_kib(pid: int) -> int:
    """The most memory it ever had resident."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise ExperimentError(f"process {pid} has no VmHWM")


def attach(topology: Topology, port: int) -> None:
    """Puts the flows of this server port on the queue. `bypass`: with no daemon
    there, packets pass."""
    rules = nft_rules(port)
    nft = topology.router.popen(["nft", "-f", "-"], stdin=subprocess.PIPE, text=True)
    _, error = nft.communicate(rules, timeout=10)
    if nft.returncode == 0:
        return
    # Many kernels, container hosts' above all, are built without nft's queue
    # statement but have the target of iptables.
    program = "ip6tables" if topology.version == 6 else "iptables"
    for rule in iptables_rules(port):
        said, failed, code = topology.router.pexec([program, "-w", *rule])
        if code != 0:
            raise ExperimentError(
                "neither nft nor iptables can attach the queue:\n"
                f"  nft: {error.strip()}\n  {program}: {(failed or said).strip()}"
            )


def nft_rules(port: int) -> str:
    """One transaction: all of it or nothing."""
    return f"""
table inet pemi {{
  chain forward {{
    type filter hook forward priority mangle;
    meta mark & {COPY_MARK} != 0 accept
    ct mark & {BYPASS_MARK} != 0 accept
    udp dport {port} queue num {QUEUE} bypass
    udp sport {port} queue num {QUEUE} bypass
  }}
  chain postrouting {{
    type filter hook postrouting priority mangle;
    meta mark & {BYPASS_MARK} != 0 ct mark set ct mark | {BYPASS_MARK}
  }}
  chain output {{
    type filter hook output priority raw;
    meta mark & {COPY_MARK} != 0 notrack
  }}
}}
"""


def iptables_rules(port: int) -> list[list[str]]:
    """The same for iptables or ip6tables."""
    copy, bypass = f"{COPY_MARK}/{COPY_MARK}", f"{BYPASS_MARK}/{BYPASS_MARK}"
    rules = [
        f"-t mangle -A FORWARD -p udp {side} {port} -m mark ! --mark {copy} "
        f"-m connmark ! --mark {bypass} -j NFQUEUE --queue-num {QUEUE} --queue-bypass"
        for side in ("--dport", "--sport")
    ]
    rules.append(
        # The verdict's mark is not seen by the rest of the chain it was queued
        # from, hence the later hook.
        f"-t mangle -A POSTROUTING -p udp -m mark --mark {bypass} "
        f"-j CONNMARK --save-mark --nfmask {BYPASS_MARK} --ctmask {BYPASS_MARK}"
    )
    rules.append(f"-t raw -A OUTPUT -m mark --mark {copy} -j CT --notrack")
    return [rule.split() for rule in rules]
