# SPDX-License-Identifier: GPL-2.0-or-later
"""The service: what it is when it runs, and that it stays what it is."""

from __future__ import annotations

import json
import time

from lab import ROOT, Lab, expect, path
from lab.passage import Passage
from lab.router import Router
from lab.traffic import QUIC_PORT, Echo

from .managers import tools_beside

_NET_ADMIN, _NET_RAW, _SYS_NICE = 1 << 12, 1 << 13, 1 << 23
_CAPABILITIES = _NET_ADMIN | _NET_RAW | _SYS_NICE
# What each thread is left with.
_THREADS = {
    "pemi": _CAPABILITIES,
    "pemi-queue-5443": _NET_ADMIN | _NET_RAW,
    "pemi-radio": _NET_ADMIN,
    "pemi-sidekick": _NET_RAW,
    "pemi-writer": 0,
}
# SECCOMP_MODE_FILTER
_FILTERED = "2"
_USER = "5443"
_IDLE_KIB = 8 * 1024
# The first packet is there after so many times what the init script takes; 2.3 were
# measured on a machine without other work.
_SCRIPTS = 4
# A download that is stopped, because how long reloads take is up to the machine.
_ENDLESS = 1_000_000_000
_FILES = "find / -xdev -type d \\( -path /tmp -o -path /dev \\) -prune -o ! -type d -print | sort"


def install(lab: Lab) -> dict[str, object]:
    """Installed, enabled and started it helps within a second, with few rights."""
    router = lab.router
    lab.notes["files"] = set(router.run(_FILES).splitlines())
    router.install(lab.package)
    router.configure(enabled="1")
    with Echo(lab.client, lab.server, path.SERVER[4], QUIC_PORT) as echo:
        echo.begin(1000, pause_s=0.01)
        begin = time.monotonic()
        router.service("start")
        script_s = time.monotonic() - begin
        router.wait(lambda: _packets(router) > 0, "a packet is queued", 10)
        first_s = time.monotonic() - begin
    # On a machine that stands still now and then the script is as late as the daemon.
    limit_s = max(router.patience, _SCRIPTS * script_s)
    expect(first_s <= limit_s, f"{first_s:.2f} s until the first packet, script {script_s:.2f} s")
    expect(router.succeeds("nft list table inet pemi"), "there is no table")
    process = _process(router)
    for capabilities in ("CapPrm", "CapEff", "CapBnd"):
        expect(int(process[capabilities], 16) == _CAPABILITIES, f"{capabilities}: {process}")
    expect(set(process["Uid"].split()) == {_USER}, f"Uid: {process}")
    expect(process["NoNewPrivs"] == "1", f"NoNewPrivs: {process}")
    rss = int(process["VmRSS"].split()[0])
    expect(rss <= _IDLE_KIB, f"{rss} KiB resident")
    return {
        "script_s": round(script_s, 2),
        "first_packet_s": round(first_s, 2),
        "rss_kib": rss,
    }


def rights(lab: Lab) -> dict[str, object]:
    """Every thread has the capabilities that it needs and no others, those that come with a
    reload, too, and all are under the filter of system calls as the service loads it."""
    router = lab.router
    router.run("uci set pemi.sidekick.enabled=1; uci commit pemi")
    router.service("reload")
    router.wait(lambda: router.status()["sidekick"]["enabled"], "Sidekick is on", 5)
    router.wait(lambda: _capabilities(router) == _THREADS, "threads with their rights", 5)
    for name, status in _threads(router).items():
        expect(status["Seccomp"] == _FILTERED, f"{name} is not under the filter: {status}")
        expect(status["NoNewPrivs"] == "1", f"{name}: {status}")
    # Of children as well: the rules were loaded, and are loaded again, by one.
    router.run("nft delete table inet pemi")
    router.wait(lambda: router.succeeds("nft list table inet pemi"), "table is back", 2)
    expect("system-call filter" not in router.log(), "the log tells of a missing filter")
    errors = router.status()["errors"]
    expect(not errors, f"errors: {errors}")
    router.run("uci set pemi.sidekick.enabled=0; uci commit pemi")
    router.service("reload")
    router.wait(lambda: not router.status()["sidekick"]["enabled"], "Sidekick is off", 5)
    return {"threads": len(_THREADS)}


def kill(lab: Lab) -> dict[str, object]:
    """A crash during a download: traffic goes on, the daemon comes back."""
    router = lab.router
    with lab.download(path.SERVER[4], 4_000_000) as download:
        router.wait(lambda: _packets(router) > 200, "the download is queued", 10)
        pid = router.pid()
        router.run(f"kill -9 {pid}")
        download.check()
        back_s = router.wait(lambda: router.pid() not in (None, pid), "respawned", 15)
        router.wait(router.answers, "it answers again", 5)
        speed = download.finish()
    return {"respawned_after_s": round(back_s, 1), "mbps": round(speed, 2)}


def reload(lab: Lab) -> dict[str, object]:
    """A reload during a download loses no packet and forgets no flow; one with a
    bad configuration changes nothing."""
    router = lab.router
    with Passage(router) as passage, lab.download(path.SERVER[4], _ENDLESS) as download:
        router.wait(lambda: _age(router) >= 1, "a flow is a second old", 10)
        pid, age, reloads = router.pid(), _age(router), _reloads(router)
        for percent, counts in (("5", 1), ("900", 1), ("10", 2)):
            router.configure(resend_percent=percent)
            router.service("reload")
            router.wait(lambda counts=counts: _reloads(router) - reloads == counts, "reloaded", 3)
        expect(router.pid() == pid, "the process is another one")
        expect(_age(router) >= age, "the flow was forgotten")
        packets = _packets(router)
        router.wait(lambda: _packets(router) > packets + 200, "the download goes on", 10)
        download.stop()
        passed = passage.check()
    queues = router.status()["queues"]
    missed = sum(queue["missed"] for queue in queues)
    expect(missed == 0, f"packets passed the daemon unseen: {queues}")
    complaint = [
        line for line in router.log().splitlines() if "resend_percent" in line and "900" in line
    ]
    expect(complaint, "the log does not tell what is wrong with the configuration")
    return {"passed": passed, "log": complaint[-1]}


def flush(lab: Lab) -> dict[str, object]:
    """All tables are deleted, as `service firewall stop` does: ours comes back."""
    router = lab.router
    pid = router.pid()
    router.run("/etc/init.d/firewall stop")
    back_s = router.wait(lambda: router.succeeds("nft list table inet pemi"), "table is back", 2)
    expect(router.pid() == pid, "the process is another one")
    router.firewall(offload=False)
    return {"back_after_s": round(back_s, 2)}


def measure(lab: Lab) -> dict[str, object]:
    """`hardware/measure.sh` runs on a router, beside the service, and tells all."""
    router = lab.router
    router.push((ROOT / "hardware/measure.sh").read_bytes(), "/tmp/measure.sh")
    router.push(tools_beside(lab.package), "/usr/sbin/pemi-tools")
    router.run("chmod 755 /usr/sbin/pemi-tools")
    said = json.loads(router.run("SECONDS_EACH=1 sh /tmp/measure.sh 2>/dev/null", timeout_s=60))
    router.run("rm /tmp/measure.sh /usr/sbin/pemi-tools")
    for name in ("kernel", "machine", "cpu"):
        expect(said[name], f"no {name}: {said}")
    expect(said["memory_kib"]["pemi_resident"] > 0, f"the service was not found: {said}")
    expect(len(said["interfaces"]) == 2, f"interfaces: {said['interfaces']}")
    expect(said["pemi"]["queue"]["packets_per_s"] > 0, f"no packet came through: {said}")
    return {"cpu": said["cpu"], **said["pemi"]}


def stop(lab: Lab) -> dict[str, object]:
    """Nothing of it is left when it is stopped, nor of what the firewall took from it."""
    router = lab.router
    # The scenario before may have left it on a bridge, where nothing is taken from offloading.
    router.configure(mode="routed")
    router.service("restart")
    router.wait(router.answers, "the service answers", 10)
    router.firewall(offload=False)
    rule = "nft list chain inet fw4 forward | grep -c '!pemi:' || true"
    expect(router.run(rule).strip() == "1", "the firewall did not take the rule for helped flows")
    router.service("stop")
    router.wait(lambda: router.run(rule).strip() == "0", "the firewall's rule is gone", 10)
    router.wait(lambda: router.pid() is None, "the process is gone", 10)
    tables = router.run("nft list tables")
    expect("pemi" not in tables, f"tables: {tables}")
    left = router.run("ls -d /var/run/pemi /var/etc/pemi 2>/dev/null; true")
    expect(not left, f"files: {left}")
    return {}


def remove(lab: Lab) -> dict[str, object]:
    """Nothing of the package is left when it is removed."""
    router = lab.router
    router.remove()
    left = set(router.run(_FILES).splitlines()) - lab.notes["files"] - router.kept
    expect(not left, f"files: {sorted(left)}")
    return {}


def _packets(router: Router) -> int:
    """Packets that the running daemon was given."""
    if not router.answers():
        return 0
    return sum(queue["packets"] for queue in router.status()["queues"])


def _age(router: Router) -> float:
    flows = router.flows()
    return max((flow["age_s"] for flow in flows), default=0)


def _reloads(router: Router) -> int:
    return router.log().count("configuration read again")


def _process(router: Router) -> dict[str, str]:
    return _fields(router.run(f"cat /proc/{router.pid()}/status"))


def _threads(router: Router) -> dict[str, dict[str, str]]:
    """The status of each thread by its name."""
    text = router.run(f"cat /proc/{router.pid()}/task/*/status")
    each = [_fields("Name:" + status) for status in text.split("Name:")[1:]]
    return {fields["Name"]: fields for fields in each}


def _capabilities(router: Router) -> dict[str, int]:
    return {name: int(status["CapEff"], 16) for name, status in _threads(router).items()}


def _fields(status: str) -> dict[str, str]:
    lines = (line.partition(":") for line in status.splitlines())
    return {name: value.strip() for name, _, value in lines}
