# SPDX-License-Identifier: GPL-2.0-or-later
"""What a command line of run.py asks for: runs."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from .assists.assist import Assist
from .assists.off import Off
from .assists.registry import ASSISTS
from .loads import apps, web
from .loads.apps import App
from .options import LINK_NUMBERS, UsageError, parser
from .setups import Setup
from .world import traces
from .world.programs import Programs
from .world.scenario import Scenario, parse_bytes


@dataclass(frozen=True)
class Plan:
    """What the command line asks for."""

    setups: list[Setup]
    json: Path | None
    keep: Path | None


def parse(arguments: list[str] | None = None) -> Plan:
    """Ends the program with one line and exit code 2 if the command line makes no sense."""
    try:
        return plan(arguments)
    except UsageError as error:
        parser().exit(2, f"run.py: error: {error} (see run.py --help)\n")


def plan(arguments: list[str] | None) -> Plan:
    """What these words ask for. Raises UsageError."""
    options = parser().parse_args(arguments)
    try:
        scenario = _scenario(options)
        loads = _loads(options, scenario)
        assists = _assists(options, loads)
        rivals = {load: _rivals(options, scenario, load, assists) for load in loads}
    except ValueError as error:
        raise UsageError(str(error)) from None
    if options.kill_daemon_after is not None and not any(one.has_daemon for one in assists):
        with_daemon = " or ".join(f"--{kind.option}" for kind in ASSISTS if kind.has_daemon)
        raise UsageError(f"--kill-daemon-after needs {with_daemon}")
    if options.restart_daemon_after is not None and options.kill_daemon_after is None:
        raise UsageError("--restart-daemon-after needs --kill-daemon-after")
    if options.capture and options.keep is None:
        raise UsageError("--capture needs --keep")
    cases = [(scenario, assist) for assist in assists]
    if options.lossless:
        cases.append((scenario.lossless(), Off()))
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


def _scenario(options: argparse.Namespace) -> Scenario:
    losses = ("loss1ge", "outages1")
    names = (*LINK_NUMBERS, *losses, "wifi1", "queue1", "queue2", "qdisc", "link", "ipv6")
    given = {name: getattr(options, name) for name in names if hasattr(options, name)}
    given |= {name: tuple(given[name]) for name in losses if name in given}
    wan = options.mm_config and traces.read(options.mm_config)
    wifi = options.trace1 and traces.read(options.trace1)
    return Scenario.from_preset(options.preset, wan, wifi, **given)


def _assists(options: argparse.Namespace, loads: list[App]) -> list[Assist]:
    assists = [kind(*words) for kind, words in options.assists or [(Off, ())]]
    for assist in assists:
        for load in loads:
            assist.accepts(load)
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
    options: argparse.Namespace, scenario: Scenario, load: App, assists: list[Assist]
) -> tuple[App, ...]:
    names = options.beside or []
    if not names:
        return ()
    if load.bytes is None or load.name == "upload":
        raise ValueError(f"--beside is for downloads, and {load.name} is none")
    for assist in assists:
        assist.accepts_others_beside()
    slowest = min(scenario.bw1, scenario.bw2)
    return tuple(
        web.http(load.bytes, None, slowest, name)
        if name == "tcp"
        else apps.goodput(load.bytes, None, slowest, name)
        for name in names
    )
