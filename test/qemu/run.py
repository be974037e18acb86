#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots a router in QEMU and runs the scenarios in it; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from lab import ROOT, Lab, path
from lab.namespace import Namespace
from lab.openwrt import OpenWrt, find_image
from lab.qemu import HARDWARE, MachineError
from lab.standin import StandIn
from scenarios import RECORDED, SCENARIOS, session, session_apk
from testbed.world.process import ExperimentError

PACKAGES = {"x86_64": "x86_64", "arm64": "aarch64_generic", "mipsel": "mipsel_24kc"}
LOG_LINES = 20
Scenario = Callable[[Lab], dict[str, object]]
_HERE = Path(__file__).resolve().parent


def main() -> int:
    """All machines in turn; 0 if every scenario passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("arch", nargs="+", choices=HARDWARE)
    parser.add_argument("--openwrt", help="an official image instead: its file or release")
    parser.add_argument("--package", type=Path, help="default: the one in out/packages")
    parser.add_argument("--only", help="scenarios by name, with commas; install always runs")
    parser.add_argument("--shell", action="store_true", help="instead: run lines of the input")
    parser.add_argument("--recorded", action="store_true", help="instead: a long session")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("this needs root: network namespaces and TAP devices")
    # So that everything is cleaned up then as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scenarios = SCENARIOS
    if options.openwrt:
        # Its opkg wants the dependencies from feeds that are out of reach.
        scenarios = [it for it in SCENARIOS if it not in (session, session_apk)]
    if options.shell:
        scenarios = (shell,)
    elif options.recorded:
        scenarios = RECORDED
    elif options.only:
        wanted = {"install", *options.only.split(",")}
        scenarios = [scenario for scenario in scenarios if scenario.__name__ in wanted]
    failures = 0
    for arch in options.arch:
        failures += test(arch, options, scenarios)
    if not options.openwrt:
        print("skipped: an official image (none was given: OPENWRT_IMAGE)")
    return min(failures, 1)


def test(arch: str, options: argparse.Namespace, scenarios: Iterable[Scenario]) -> int:
    """One machine; how many scenarios failed."""
    out = ROOT / "out" / "qemu"
    folder = out / (f"openwrt-{arch}" if options.openwrt else arch)
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    steps: list[dict[str, object]] = []
    result: dict[str, object] = {"arch": arch, "steps": steps}
    with ExitStack() as stack:
        client = stack.enter_context(Namespace("client"))
        server = stack.enter_context(Namespace("server"))
        taps = [client.tap(path.LAN_TAP), server.tap(path.WAN_TAP)]
        router = None
        try:
            if options.openwrt:
                image = find_image(options.openwrt, arch, ROOT / "out" / "cache" / "openwrt")
                result["image"] = image.name
                router = OpenWrt(arch, folder, taps, client, image)
            else:
                subprocess.run([_HERE / "image.sh", arch], check=True)
                router = StandIn(arch, folder, taps)
            begin = time.monotonic()
            stack.enter_context(router)
            result["boot_s"] = round(time.monotonic() - begin, 1)
            package = options.package or find_package(arch, router.package_suffix)
            result["package"] = package.name
            print(f"{arch}: {package.name}, up in {result['boot_s']} s", flush=True)
            router.route()
            path.address(client, server)
            path.hop(router, 0)
            path.wan(router)
            lab = Lab(router, client, server, package, folder)
            for scenario in scenarios:
                steps.append(step(scenario, lab))
        except (ExperimentError, OSError, subprocess.SubprocessError) as error:
            print(f"{arch}: {error}", flush=True)
            steps.append({"name": "machine", "ok": False, "error": str(error)})
        failed = [step["name"] for step in steps if not step["ok"]]
        if failed and router:
            print(f"--- the end of {folder}/console.log\n{router.console_tail()}\n---")
    result["seconds"] = round(time.monotonic() - begin, 1)
    (folder / "result.json").write_text(json.dumps(result, indent=1) + "\n")
    print(f"{arch}: {len(steps) - len(failed)} of {len(steps)} passed, {result['seconds']} s")
    return len(failed)


def find_package(arch: str, suffix: str) -> Path:
    """What `make ipk` or `make apk` has made."""
    arch = PACKAGES[arch]
    pattern = {".ipk": f"pemi_*_{arch}.ipk", ".apk": f"{arch}/pemi-[0-9]*.apk"}[suffix]
    found = sorted((ROOT / "out" / "packages").glob(pattern))
    if not found:
        raise ExperimentError(f"there is no {pattern} in out/packages: make {suffix[1:]}")
    return found[-1]


def shell(lab: Lab) -> dict[str, object]:
    """Have a look inside: the package is installed, nothing is started."""
    lab.router.install(lab.package)
    for line in sys.stdin:
        answer = lab.router.attempt(line)
        print(answer.output, end="", flush=True)
        if answer.code != 0:
            print(f"(exit code {answer.code})", flush=True)
    return {}


def step(scenario: Scenario, lab: Lab) -> dict[str, object]:
    """One scenario, and a line about it."""
    begin = time.monotonic()
    entry: dict[str, object] = {"name": scenario.__name__, "ok": True}
    try:
        entry["seen"] = scenario(lab)
    except MachineError:
        raise
    except Exception as error:
        entry |= {"ok": False, "error": str(error), "trace": traceback.format_exc()}
        entry["log"] = lab.router.log().splitlines()[-LOG_LINES:]
    entry["seconds"] = round(time.monotonic() - begin, 1)
    print(
        f"  {entry['name']:<10} {'ok  ' if entry['ok'] else 'FAIL'} {entry['seconds']:5.1f} s",
        end="",
    )
    if entry["ok"]:
        print("  " + json.dumps(entry["seen"]), flush=True)
    else:
        print("", entry["trace"], *entry["log"], sep="\n", flush=True)
    return entry


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
