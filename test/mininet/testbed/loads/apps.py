# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs whose traffic crosses the links, and how to run them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

PORT = 4433
_CCS = ("cubic", "newreno", "bbr")


@dataclass(frozen=True)
class Stack:
    """A QUIC stack that our programs are built on, both sides alike."""

    # What the names of the programs end in.
    suffix: str
    # Congestion controllers, the default first.
    ccs: tuple[str, ...]
    # Whether it has a call as well as a download.
    calls: bool = True


# The first is the default.
STACKS = {
    "quinn": Stack("", _CCS),
    "quiche": Stack("-quiche", _CCS),
    "quicgo": Stack("-quicgo", ("newreno",)),
    "s2n": Stack("-s2n", ("cubic", "bbr"), calls=False),
}
# Those that can make a call.
CALL_STACKS = tuple(name for name, stack in STACKS.items() if stack.calls)
# What connections are made of.
CONNECT_STACKS = ("quinn", "quinn-0rtt", "tcp")


@dataclass(frozen=True)
class Place:
    """Where a run happens."""

    # The folder with the built programs.
    programs: Path
    # The server's, as `ip:port`.
    address: str
    rt: int
    # A folder of this run's own.
    logs: Path
    # For a sender on the Wi-Fi that the router helps.
    sender_options: tuple[str, ...] = ()

    @property
    def result(self) -> Path:
        """Where a client writes its measurements."""
        return self.logs / "app.json"


@dataclass(frozen=True, kw_only=True)
class App:
    """One thing to do over the links."""

    name: str
    stack: str
    # Congestion control of the server.
    cc: str
    label: str
    timeout_s: float
    # Of ours, as they are called in the folder of built programs.
    programs: tuple[str, ...]
    # Of others, from the system's packages.
    tools: tuple[str, ...] = ()
    # Of others, from a package registry.
    libraries: tuple[Path, ...] = ()
    bytes: int | None = None
    # So many of them, one after the other.
    count: int = 1
    # How long it takes whatever the link, if that is known.
    seconds: float = 0.0
    # Whether the router may send copies of what comes down to the client.
    scored: ClassVar[bool] = True
    # Whether the client is a sender that asks the router for quACKs, if told to.
    asks_for_quacks: ClassVar[bool] = False

    @property
    def over_tcp(self) -> bool:
        """Whether its flows are TCP's, in which what is resent is no copy: headers differ."""
        return self.stack == "tcp"

    def server(self, place: Place) -> list[str]:
        """The server's command line."""
        raise NotImplementedError

    def client(self, place: Place) -> list[str]:
        """The client's command line."""
        raise NotImplementedError

    def measured(self, place: Place, output: str) -> dict[str, object]:
        """What the client measured, once it has ended well; `output` is what it printed."""
        own = json.loads(place.result.read_text())
        # What the result says of itself stands beside the metrics, not among them.
        return {key: own[key] for key in own if key not in ("app", "stack", "bytes")}

    def completed(self, metrics: dict[str, object], _output: str) -> dict[str, object]:
        """With what the server measured, once it has ended; `_output` is what it printed."""
        return metrics


@dataclass(frozen=True, kw_only=True)
class OwnApp(App):
    """One of ours: both sides are one program with one set of options."""

    client_options: tuple[str, ...]
    server_options: tuple[str, ...] = ()

    def server(self, place: Place) -> list[str]:
        where = ("--listen", place.address, "--cc", self.cc)
        return self._line(place, "server", *where, *self.server_options)

    def client(self, place: Place) -> list[str]:
        where = ("--connect", place.address, "--json", str(place.result))
        return self._line(place, "client", *where, *self.client_options)

    def _line(self, place: Place, *options: str) -> list[str]:
        return [str(place.programs / self.programs[0]), *options, "--rt", str(place.rt)]


def goodput(size: int, cc: str | None, slowest_mbit: float, stack: str = "quinn") -> App:
    """A download. `slowest_mbit` is the rate of the slowest link."""
    patience_s = patience(size, slowest_mbit)
    return OwnApp(
        name="goodput",
        stack=stack,
        cc=choose_cc(stack, STACKS[stack].ccs, cc),
        programs=(f"goodput{STACKS[stack].suffix}",),
        client_options=("--bytes", str(size), "--timeout", f"{patience_s:.0f}"),
        # The program's own message is the better one.
        timeout_s=patience_s + 10,
        label=f"{stack}, download of {human_bytes(size)}",
        bytes=size,
    )


@dataclass(frozen=True, kw_only=True)
class Upload(OwnApp):
    """From the client to the server; the client is what congestion control is about."""

    # Towards the client there are only acknowledgements.
    scored: ClassVar[bool] = False
    asks_for_quacks: ClassVar[bool] = True

    def client(self, place: Place) -> list[str]:
        return [*super().client(place), "--cc", self.cc, *place.sender_options]


def upload(size: int, cc: str | None, slowest_mbit: float) -> App:
    """As goodput, the other way."""
    patience_s = patience(size, slowest_mbit)
    return Upload(
        name="upload",
        stack="quinn",
        cc=choose_cc("quinn", _CCS, cc),
        programs=("upload",),
        client_options=("--bytes", str(size), "--timeout", f"{patience_s:.0f}"),
        timeout_s=patience_s + 10,
        label=f"quinn, upload of {human_bytes(size)}",
        bytes=size,
    )


def rtc(seconds: float, fps: float, kbps: float, cc: str | None, stack: str = "quinn") -> App:
    """A video call, from the server to the client."""
    shape = ("--seconds", f"{seconds:g}", "--fps", f"{fps:g}", "--kbps", f"{kbps:g}")
    return OwnApp(
        name="rtc",
        stack=stack,
        cc=choose_cc(stack, STACKS[stack].ccs, cc),
        programs=(f"rtc{STACKS[stack].suffix}",),
        client_options=shape,
        timeout_s=60 + seconds * 4,
        label=f"{stack}, call of {seconds:g} s",
        seconds=seconds,
    )


@dataclass(frozen=True, kw_only=True)
class Media(App):
    """Audio-like packets from the client to the server, which measures."""

    # Towards the client there are only messages about what is missing.
    scored: ClassVar[bool] = False
    asks_for_quacks: ClassVar[bool] = True
    client_options: tuple[str, ...]

    def server(self, place: Place) -> list[str]:
        return self._line(place, "server", "--listen", place.address)

    def client(self, place: Place) -> list[str]:
        where = ("--connect", place.address, *place.sender_options)
        return self._line(place, "client", *where, *self.client_options)

    def _line(self, place: Place, *options: str) -> list[str]:
        return [str(place.programs / self.programs[0]), *options, "--rt", str(place.rt)]

    def measured(self, place: Place, output: str) -> dict[str, object]:
        return said(output)

    def completed(self, metrics: dict[str, object], output: str) -> dict[str, object]:
        return {**said(output), **metrics}


def said(output: str) -> dict[str, object]:
    """The last line of JSON that a program printed."""
    lines = [line for line in output.splitlines() if line.startswith("{")]
    own = json.loads(lines[-1]) if lines else {}
    return {key: own[key] for key in own if key != "app"}


def media(seconds: float, payload: int, interval_ms: float) -> App:
    """A call as voice is sent: packets of one size and one distance, from the client."""
    shape = (
        "--seconds",
        f"{seconds:g}",
        "--bytes",
        str(payload),
        "--interval-ms",
        f"{interval_ms:g}",
    )
    return Media(
        name="media",
        stack="udp",
        cc="none",
        programs=("media",),
        client_options=shape,
        timeout_s=60 + seconds * 2,
        label=f"voice of {seconds:g} s",
        seconds=seconds,
    )


def connect(count: int, cc: str | None, stack: str) -> App:
    """Connections one after the other."""
    which = ("--stack", stack)
    return OwnApp(
        name="connect",
        stack=stack,
        cc=choose_cc(stack, _CCS, cc),
        programs=("connect",),
        client_options=(*which, "--count", str(count)),
        server_options=which,
        # Each gives up by itself, after 10 s.
        timeout_s=60 + 12 * count,
        label=f"{count} connections with {stack}",
        # A few round trips each, and the time to say goodbye.
        seconds=0.6 * count,
    )


def patience(size: int, slowest_mbit: float) -> float:
    """Seconds after which a download is given up."""
    # Unassisted flows at some per cent of loss get a tenth of the link and less.
    return 60 + size * 8 / (slowest_mbit * 1e6) * 40


def choose_cc(stack: str, ccs: Iterable[str], wanted: str | None) -> str:
    """The congestion controller to use, if the stack has it."""
    there = list(ccs)
    if wanted is None:
        return there[0]
    if wanted not in there:
        raise ValueError(f"--cc {wanted}: {stack} has only {', '.join(there)}")
    return wanted


def endpoint(ip: str, port: int = PORT) -> str:
    """`ip:port`, as programs want it."""
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def human_bytes(size: int) -> str:
    """`5 MB`, for people."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size} B"
