# SPDX-License-Identifier: GPL-2.0-or-later
"""A client and a server on either side of a router's network namespace, links emulated."""

import json
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
APPS = Path(os.environ.get("PEMI_APPS", TOP / "test/target/release"))
PEMI = os.environ.get("PEMI", TOP / "target/release/pemi")
SERVER = "10.77.1.2"


class Space:
    """A network namespace that lives as long as its process, and that as long as this one."""

    def __init__(self, pid: int | None = None):
        self.process = None
        if pid is None:
            self.process = subprocess.Popen(
                ["unshare", "--net", "sh", "-c", "echo; exec cat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            self.process.stdout.readline()
            pid = self.process.pid
        self.pid = pid

    def command(self, *words: object) -> list[str]:
        return ["nsenter", "-t", str(self.pid), "-n", *map(str, words)]

    def run(self, line: str) -> None:
        subprocess.run(self.command(*line.split()), check=True, capture_output=True)

    def close(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()


class Lab:
    """client - Wi-Fi hop - router - WAN - server; `lan` is what the router has already."""

    def __init__(self, router: Space, lan: str | None = None, port: int = 443, queue: int = 5443):
        self.router, self.port = router, port
        self.client, self.wifi, self.wan, self.server = (Space() for _ in range(4))
        self.processes: list[subprocess.Popen] = []
        net = "192.168.1" if lan else "10.77.0"
        self.client_address = f"{net}.2"
        if lan:  # the far end of the LAN device
            router.run(f"ip link set dev {lan} netns {self.wifi.pid}")
            self.wifi.run(f"ip link set dev {lan} name left up")
        else:
            self.pair(router, "lan0", self.wifi, "left")
            router.run(f"ip addr add {net}.1/24 dev lan0")
        self.pair(self.wifi, "right", self.client, "eth0")
        self.pair(router, "wan0", self.wan, "left")
        self.pair(self.wan, "right", self.server, "eth0")
        router.run("ip addr add 10.77.1.1/24 dev wan0")
        router.run("sysctl -qw net.ipv4.ip_forward=1")
        for space, address in ((self.client, self.client_address), (self.server, SERVER)):
            space.run(f"ip addr add {address}/24 dev eth0")
            space.run(f"ip route add default via {address[:-1]}1")
        self.attach(port, queue)
        self.link(self.wifi, "--delay", 2, "--loss-ab", 1.5, "--rate", 60)
        self.link(self.wan, "--delay", 15, "--rate", 30)

    def attach(self, port: int, queue: int) -> None:
        """The daemon's own rules; many a kernel has queues for iptables only."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
            json.dump({"port": [port], "queue": queue}, config)
            config.flush()
            rules = subprocess.check_output([PEMI, "rules", "--iptables", "--config", config.name])
        command = self.router.command("iptables-nft-restore", "--noflush")
        subprocess.run(command, input=rules, check=True)

    @staticmethod
    def pair(one: Space, name: str, other: Space, far: str) -> None:
        one.run(f"ip link add {name} type veth peer name {far} netns {other.pid}")
        one.run(f"ip link set dev {name} up")
        other.run(f"ip link set dev {far} up")

    def start(self, space: Space, *words: object, **options) -> subprocess.Popen:
        words = ("setpriv", "--pdeathsig", "KILL", *words)  # nothing stays behind
        process = subprocess.Popen(space.command(*words), **options)
        self.processes.append(process)
        return process

    def link(self, space: Space, *options: object) -> None:
        words = [APPS / "linkem", *options, "--rt", 0, "--ready", "left", "right"]
        process = self.start(space, *words, stdout=subprocess.PIPE)
        assert b"ready" in process.stdout.readline()

    def serve(self) -> None:
        words = [APPS / "goodput", "server", "--listen", f"{SERVER}:{self.port}"]
        self.start(self.server, *words, stdout=subprocess.DEVNULL)

    def download(self, size: int) -> subprocess.Popen:
        to = f"{SERVER}:{self.port}"
        words = [APPS / "goodput", "client", "--connect", to, "--bytes", size, "--timeout", 600]
        return self.start(self.client, *words, stdout=subprocess.DEVNULL)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for space in (self.client, self.wifi, self.wan, self.server):
            space.close()


class Daemon:
    """The daemon on a router without procd, asked through its control socket."""

    def __init__(self, router: Space, folder: Path, **settings):
        self.control = folder / "control.sock"
        self.control.unlink(missing_ok=True)
        config = folder / "config.json"
        config.write_text(json.dumps({"control": str(self.control), **settings}))
        words = router.command(PEMI, "run", "--config", config)
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        until = time.monotonic() + 10
        while not self.control.exists() and time.monotonic() < until:
            time.sleep(0.02)

    def ask(self, method: str, **arguments) -> dict:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.control))
            connection.sendall(json.dumps({"method": method, **arguments}).encode() + b"\n")
            return json.loads(connection.makefile().readline())["data"]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
