"""The command line of run.py."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from . import apps, fec, sidekick, traces, web
from .apps import App
from .experiment import Programs, Setup, has_daemon
from .scenario import PRESETS, QDISCS, Scenario, parse_bytes

_DEFAULTS = Scenario()
_LINK_NUMBERS = {
    "loss1": ("PERCENT", "loss of the Wi-Fi hop, in both directions"),
    "delay1": ("MS", "one-way delay of the Wi-Fi hop"),
    "bw1": ("MBIT", "rate of the Wi-Fi hop"),
    "jitter1": ("MS", "jitter of the Wi-Fi hop, without reordering"),
    "loss2": ("PERCENT", "loss of the WAN"),
    "delay2": ("MS", "one-way delay of the WAN"),
    "bw2": ("MBIT", "rate of the WAN"),
    "jitter2": ("MS", "jitter of the WAN, without reordering"),
}


@dataclass(frozen=True)
class Plan:
    """What the command line asks for."""

    setups: list[Setup]
    json: Path | None
    keep: Path | None


class UsageError(Exception):
    """A command line that makes no sense, in words for the person who gave it."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def parse(arguments: list[str] | None = None) -> Plan:
    """Ends the program with one line and exit code 2 if the command line makes no sense."""
    try:
        return plan(arguments)
    except UsageError as error:
        _parser().exit(2, f"run.py: error: {error} (see run.py --help)\n")


def plan(arguments: list[str] | None) -> Plan:
    """What these words ask for. Raises UsageError."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        scenario = _scenario(options)
        loads = _loads(options, scenario)
        assists = _assists(options, loads)
        rivals = {load: _rivals(options, scenario, load, assists) for load in loads}
    except ValueError as error:
        raise UsageError(str(error)) from None
    if options.kill_daemon_after is not None and not any(map(has_daemon, assists)):
        raise UsageError("--kill-daemon-after needs --pemi or --sidekick")
    if options.restart_daemon_after is not None and options.kill_daemon_after is None:
        raise UsageError("--restart-daemon-after needs --kill-daemon-after")
    if options.capture and options.keep is None:
        raise UsageError("--capture needs --keep")
    cases = [(scenario, assist) for assist in assists]
    if options.lossless:
        cases.append((scenario.lossless(), "off"))
    setups = [
        Setup(
            scenario=case,
            app=load,
            beside=rivals[load],
            assist=assist,
            seed=seed,
            rt=options.rt,
            pemi_options=tuple(options.pemi_options.split()),
            kill_daemon_after_s=options.kill_daemon_after,
            restart_daemon_after_s=options.restart_daemon_after,
            capture=options.capture,
            programs=Programs(pemi=options.pemi_program),
        )
        for load in loads
        for seed in range(options.loss_seed, options.loss_seed + options.seeds)
        for _ in range(options.repeat)
        for case, assist in cases
    ]
    return Plan(setups=setups, json=options.json, keep=options.keep)


def _parser() -> _Parser:
    parser = _Parser(
        prog="run.py",
        description="Runs an application between a client and a server with a router and a "
        "lossy Wi-Fi hop in between, and measures it. Needs root.",
    )
    links = parser.add_argument_group("links (1: client-router, the Wi-Fi hop; 2: router-server)")
    links.add_argument("--preset", choices=PRESETS, help="named values; others given here win")
    for name, (unit, text) in _LINK_NUMBERS.items():
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

    runs = parser.add_argument_group("what is run")
    for name, text in (
        ("off", "a plain router"),
        ("pemi", "PEMI on the router"),
        ("pep", "a split-TCP proxy on the router"),
    ):
        runs.add_argument(
            f"--{name}",
            dest="assists",
            action="append_const",
            const=name,
            help=f"{text}; with several of these, one after the other with the same seeds",
        )
    runs.add_argument(
        "--fec",
        dest="assists",
        action="append",
        nargs=2,
        type=int,
        metavar=("K", "N"),
        help="an erasure code under the datagrams, N packets for K; nothing on the router",
    )
    runs.add_argument(
        "--sidekick",
        dest="assists",
        action="append",
        type=_interval,
        metavar="INTERVAL",
        help="the router's quACKs for the sender of media or upload: after packets (2p), after "
        "time (10ms), or adaptive",
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
    _output(parser.add_argument_group("output"), default=None)

    loads = parser.add_subparsers(dest="app", required=True, metavar="APP")
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
    _stacks(call, tuple(apps.STACKS))
    _stacks(page, web.STACKS)
    for load in (download, up, call, page, voice, dial):
        # Also accepted after the application, where one looks for it.
        _output(load, default=argparse.SUPPRESS)
    return parser


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


def _scenario(options: argparse.Namespace) -> Scenario:
    names = (*_LINK_NUMBERS, "loss1ge", "queue1", "queue2", "qdisc", "link", "ipv6")
    given = {name: getattr(options, name) for name in names if hasattr(options, name)}
    if "loss1ge" in given:
        given["loss1ge"] = tuple(given["loss1ge"])
    wan = options.mm_config and traces.read(options.mm_config)
    return Scenario.from_preset(options.preset, wan, **given)


def _assists(options: argparse.Namespace, loads: list[App]) -> list[str]:
    """By their names in results."""
    given = options.assists or ["off"]
    assists = [word if isinstance(word, str) else fec.name(*word) for word in given]
    for assist in assists:
        for load in loads:
            if assist == "pep" and load.stack != "tcp":
                raise ValueError(f"--pep helps flows over TCP, and {load.name} runs over QUIC")
            if assist.startswith("fec-") and load.stack == "tcp":
                raise ValueError(f"--fec carries UDP, and {load.name} runs over TCP")
            if assist.startswith("sidekick-") and not load.sidekick:
                raise ValueError(
                    f"--sidekick needs a sender that asks for it: media or upload, not {load.name}"
                )
    return list(dict.fromkeys(assists))


def _loads(options: argparse.Namespace, scenario: Scenario) -> list[App]:
    if options.app == "media":
        if options.cc is not None:
            raise ValueError("--cc: media has no congestion control")
        return [apps.media(options.seconds, options.payload, options.interval_ms)]
    slowest = min(scenario.bw1, scenario.bw2)
    if options.app == "upload":
        sizes = [parse_bytes(size) for size in options.bytes or ["5MB"]]
        return [apps.upload(size, options.cc, slowest) for size in sizes]
    stacks = list(dict.fromkeys(options.stacks or options.all_stacks[:1]))
    if "all" in stacks:
        stacks = options.all_stacks
    if options.app == "rtc":
        shape = (options.seconds, options.fps, options.kbps)
        return [apps.rtc(*shape, options.cc, stack) for stack in stacks]
    if options.app == "connect":
        return [apps.connect(options.count, options.cc, stack) for stack in stacks]
    sizes = [parse_bytes(size) for size in options.bytes or ["5MB"]]
    make = web.http if options.app == "http" else apps.goodput
    return [make(size, options.cc, slowest, stack) for stack in stacks for size in sizes]


def _rivals(
    options: argparse.Namespace, scenario: Scenario, load: App, assists: list[str]
) -> tuple[App, ...]:
    names = options.beside or []
    if not names:
        return ()
    if load.bytes is None or load.name == "upload":
        raise ValueError(f"--beside is for downloads, and {load.name} is none")
    if any(assist.startswith("fec-") for assist in assists):
        raise ValueError("--beside and --fec: the code is for one flow's whole path")
    slowest = min(scenario.bw1, scenario.bw2)
    return tuple(
        web.http(load.bytes, None, slowest, name)
        if name == "tcp"
        else apps.goodput(load.bytes, None, slowest, name)
        for name in names
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


def _interval(text: str) -> str:
    try:
        return sidekick.name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _priority(text: str) -> int:
    value = int(text)
    if not 0 <= value <= 99:
        raise argparse.ArgumentTypeError("must be between 0 and 99")
    return value
