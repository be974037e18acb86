# SPDX-License-Identifier: GPL-2.0-or-later
"""What an owner does, from the feed's address to the removal, and whether the router's own
comparison of helped downloads with others tells the truth."""

from __future__ import annotations

import json

from lab import ROOT, Lab, expect, path
from lab.feed import BEFORE, NOW, Feed
from lab.router import Router
from lab.terminal import Terminal
from testbed.measure.quotient import quotient

from .managers import APK, OPKG, Manager, has_apk

LOSS_PERCENT = 1
# Downloads that are compared count from 500 kB on.
BYTES = 1_000_000
COMPARED, TRUTH = 60, 40
# More than the usual five, so that sixty downloads say something.
CONTROL_PERCENT = 25
# A download counts as over after 3 s without a packet, and the daemon looks every 5 s.
_OVER_S = 15
_TRIES = 2
# What the daemon calls no difference. Downloads that are left alone pass the queue as well, which
# costs an emulated guest up to 0.7 %, and those that the truth is told by have none, and scatter.
_LITTLE = 0.02


def session(lab: Lab) -> dict[str, object]:
    """Feed, key, installation, switch, a helped download, upgrade, removal."""
    return _session(lab, OPKG, ())


def session_apk(lab: Lab) -> dict[str, object]:
    """The same with apk, where the guest is given one."""
    if not has_apk(_arch(lab)):
        return {"skipped": "OPENWRT_TOOLS has no apk for this machine"}
    return _session(lab, APK, ())


def long_session(lab: Lab) -> dict[str, object]:
    """With the comparison on a hop that loses and on one that does not, beside the truth."""
    return _session(lab, OPKG, (LOSS_PERCENT, 0))


def _arch(lab: Lab) -> str:
    return lab.package.stem.removeprefix(f"pemi_{NOW}_")


def _session(lab: Lab, manager: Manager, losses: tuple[float, ...]) -> dict[str, object]:
    arch = _arch(lab)
    made = ROOT / "out" / "qemu" / "feed"
    expect((made / manager.kind / arch).is_dir(), f"there is no feed for {arch}: make test-qemu")
    which = manager.prepare(lab.router, arch)
    terminal = Terminal(lab.router, "A session on a router")
    terminal.say(
        f"Made by `make qemu-session`, with {which}, in an emulated guest ({arch}); a web server "
        "in the WAN has the feed. Nothing of it is typed by hand."
    )
    seen: dict[str, object] = {"manager": which}
    try:
        with Feed(lab.server, made, manager.kind, arch, lab.logs / "feed") as feed:
            feed.offer_before()
            _install(terminal, manager, feed)
            _switch_on(terminal, lab.router)
            seen["repaired"] = _helped(terminal, lab)
            seen["comparisons"] = [_compare(terminal, lab, loss) for loss in losses]
            _upgrade(terminal, lab.router, manager, feed)
        _remove(terminal, lab.router, manager)
    finally:
        (lab.logs / f"session-{manager.name}.md").write_text(terminal.text())
        _forget(lab.router, manager)
    for row in seen["comparisons"]:
        expect(row["held"], f"the truth is not in the interval: {row}")
    return seen


def _install(terminal: Terminal, manager: Manager, feed: Feed) -> None:
    terminal.say("## The feed\n\nWithout its key nothing of it is believed.")
    terminal.type(manager.address.format(url=feed.url))
    said = terminal.type(manager.update, refused=None)
    expect("ignature" in said, f"an unknown key was not told: {said}")
    terminal.type(manager.install, refused=True)
    terminal.say("With the key it is.")
    terminal.type(manager.trust.format(url=feed.url))
    terminal.type(f"{manager.update} && {manager.install}")
    _expect_versions(manager, terminal.type(manager.listing), BEFORE)


def _expect_versions(manager: Manager, listing: str, version: str) -> None:
    for name in ("pemi", "luci-app-pemi"):
        expect(manager.shows(listing, name, version), f"{name} {version} is not there: {listing}")


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
    apart = max(low - truth, truth - high, 0)
    held = apart <= _LITTLE
    if not loss:
        held = held and low - _LITTLE <= 1 <= high + _LITTLE and told["verdict"] == "no difference"
    where = f"{apart:.3f} beside" if apart else "in"
    terminal.say(
        f"The truth, which no owner can see: {TRUTH} downloads that were all helped were "
        f"{truth:.3f} times as fast as {TRUTH} with the service stopped. "
        f"It is {where} the interval, {low:.3f} to {high:.3f}."
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


def _upgrade(terminal: Terminal, router: Router, manager: Manager, feed: Feed) -> None:
    before = router.pid()
    feed.offer_now()
    terminal.say("## The next version\n\nSomebody without the key offers one first.")
    feed.offer_forged()
    said = terminal.type(manager.update, refused=None)
    expect("ignature" in said, f"a wrong signature was not told: {said}")
    _expect_versions(manager, router.run(manager.listing), BEFORE)
    feed.offer_now()
    terminal.say("Then the feed's owner.")
    terminal.type(f"{manager.update} && {manager.upgrade}")
    _expect_versions(manager, terminal.type(manager.listing), NOW)
    router.wait(lambda: router.pid() not in (None, before), "the new daemon runs", 10)
    router.wait(router.answers, "it answers", 10)
    kept = terminal.type("uci get pemi.main.enabled").strip()
    expect(kept == "1", "the configuration was lost")
    terminal.type("service pemi status")


def _remove(terminal: Terminal, router: Router, manager: Manager) -> None:
    terminal.say("## Removed")
    terminal.type(manager.remove)
    router.wait(lambda: router.pid() is None, "the process is gone", 10)
    terminal.type("which pemi; nft list tables", refused=None)
    expect("pemi" not in router.run("nft list tables"), "a table is left")
    listing = router.attempt(manager.listing).output
    expect("pemi" not in listing, f"a package is left: {listing}")
    left = router.run("find /usr/sbin/pemi /etc/init.d/pemi /www -type f 2>/dev/null; true")
    expect(not left.strip(), f"files: {left}")


def _forget(router: Router, manager: Manager) -> None:
    """Whatever became of it, the tests that follow begin without: an owner's changed
    configuration stays otherwise, and where something has failed, all of it."""
    path.hop(router, 0)
    router.attempt(manager.remove)
    router.wait(lambda: router.pid() is None, "the process is gone", 10)
    router.run(f"rm -rf /etc/config/pemi*; {manager.forget}")
