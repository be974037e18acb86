# SPDX-License-Identifier: GPL-2.0-or-later
"""A router made of network namespaces with the built daemon on it, and flows through it."""

import ctypes
import itertools
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEMI = ROOT / "target/debug/pemi"
PORT, QUEUE = 4433, 78
CLONE_NEWNET = 0x40000000
# For anything at all, in seconds
PATIENCE = 20
# One address may not have the whole table.
CLIENTS = [f"10.78.0.{host}" for host in range(2, 52)]
SERVER = "10.78.1.2"


def long(kind: int, length: int) -> bytes:
    """A datagram of QUIC version 1 with a long header: 0 Initial, 2 Handshake."""
    head = bytes([0xC3 | kind << 4, 0, 0, 0, 1, 4, 1, 2, 3, 4, 4, 9, 9, 9, 9])
    if kind == 0:
        head += b"\0"
    body = length - len(head) - 2
    return head + (0x4000 | body).to_bytes(2, "big") + bytes(at * 31 % 256 for at in range(body))


class Lab:
    """Client, router and server; they go at the end of `with`."""

    _numbers = itertools.count()

    def __init__(self):
        self.name = f"pemi-fleet-{os.getpid()}-{next(self._numbers)}"
        self._end = ExitStack()

    def __enter__(self) -> "Lab":
        self.folder = Path(self._end.enter_context(tempfile.TemporaryDirectory()))
        try:
            for part in "crs":
                self._run("ip", "netns", "add", self._at(part))
                self._end.callback(self._run, "ip", "netns", "del", self._at(part))
                self._ip(part, "link set lo up")
            self._zone("c", "lan0", 0, CLIENTS)
            self._zone("s", "wan0", 1, [SERVER])
            self.inside("r", lambda: Path("/proc/sys/net/ipv4/ip_forward").write_text("1"))
        except BaseException:
            self._end.close()
            raise
        return self

    def __exit__(self, *_):
        self._end.close()

    def _at(self, part: str) -> str:
        return f"{self.name}-{part}"

    def _run(self, *command: str, text: str | None = None):
        subprocess.run(command, input=text, text=True, check=True, capture_output=True)

    def _ip(self, part: str, command: str):
        self._run("ip", "-n", self._at(part), *command.split())

    def _zone(self, part: str, device: str, number: int, addresses: list[str]):
        self._ip("r", f"link add {device} type veth peer name eth0 netns {self._at(part)}")
        self._ip("r", f"addr add 10.78.{number}.1/24 dev {device}")
        self._ip("r", f"link set {device} up")
        for address in addresses:
            self._ip(part, f"addr add {address}/24 dev eth0")
        self._ip(part, "link set eth0 up")
        self._ip(part, f"route add default via 10.78.{number}.1")

    def inside(self, part: str, work: Callable):
        """Does something in a namespace; sockets stay where they were opened."""
        result = []

        def enter():
            libc = ctypes.CDLL(None, use_errno=True)
            with Path(f"/var/run/netns/{self._at(part)}").open() as place:
                if libc.setns(place.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            result.append(work())

        # The thread goes, and the process is where it was.
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        return result[0]

    def start(self, *options: str) -> Path:
        """The daemon, ready for packets; gives its control socket."""
        config = self.folder / "config.json"
        config.write_text(json.dumps({"queue": QUEUE, "port": PORT, "device": ["lan0"]}))
        command = [PEMI, "rules", "--iptables", "--config", config]
        rules = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        enter = ["ip", "netns", "exec", self._at("r")]
        self._run(*enter, "iptables-nft-restore", "--noflush", text=rules)
        control = self.folder / "control.sock"
        command = [*enter, PEMI, "run", "--config", config, "--control", control, *options]
        log = self._end.enter_context((self.folder / "log").open("w"))
        # `ip netns exec` becomes the daemon, it does not fork.
        self.daemon = subprocess.Popen(command, stdout=log, stderr=log)
        self._end.callback(self.daemon.wait)
        self._end.callback(self.daemon.terminate)
        self.until(control, lambda _: True)
        return control

    def ask(self, control: Path, question: dict) -> dict:
        with socket.socket(socket.AF_UNIX) as stream:
            stream.connect(str(control))
            stream.sendall(json.dumps(question).encode() + b"\n")
            return json.loads(stream.makefile().readline())["data"]

    def until(self, control: Path, wanted: Callable[[dict], bool]) -> dict:
        """Asks for the status until it is as wanted."""
        end = time.monotonic() + PATIENCE
        while True:
            said = None
            try:
                said = self.ask(control, {"method": "status"})
                if wanted(said):
                    return said
            except OSError:
                pass
            assert time.monotonic() < end, (said, (self.folder / "log").read_text())
            time.sleep(0.02)

    def open_flows(self, count: int, answers: int = 1):
        """Connections that both ends have spoken on, one after the other; the server with so many
        datagrams."""

        def bound(address: str, port: int) -> socket.socket:
            found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            found.settimeout(PATIENCE)
            found.bind((address, port))
            return found

        with self.inside("s", lambda: bound(SERVER, PORT)) as server:
            for number in range(count):
                address, port = CLIENTS[number % len(CLIENTS)], 20_000 + number
                with self.inside("c", lambda a=address, p=port: bound(a, p)) as client:
                    client.sendto(long(0, 1200), (SERVER, PORT))
                    peer = server.recvfrom(2048)[1]
                    for _ in range(answers):
                        server.sendto(long(0, 1200), peer)
                        client.recv(2048)
                    client.sendto(long(2, 100), (SERVER, PORT))
                    server.recv(2048)
