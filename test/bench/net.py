# SPDX-License-Identifier: GPL-2.0-or-later
"""Client, router and server in network namespaces, on plain veth pairs."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

CLIENT, ROUTER, SERVER = "client", "router", "server"
SERVER_ADDRESS = "10.98.2.2:443"
QUEUE = "0"
# Rounds are short, but a router that is stuck must not hang the benchmark.
TIMEOUT_S = 30


class Problem(Exception):
    """Why something cannot be measured; for people to read."""


def check(*command: str) -> str:
    """Run a command and give what it prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Problem(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Lab:
    """Three hosts; gone when closed."""

    def __init__(self) -> None:
        self.prefix = f"pemi-bench-{os.getpid()}-"
        self.stack = contextlib.ExitStack()

    def __enter__(self) -> "Lab":
        if os.geteuid() != 0:
            raise Problem("network namespaces need root")
        for tool in ("ip", "sysctl", "ethtool", "iptables-nft"):
            if shutil.which(tool) is None:
                raise Problem(f"the command {tool} is missing")
        with contextlib.ExitStack() as stack:
            self._make(stack)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def _make(self, stack: contextlib.ExitStack) -> None:
        for host in (CLIENT, ROUTER, SERVER):
            check("ip", "netns", "add", self.prefix + host)
            stack.callback(check, "ip", "netns", "delete", self.prefix + host)
            self.run(host, "ip", "link", "set", "lo", "up")
        for host, net in ((CLIENT, "10.98.1"), (SERVER, "10.98.2")):
            self.run(
                ROUTER, "ip", "link", "add", f"to-{host}", "type", "veth",
                "peer", "name", "eth0", "netns", self.prefix + host,
            )  # fmt: skip
            for where, name, address in ((ROUTER, f"to-{host}", "1"), (host, "eth0", "2")):
                self.run(where, "ip", "address", "add", f"{net}.{address}/24", "dev", name)
                self.run(where, "ip", "link", "set", name, "up")
                self.run(where, "ethtool", "-K", name, "tx", "off", "gso", "off", "gro", "off")
            self.run(host, "ip", "route", "add", "default", "via", f"{net}.1")
        self.run(ROUTER, "sysctl", "-qw", "net.ipv4.ip_forward=1")

    def command(self, host: str, *command: str) -> list[str]:
        """Give the command that runs another one on a host."""
        return ["ip", "netns", "exec", self.prefix + host, *command]

    def run(self, host: str, *command: str) -> str:
        """Run a command on a host and give what it prints."""
        return check(*self.command(host, *command))

    @contextlib.contextmanager
    def queued(self):
        """Send what the router forwards through the packet queue."""
        rule = ["FORWARD", "-p", "udp", "-j", "NFQUEUE", "--queue-num", QUEUE, "--queue-bypass"]
        self.run(ROUTER, "iptables-nft", "-t", "mangle", "-A", *rule)
        try:
            yield
        finally:
            self.run(ROUTER, "iptables-nft", "-t", "mangle", "-D", *rule)

    @contextlib.contextmanager
    def ruled(self, pemi: Path, config: Path):
        """Send what the daemon's own rules for this configuration name through its queues."""
        text = subprocess.check_output([pemi, "rules", "--iptables", "--config", config])
        restore = self.command(ROUTER, "iptables-nft-restore", "-n")
        subprocess.run(restore, input=text, check=True)
        try:
            yield
        finally:
            for table in ("raw", "mangle", "security"):
                self.run(ROUTER, "iptables-nft", "-t", table, "-F")
            self.run(ROUTER, "iptables-nft", "-t", "security", "-X")

    @contextlib.contextmanager
    def program(self, *command: str):
        """Run a program that binds the queue on the router."""
        with tempfile.TemporaryFile("w+") as log:
            process = subprocess.Popen(
                self.command(ROUTER, *command), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            try:
                self._await_queue(process, command[0], log)
                yield process
                if process.poll() is not None:
                    raise Problem(f"{command[0]} ended with {process.returncode}: {tail(log)}")
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _await_queue(self, process: subprocess.Popen, name: str, log) -> None:
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise Problem(f"{name} ended with {process.returncode}: {tail(log)}")
            if self.run(ROUTER, "cat", "/proc/net/netfilter/nfnetlink_queue").strip():
                return
            time.sleep(0.05)
        raise Problem(f"{name} does not bind queue {QUEUE}: {tail(log)}")

    def queue_packets(self) -> int:
        """Give the packets that went into the queue since it was bound."""
        table = self.run(ROUTER, "cat", "/proc/net/netfilter/nfnetlink_queue").split()
        return int(table[7]) if len(table) > 7 else 0

    def traffic(self, binary: Path, flows: int, seconds: float, at_end=lambda: None) -> float:
        """Give packets per second that reach the client; calls at_end before the flows end."""
        args = [SERVER_ADDRESS, str(flows), str(seconds)]
        started = time.monotonic()
        server = subprocess.Popen(
            self.command(SERVER, str(binary), "server", *args),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        time.sleep(0.2)
        client = subprocess.Popen(
            self.command(CLIENT, str(binary), "client", *args), stderr=subprocess.PIPE, text=True
        )
        try:
            out, problem = server.communicate(timeout=TIMEOUT_S)
            if server.returncode:
                raise Problem(f"traffic failed after {time.monotonic() - started:.1f} s: {problem}")
            at_end()
            return float(out)
        except subprocess.TimeoutExpired:
            raise Problem("no packet comes through the router") from None
        finally:
            for process in (server, client):
                process.kill()
                process.wait()


def tail(log) -> str:
    """Give the last lines of a log."""
    log.seek(0)
    return " | ".join(log.read().strip().splitlines()[-3:])


def rss_kib(pid: int) -> int:
    """Give the resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise Problem(f"process {pid} is gone")
