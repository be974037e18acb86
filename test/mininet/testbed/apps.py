"""The programs whose traffic crosses the links, and how to run them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PORT = 4433
_CCS = ("cubic", "newreno", "bbr")


@dataclass(frozen=True)
class Stack:
    """A QUIC stack that our programs are built on, both sides alike."""

    # What the names of the programs end in.
    suffix: str
    # Congestion controllers, the default first.
    ccs: tuple[str, ...]


# The first is the default.
STACKS = {
    "quinn": Stack("", _CCS),
    "quiche": Stack("-quiche", _CCS),
    "quicgo": Stack("-quicgo", ("newreno",)),
}


def choose_cc(stack: str, ccs: tuple[str, ...], wanted: str | None) -> str:
    """The congestion controller to use, if the stack has it."""
    if wanted is None:
        return ccs[0]
    if wanted not in ccs:
        raise ValueError(f"--cc {wanted}: {stack} has only {', '.join(ccs)}")
    return wanted


@dataclass(frozen=True)
class App:
    """One thing to do over the links."""

    name: str
    stack: str
    program: str
    client_options: tuple[str, ...]
    cc: str
    timeout_s: float
    label: str
    bytes: int | None = None
    seconds: float = 0.0

    def server(self, directory: Path, address: str, rt: int) -> list[str]:
        """The server's command line."""
        return self._line(directory, "server", "--listen", address, ("--cc", self.cc), rt)

    def client(self, directory: Path, address: str, rt: int, result: Path) -> list[str]:
        """The client's command line; it writes its measurements to `result`."""
        line = self._line(directory, "client", "--connect", address, self.client_options, rt)
        return [*line, "--json", str(result)]

    def _line(
        self, directory: Path, role: str, option: str, address: str, more: tuple[str, ...], rt: int
    ) -> list[str]:
        return [str(directory / self.program), role, option, address, *more, "--rt", str(rt)]


def goodput(size: int, cc: str | None, slowest_mbit: float, stack: str = "quinn") -> App:
    """A download. `slowest_mbit` is the rate of the slowest link."""
    cc = choose_cc(stack, STACKS[stack].ccs, cc)
    # Unassisted flows at some per cent of loss get a tenth of the link and less.
    patience_s = 60 + size * 8 / (slowest_mbit * 1e6) * 40
    give_up = ("--timeout", f"{patience_s:.0f}")
    return App(
        name="goodput",
        stack=stack,
        program=f"goodput{STACKS[stack].suffix}",
        client_options=("--bytes", str(size), *give_up),
        cc=cc,
        # The program's own message is the better one.
        timeout_s=patience_s + 10,
        label=f"{stack}, download of {human_bytes(size)}",
        bytes=size,
    )


def rtc(seconds: float, fps: float, kbps: float, cc: str | None, stack: str = "quinn") -> App:
    """A video call, from the server to the client."""
    cc = choose_cc(stack, STACKS[stack].ccs, cc)
    shape = ("--seconds", f"{seconds:g}", "--fps", f"{fps:g}", "--kbps", f"{kbps:g}")
    return App(
        name="rtc",
        stack=stack,
        program=f"rtc{STACKS[stack].suffix}",
        client_options=shape,
        cc=cc,
        timeout_s=60 + seconds * 4,
        label=f"{stack}, call of {seconds:g} s",
        seconds=seconds,
    )


def endpoint(ip: str) -> str:
    """`ip:port`, as programs want it."""
    return f"[{ip}]:{PORT}" if ":" in ip else f"{ip}:{PORT}"


def human_bytes(size: int) -> str:
    """`5 MB`, for people."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:g} {unit}"
    return f"{size} B"
