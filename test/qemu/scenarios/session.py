# SPDX-License-Identifier: GPL-2.0-or-later
"""What an owner does, from the feed's address to the removal, and whether the router's own
comparison of helped downloads with others tells the truth."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

from lab import ROOT, Lab, expect, path
from lab.feed import BEFORE, NOW, Feed
from lab.router import Router
from lab.terminal import Terminal
from testbed.measure.quotient import quotient

LOSS_PERCENT = 1
# Downloads that are compared count from 500 kB on.
BYTES = 1_000_000
COMPARED, TRUTH = 60, 40
# More than the usual five, so that sixty downloads say something.
CONTROL_PERCENT = 25
# A download counts as over after 3 s without a packet, and the daemon looks every 5 s.
_OVER_S = 15
_TRIES = 2
_LIST = "/etc/opkg/customfeeds.conf"
# What the guest has of the packages' dependencies, as the firmware's own packages.
_THERE = ("libc", "kmod-nft-queue", "kmod-nft-bridge", "nftables", "luci-base")
_OPKG = "dest root /\ndest ram /tmp\nlists_dir ext /var/opkg-lists\noption check_signature\n"


def session(lab: Lab) -> dict[str, object]:
    """Feed, key, installation, switch, a helped download, upgrade, removal."""
    return _session(lab, ())


def long_session(lab: Lab) -> dict[str, object]:
    """With the comparison on a hop that loses and on one that does not, beside the truth."""
    return _session(lab, (LOSS_PERCENT, 0))


def _session(lab: Lab, losses: tuple[float, ...]) -> dict[str, object]:
    arch = lab.package.stem.removeprefix(f"pemi_{NOW}_")
    made = ROOT / "out" / "qemu" / "feed"
    expect((made / "ipk" / arch).is_dir(), f"there is no feed for {arch}: make test-qemu")
    opkg = _prepare(lab.router, arch)
    terminal = Terminal(lab.router, "A session on a router")
    terminal.say(
        f"Made by `make qemu-session`, with {opkg}, in an emulated guest ({arch}); a web server in "
        "the WAN has the feed. Nothing of it is typed by hand."
    )
    seen: dict[str, object] = {"opkg": opkg}
    try:
        with Feed(lab.server, made, arch, lab.logs / "feed") as feed:
            feed.offer_before()
            _install(terminal, feed)
            _switch_on(terminal, lab.router)
            seen["repaired"] = _helped(terminal, lab)
            seen["comparisons"] = [_compare(terminal, lab, loss) for loss in losses]
            _upgrade(terminal, lab.router, feed)
        _remove(terminal, lab.router)
    finally:
        (lab.logs / "session.md").write_text(terminal.text())
        _forget(lab.router)
    for row in seen["comparisons"]:
        expect(row["held"], f"the truth is not in the interval: {row}")
    return seen


def _prepare(router: Router, arch: str) -> str:
    """What firmware has and this guest has not; which opkg there is."""
    words = "Version: 1\nStatus: install ok installed\nArchitecture: all\n"
    status = [f"Package: {name}\n{words}" for name in _THERE]
    router.run("mkdir -p /usr/lib/opkg/info /etc/opkg /var/lock")
    router.run(f"cd /usr/lib/opkg/info; touch {' '.join(f'{name}.list' for name in _THERE)}")
    router.push("\n".join([*status, ""]).encode(), "/usr/lib/opkg/status")
    router.push(f"{_OPKG}arch all 1\narch {arch} 10\n".encode(), "/etc/opkg.conf")
    router.push(f"DISTRIB_ARCH='{arch}'\n".encode(), "/etc/openwrt_release")
    router.run(f": >{_LIST}; rm -rf /etc/opkg/keys")
    real = Path(os.environ.get("OPENWRT_TOOLS", "/nonexistent")) / "opkg"
    if not real.exists() or arch != platform.machine():
        return "a stand-in for opkg"
    router.push(real.read_bytes(), "/bin/opkg")
    return "the real opkg"


def _install(terminal: Terminal, feed: Feed) -> None:
    terminal.say("## The feed\n\nWithout its key nothing of it is believed.")
    terminal.type(
        f'echo "src/gz pemi {feed.url}/ipk/$(. /etc/openwrt_release; echo $DISTRIB_ARCH)" >>{_LIST}'
    )
    said = terminal.type("opkg update", refused=None)
    expect("ignature" in said, f"an unknown key was not told: {said}")
    terminal.type("opkg install luci-app-pemi", refused=True)
    terminal.say("With the key it is.")
    terminal.type(f"wget -q -O /tmp/pemi.pub {feed.url}/pemi.pub && opkg-key add /tmp/pemi.pub")
    terminal.type("opkg update && opkg install luci-app-pemi")
    said = terminal.type("opkg list-installed | grep pemi")
    for name in ("pemi", "luci-app-pemi"):
        expect(f"{name} - {BEFORE}" in said, f"not installed: {said}")


def _switch_on(terminal: Terminal, router: Router) -> None:
    terminal.say("## Switched on\n\nIt is off until then. These are the steps of LuCI's switch.")
    terminal.type("service pemi status", refused=None)
    terminal.type("uci set pemi.main.enabled=1; uci commit pemi")
    terminal.type("service pemi enable && service pemi start")
    router.wait(router.answers, "the daemon answers", 10)
    terminal.type("service pemi status")


def _helped(terminal: Terminal, lab: Lab) -> int:
    """A download over a hop that loses; how many losses were repaired."""
    path.hop(lab.router, LOSS_PERCENT)
    # On a machine that stands still now and then little can be inferred: then once more.
    for _ in range(_TRIES):
        with lab.download(path.SERVER[4], 4 * BYTES) as download:
            mbps = download.finish()
        repaired = lab.router.status()["losses"]["repaired"]
        if repaired:
            break
    terminal.say(
        f"## A download\n\nA client of the LAN has downloaded {4 * BYTES // 1_000_000} MB over a "
        f"hop that loses {LOSS_PERCENT} %, at {mbps:.1f} Mbit/s of {path.WAN_MBIT}."
    )
    terminal.type("service pemi status")
    terminal.type("service pemi benefit")
    expect(repaired > 0, "nothing was repaired, twice")
    path.hop(lab.router, 0)
    return repaired


def _compare(terminal: Terminal, lab: Lab, loss: float) -> dict[str, object]:
    """What the router says after so many downloads, and what is true."""
    router = lab.router
    path.hop(router, loss)
    terminal.say(
        f"## The benefit at {loss:g} % loss\n\n{COMPARED} downloads of {BYTES // 1_000_000} MB, "
        f"one after the other; one in {100 // CONTROL_PERCENT} is left alone."
    )
    terminal.type(f"uci set pemi.main.control_percent={CONTROL_PERCENT}; uci commit pemi")
    terminal.type("service pemi stop")
    router.wait(lambda: router.pid() is None, "the process is gone", 10)
    terminal.type("rm -f /var/lib/pemi/benefit; service pemi start")
    router.wait(router.answers, "the daemon answers", 10)
    _download(lab, COMPARED)
    router.wait(lambda: _counted(router) >= COMPARED, "all downloads are over", _OVER_S)
    terminal.type("service pemi benefit")
    told = _benefit(router)

    router.configure(control_percent="0")
    router.service("restart")
    router.wait(router.answers, "the daemon answers", 10)
    on = _download(lab, TRUTH)
    router.service("stop")
    off = _download(lab, TRUTH)
    router.service("start")
    router.wait(router.answers, "the daemon answers", 10)
    path.hop(router, 0)
    return _judge(terminal, loss, told, quotient(on, off))


def _judge(terminal: Terminal, loss: float, told: dict, truth: float) -> dict[str, object]:
    low, high = told["interval"] or (0, 0)
    held = low <= truth <= high
    if not loss:
        held = held and low <= 1 <= high and told["verdict"] == "no difference"
    terminal.say(
        f"The truth, which no owner can see: {TRUTH} downloads that were all helped were "
        f"{truth:.2f} times as fast as {TRUTH} with the service stopped. "
        f"It is {'in' if held else '**not** in'} the interval."
    )
    return {
        "loss_percent": loss,
        "sentence": told["sentence"],
        "interval": told["interval"],
        "truth": round(truth, 3),
        "held": held,
    }


def _download(lab: Lab, count: int) -> list[float]:
    """So many, each a connection of its own; their rates in Mbit/s."""
    rates = []
    for _ in range(count):
        with lab.download(path.SERVER[4], BYTES) as download:
            rates.append(download.finish())
    return rates


def _benefit(router: Router) -> dict:
    (network,) = json.loads(router.run("pemi benefit --json"))["networks"]
    return network


def _counted(router: Router) -> int:
    network = _benefit(router)
    return network["helped"]["downloads"] + network["alone"]["downloads"]


def _upgrade(terminal: Terminal, router: Router, feed: Feed) -> None:
    before = router.pid()
    feed.offer_now()
    terminal.say("## The next version\n\nSomebody without the key offers one first.")
    feed.offer_forged()
    said = terminal.type("opkg update", refused=None)
    expect("ignature" in said, f"a wrong signature was not told: {said}")
    expect(BEFORE in router.run("opkg list-installed | grep pemi"), "another version is there")
    feed.offer_now()
    terminal.say("Then the feed's owner.")
    terminal.type("opkg update && opkg upgrade pemi luci-app-pemi")
    said = terminal.type("opkg list-installed | grep pemi")
    for name in ("pemi", "luci-app-pemi"):
        expect(f"{name} - {NOW}" in said, f"not upgraded: {said}")
    router.wait(lambda: router.pid() not in (None, before), "the new daemon runs", 10)
    router.wait(router.answers, "it answers", 10)
    kept = terminal.type("uci get pemi.main.enabled").strip()
    expect(kept == "1", "the configuration was lost")
    terminal.type("service pemi status")


def _remove(terminal: Terminal, router: Router) -> None:
    terminal.say("## Removed")
    terminal.type("opkg remove luci-app-pemi pemi")
    router.wait(lambda: router.pid() is None, "the process is gone", 10)
    terminal.type("which pemi; nft list tables", refused=None)
    expect("pemi" not in router.run("nft list tables"), "a table is left")
    expect("pemi" not in router.run("opkg list-installed"), "a package is left")
    left = router.run("find /usr/sbin/pemi /etc/init.d/pemi /www -type f 2>/dev/null; true")
    expect(not left.strip(), f"files: {left}")


def _forget(router: Router) -> None:
    """Whatever became of it, the tests that follow begin without: an owner's changed
    configuration stays otherwise, and where something has failed, all of it."""
    path.hop(router, 0)
    router.attempt("opkg remove luci-app-pemi pemi")
    router.wait(lambda: router.pid() is None, "the process is gone", 10)
    router.run("rm -rf /etc/config/pemi* /usr/lib/opkg /etc/opkg /etc/opkg.conf")
