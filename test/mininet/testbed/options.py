# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of run.py: their names, their values and what its help says of them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NoReturn

from .assists.assist import Assist
from .assists.registry import ASSISTS
from .loads import apps, web
from .world.programs import Programs
from .world.scenario import PRESETS, QDISCS, Scenario

_DEFAULTS = Scenario()
LINK_NUMBERS = {
    "loss1": ("PERCENT", "loss of the Wi-Fi hop, in both directions"),
    "delay1": ("MS", "one-way delay of the Wi-Fi hop"),
    "bw1": ("MBIT", "rate of the Wi-Fi hop"),
    "jitter1": ("MS", "jitter of the Wi-Fi hop, without reordering"),
    "loss2": ("PERCENT", "loss of the WAN"),
    "delay2": ("MS", "one-way delay of the WAN"),
    "bw2": ("MBIT", "rate of the WAN"),
    "jitter2": ("MS", "jitter of the WAN, without reordering"),
}


class UsageError(Exception):
    """A command line that makes no sense, in words for the person who gave it."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


class _Ask(argparse.Action):
    """Notes which assists are asked for, in the order of the command line."""

    def __init__(self, *, kind: type[Assist], **arguments: object) -> None:
        super().__init__(**arguments)
        self._kind = kind

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        options: argparse.Namespace,
        values: object,
        _option: str | None = None,
    ) -> None:
        words = values if isinstance(values, list) else [values]
        options.assists = [*(options.assists or []), (self._kind, words)]


def parser() -> argparse.ArgumentParser:
    """Raises UsageError for words that it does not know."""
    whole = _Parser(
        prog="run.py",
        description="Runs an application between a client and a server with a router and a "
        "lossy Wi-Fi hop in between, and measures it. Needs root.",
    )
    _links(whole.add_argument_group("links (1: client-router, the Wi-Fi hop; 2: router-server)"))
    _runs(whole.add_argument_group("what is run"))
    _output(whole.add_argument_group("output"), default=None)
    _loads(whole)
    return whole


def _links(links: argparse._ActionsContainer) -> None:
    links.add_argument("--preset", choices=PRESETS, help="named values; others given here win")
    for name, (unit, text) in LINK_NUMBERS.items():
        links.add_argument(
            f"--{name}",
            type=float,
            metavar=unit,
            default=argparse.SUPPRESS,
            help=f"{text} (default: {getattr(_DEFAULTS, name):g})",
        )
    links.add_argument(
        "--loss1ge",
        type=float,
        nargs=4,
        metavar=("P", "R", "1-H", "1-K"),
        default=argparse.SUPPRESS,
        help="Gilbert-Elliott loss of the Wi-Fi hop, in percent, in tc netem's order",
    )
    links.add_argument(
        "--outages1",
        type=float,
        nargs=2,
        metavar=("GAP", "LENGTH"),
        default=argparse.SUPPRESS,
        help="the Wi-Fi hop loses everything for LENGTH ms, GAP ms after the last time: means of "
        "exponential distributions; in place of its other losses",
    )
    links.add_argument(
        "--wifi",
        dest="wifi1",
        metavar="PRESET",
        default=argparse.SUPPRESS,
        help="the Wi-Fi hop as a radio channel with block ack, retries and fades, in place of its "
        "rate, delay, queue and losses: a preset of test/air/presets.toml, or a file like one",
    )
    for link in (1, 2):
        links.add_argument(
            f"--queue{link}",
            metavar="SIZE",
            default=argparse.SUPPRESS,
            help="queue of this link: 64KiB, or 1bdp of the whole path "
            f"(default: {getattr(_DEFAULTS, f'queue{link}')})",
        )
    links.add_argument(
        "--qdisc",
        choices=QDISCS,
        default=argparse.SUPPRESS,
        help="queue discipline of link 2 (default: droptail, of which tbf is another name; cake "
        "only with --link netem)",
    )
    links.add_argument(
        "--trace1",
        type=Path,
        metavar="FILE.toml",
        help="the Wi-Fi hop by traces, as --mm-config; in place of --bw1 and --delay1, of those "
        "that were recorded",
    )
    links.add_argument(
        "--mm-config",
        type=Path,
        metavar="FILE.toml",
        help="link 2 by traces, also the name of one in test/mininet/traces; in place of --bw2 "
        "and, where they have delays, --delay2",
    )
    links.add_argument(
        "--link",
        choices=("linkem", "netem"),
        default=argparse.SUPPRESS,
        help="what emulates the links (default: linkem); netem needs the kernel's module, its "
        "losses are not the same from run to run, and copies cannot be scored",
    )
    links.add_argument(
        "--ipv6", action="store_true", default=argparse.SUPPRESS, help="IPv6 instead of IPv4"
    )


def _runs(runs: argparse._ActionsContainer) -> None:
    for kind in ASSISTS:
        runs.add_argument(
            f"--{kind.option}", dest="assists", action=_Ask, kind=kind, **kind.argument
        )
    runs.add_argument("--lossless", action="store_true", help="also run without loss, PEMI off")
    runs.add_argument(
        "--loss-seed", type=int, default=1, help="first seed of the losses (default: %(default)s)"
    )
    runs.add_argument("--seeds", type=_positive, default=1, help="how many seeds (default: 1)")
    runs.add_argument("--repeat", type=_positive, default=1, help="runs of each seed (default: 1)")
    runs.add_argument(
        "--cc",
        choices=("cubic", "newreno", "bbr"),
        help="congestion control of the sender (default: the stack's first, which is cubic for "
        "all but quicgo)",
    )
    runs.add_argument(
        "--rt",
        type=_priority,
        default=50,
        help="real-time priority of the emulated links (0: none; default: %(default)s); the "
        "applications get 40 less",
    )
    runs.add_argument(
        "--pemi-options", default="", metavar="WORDS", help="more options for `pemi run`"
    )
    runs.add_argument(
        "--pemi-program",
        type=Path,
        metavar="FILE",
        default=Programs.pemi,
        help="another build of the daemon than this one's",
    )
    runs.add_argument(
        "--kill-daemon-after", type=float, metavar="S", help="SIGKILL the daemon in mid-run"
    )
    runs.add_argument(
        "--restart-daemon-after", type=float, metavar="S", help="start it again so long after that"
    )
    runs.add_argument(
        "--beside",
        action="append",
        choices=(*apps.STACKS, "tcp"),
        help="a download of as many bytes beside a download, by this stack, on a port that the "
        "router does not help; may be repeated. Measured are the shares while all run",
    )
    runs.add_argument(
        "--capture",
        action="store_true",
        help="with --keep: also keep what passes between router and Wi-Fi hop, for `pemi replay`",
    )


def _loads(whole: argparse.ArgumentParser) -> None:
    loads = whole.add_subparsers(dest="app", required=True, metavar="APP")
    download = loads.add_parser("goodput", help="download a number of bytes")
    download.add_argument("--bytes", action="append", default=None, help="5MB; may be repeated")
    up = loads.add_parser("upload", help="upload a number of bytes")
    up.add_argument("--bytes", action="append", default=None, help="5MB; may be repeated")
    call = loads.add_parser("rtc", help="a video call")
    call.add_argument("--seconds", type=float, default=20)
    call.add_argument("--fps", type=float, default=30)
    call.add_argument("--kbps", type=float, default=3000)
    page = loads.add_parser("http", help="download a number of bytes over HTTP")
    page.add_argument("--bytes", action="append", default=None, help="5MB; may be repeated")
    voice = loads.add_parser("media", help="a voice call, of which the client is the sender")
    voice.add_argument("--seconds", type=_time, default=60)
    voice.add_argument("--bytes", dest="payload", type=_positive, default=240, help="of a packet")
    voice.add_argument("--interval-ms", type=_time, default=20, help="from packet to packet")
    dial = loads.add_parser("connect", help="how soon a new connection has an answer")
    dial.add_argument("--count", type=_positive, default=20, help="how many (default: %(default)s)")
    _stacks(dial, apps.CONNECT_STACKS)
    _stacks(download, tuple(apps.STACKS))
    _stacks(call, apps.CALL_STACKS)
    _stacks(page, web.STACKS)
    for load in (download, up, call, page, voice, dial):
        # Also accepted after the application, where one looks for it.
        _output(load, default=argparse.SUPPRESS)


def _stacks(load: argparse.ArgumentParser, names: tuple[str, ...]) -> None:
    load.add_argument(
        "--stack",
        dest="stacks",
        action="append",
        choices=(*names, "all"),
        help=f"who speaks (default: {names[0]}); may be repeated",
    )
    load.set_defaults(all_stacks=names)


def _output(group: argparse._ActionsContainer, default: object) -> None:
    group.add_argument(
        "--json", type=Path, metavar="FILE", default=default, help="where the result goes"
    )
    group.add_argument(
        "--keep", type=Path, metavar="DIR", default=default, help="keep each run's logs there"
    )


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _time(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError("must be more than 0")
    return value


def _priority(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 99:
        raise argparse.ArgumentTypeError("must be between 0 and 99")
    return value
