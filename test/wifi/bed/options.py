# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of run.py."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from testbed.loads import apps
from testbed.loads.apps import App
from testbed.world.scenario import ScenarioError, parse_bytes

from . import presets, setups, web
from .setups import NETWORKS, Lab, Setup
from .troubles import TROUBLES

# Those that the guest has; quiche's are large and nothing here asks for them.
STACKS = ("quinn", "quicgo", "s2n")
CALL_STACKS = tuple(name for name in STACKS if name in apps.CALL_STACKS)
ASSISTS = {
    "off": "nothing on the router",
    "pemi": "PEMI on the router, as --pemi-options say",
    "infer": "PEMI that infers losses",
    "radio": "PEMI that asks its radio for losses",
    "lossless": "as off, and nothing fails on the air",
}
SECURITIES = ("open", "wpa2")
# Debian's, and that of its backports.
KERNELS = ("6.1", "6.12")
# Of the guest's processor: that of a usual router, or the most that the translator can count.
MIPS = (500, 1000)


@dataclass(frozen=True)
class Plan:
    """What the command line asks for."""

    setups: list[Setup]
    jobs: int
    json: Path | None
    keep: Path | None


def parse(arguments: list[str] | None = None) -> Plan:
    """Ends the program with exit code 2 if the command line makes no sense."""
    whole = _parser()
    options = whole.parse_args(arguments)
    known = presets.known()
    try:
        loads = _loads(options)
    except (ScenarioError, ValueError) as error:
        whole.error(str(error))
    every = "all" in options.preset
    names = list(presets.read()) if every else list(dict.fromkeys(options.preset))
    made = [
        Setup(
            lab=lab(known[name], options.kernel, options.security, _wan(options), options.clients),
            preset=known[name],
            app=load,
            assist=assist,
            seed=seed,
            pemi_options=options.pemi_options,
            air=options.air and options.air.read_text(),
            trouble=trouble,
            clients=options.clients,
        )
        for name in names
        for load in loads
        for seed in range(options.loss_seed, options.loss_seed + options.seeds)
        for assist in options.assists or ["off"]
        for trouble in options.trouble or [None]
    ]
    _check(whole, options, made)
    return Plan(made, options.jobs, options.json, options.keep)


def _check(whole: argparse.ArgumentParser, options: argparse.Namespace, made: list[Setup]) -> None:
    if options.network == "ipv6" and any(
        isinstance(setup.app, setups.Measurement) or setup.preset.neighbours for setup in made
    ):
        whole.error("--network ipv6: echo, probe and neighbours have addresses of IPv4 only")
    if options.clients > 1 and options.app not in ("goodput", "upload", "rtc"):
        whole.error("--clients: goodput, upload or rtc")


def lab(
    preset: presets.Preset, kernel: str, security: str, wan: dict[str, object], clients: int = 1
) -> Lab:
    """What this preset needs around it."""
    return Lab(
        kernel=kernel,
        security=security,
        access_points=preset.access_points,
        stations=max(preset.stations, clients),
        sleeps=preset.sleeps,
        **wan,
    )


def _wan(options: argparse.Namespace) -> dict[str, object]:
    return {name: getattr(options, name) for name in ("bw2", "delay2", "queue2", "mips", "network")}


def _parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser(
        prog="run.py",
        description="Runs an application over Linux' own 802.11 stack in a guest whose clock "
        "counts instructions, with PEMI on its access point or without.",
    )
    names = (*presets.known(), "all")
    whole.add_argument(
        "--preset", action="append", required=True, choices=names, help="the air; may be repeated"
    )
    whole.add_argument(
        "--air",
        type=Path,
        metavar="FILE.toml",
        help="this air in the lab of the preset: a file in the form of one preset",
    )
    for name, text in ASSISTS.items():
        whole.add_argument(
            f"--{name}", dest="assists", action="append_const", const=name, help=text
        )
    default = Lab()
    whole.add_argument("--bw2", type=float, metavar="MBIT", default=default.bw2)
    whole.add_argument("--delay2", type=float, metavar="MS", default=default.delay2, help="one way")
    whole.add_argument(
        "--queue2",
        type=int,
        metavar="PACKETS",
        default=default.queue2,
        help="of the WAN, those under way among them (default: %(default)s)",
    )
    whole.add_argument("--mips", type=int, choices=MIPS, default=default.mips)
    whole.add_argument("--security", choices=SECURITIES, default=default.security)
    whole.add_argument(
        "--network", choices=NETWORKS, default=default.network, help="how LAN and WAN meet"
    )
    whole.add_argument("--clients", type=int, default=1, help="that do the same at once")
    whole.add_argument(
        "--trouble",
        action="append",
        choices=TROUBLES,
        help="in the middle: " + ", ".join(f"{name}: {it.about}" for name, it in TROUBLES.items()),
    )
    whole.add_argument("--kernel", choices=KERNELS, default=default.kernel)
    whole.add_argument("--loss-seed", type=int, default=1, help="first seed of the air")
    whole.add_argument("--seeds", type=int, default=1, help="how many")
    whole.add_argument("--cc", choices=("cubic", "newreno", "bbr"), help="of the sender")
    whole.add_argument("--pemi-options", default="", help="more options for `pemi run`")
    whole.add_argument("--jobs", type=int, default=1, help="guests at a time, a core each")
    _output(whole, None)
    _apps(whole)
    return whole


def _apps(whole: argparse.ArgumentParser) -> None:
    loads = whole.add_subparsers(dest="app", required=True, metavar="APP")
    download = loads.add_parser("goodput", help="download a number of bytes")
    download.add_argument("--bytes", action="append", help="5MB; may be repeated")
    call = loads.add_parser("rtc", help="a video call")
    call.add_argument("--seconds", type=float, default=20)
    call.add_argument("--fps", type=float, default=30)
    call.add_argument("--kbps", type=float, default=3000)
    for one, names in ((download, STACKS), (call, CALL_STACKS)):
        one.add_argument("--stack", dest="stacks", action="append", choices=(*names, "all"))
    page = loads.add_parser("http", help="download over HTTP with curl")
    page.add_argument("--bytes", action="append", help="5MB; may be repeated")
    page.add_argument(
        "--stack",
        choices=web.STACKS,
        default=web.STACKS[0],
        help="from nginx over TCP, or from quic-go over HTTP/3 (default: %(default)s)",
    )
    voice = loads.add_parser("media", help="a voice call, of which the client is the sender")
    voice.add_argument("--seconds", type=float, default=20)
    echo = loads.add_parser("echo", help="small packets to the router and back")
    echo.add_argument("--count", type=int, default=20)
    probe = loads.add_parser("probe", help="a stream that tells what the hop does to packets")
    probe.add_argument("--seconds", type=float, default=20)
    probe.add_argument("--rate", type=int, default=800, help="packets a second")
    probe.add_argument("--burst", type=int, default=8, help="packets at once")
    up = loads.add_parser("upload", help="upload a number of bytes with quinn")
    up.add_argument("--bytes", action="append", help="5MB; may be repeated")
    for one in (download, call, page, voice, echo, probe, up):
        # Also accepted after the application, where one looks for it.
        _output(one, argparse.SUPPRESS)


def _output(group: argparse._ActionsContainer, default: object) -> None:
    group.add_argument("--json", type=Path, metavar="FILE", default=default)
    group.add_argument("--keep", type=Path, metavar="DIR", default=default, help="each run's logs")


def _loads(options: argparse.Namespace) -> list[App]:
    if options.app == "echo":
        return [setups.echo(options.count)]
    if options.app == "probe":
        return [setups.probe(options.seconds, options.rate, options.burst)]
    if options.app == "media":
        return [apps.media(options.seconds, 240, 20)]
    if options.app == "upload":
        return [apps.upload(size, options.cc, options.bw2) for size in _sizes(options)]
    if options.app == "http":
        return [web.http(size, options.cc, options.bw2, options.stack) for size in _sizes(options)]
    stacks = list(dict.fromkeys(options.stacks or STACKS[:1]))
    if "all" in stacks:
        stacks = list(CALL_STACKS if options.app == "rtc" else STACKS)
    if options.app == "rtc":
        shape = (options.seconds, options.fps, options.kbps)
        return [apps.rtc(*shape, options.cc, stack) for stack in stacks]
    return [
        apps.goodput(size, options.cc, options.bw2, stack)
        for stack in stacks
        for size in _sizes(options)
    ]


def _sizes(options: argparse.Namespace) -> list[int]:
    return [parse_bytes(size) for size in options.bytes or ["5MB"]]
