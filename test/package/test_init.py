# SPDX-License-Identifier: GPL-2.0-or-later
"""The init script: what procd would be told, and what the log would say."""

import json
import os
import time

import pytest

SECCOMP = "/etc/seccomp/pemi.json"
ROOT = ["/usr/sbin/pemi", "run", "--config", "/var/etc/pemi/config.json", "--seccomp", SECCOMP]
RUN = [*ROOT, "--user", "pemi"]


def enable(router, *commands):
    router.uci("set pemi.main.enabled=1", *commands)


def test_as_installed_it_is_off_and_leaves_nothing(router):
    assert router.service("start").returncode == 0
    assert router.told["instances"] == {}
    assert router.told["triggers"] == ["config.change pemi"]
    assert router.log == []
    assert not (router.root / "var/etc/pemi").exists()
    assert not (router.root / "var/run/pemi").exists()
    assert router.read("/var/log/nft") == ""


def test_switched_on(router):
    enable(router)
    assert router.service("start").returncode == 0
    assert router.log == []
    instance = router.instance
    assert instance["command"] == RUN
    assert instance["file"] == ["/var/etc/pemi/config.json"]
    assert instance["reload_signal"] == 1
    assert instance["respawn"] == ["60", "5", "5"]
    assert instance["stdout"] and instance["stderr"]
    # procd knows this word alone, or two numbers; it skips the rest in silence.
    assert instance["limits"] == {"memlock": "unlimited"}
    assert router.told["triggers"] == ["config.change pemi", "interface.* lan"]
    config = router.config
    assert (config["devices"], config["absent"], config["firewall"]) == ("br-lan", "", "nft")
    sidekick = {"enabled": "0", "port": "5103", "interval": "adaptive", "threshold": "8"}
    assert config["sidekick"] == sidekick
    # The daemon's account may not change what root's tools read.
    assert (router.root / "var/etc/pemi").stat().st_uid == 0
    assert (router.root / "var/run/pemi").stat().st_uid == 5443


def test_the_comparison_has_a_folder_of_its_own(router):
    enable(router)
    router.service("start")
    assert router.config["benefit"] == "/var/lib/pemi/benefit"
    assert (router.root / "var/lib/pemi").stat().st_uid == 5443
    router.uci("set pemi.main.benefit=/etc/pemi/benefit")
    router.service("restart")
    assert router.config["benefit"] == "/etc/pemi/benefit"
    assert (router.root / "etc/pemi").stat().st_uid == 5443


@pytest.mark.parametrize(
    "path", ["/etc/benefit", "/etc/x/../pemi/benefit", "/a b/pemi/x", "pemi/x"]
)
def test_no_other_folder_is_given_away(router, path):
    (router.root / "etc/pemi").mkdir()
    before = [(router.root / name).stat().st_uid for name in ("etc", "etc/pemi")]
    enable(router, f"set pemi.main.benefit='{path}'")
    router.service("start")
    assert [(router.root / name).stat().st_uid for name in ("etc", "etc/pemi")] == before
    assert not (router.root / "a b").exists()


def test_what_luci_starts_can_read_its_settings(router):
    """rpcd, which LuCI's buttons go through, has a umask that keeps others out."""
    enable(router)
    before = os.umask(0o077)
    try:
        router.service("start")
    finally:
        os.umask(before)
    assert (router.root / "var/etc/pemi").stat().st_mode & 0o777 == 0o755
    assert (router.root / "var/etc/pemi/config.json").stat().st_mode & 0o777 == 0o644


def test_the_jail_has_what_it_needs_and_no_more(router):
    enable(router)
    router.service("start")
    assert not {"jail", "user", "capabilities", "no_new_privs"} & router.instance.keys()
    router.program("/sbin/ujail", "#!/bin/sh\n")
    router.service("restart")
    instance = router.instance
    assert instance["command"] == RUN
    assert (instance["user"], instance["group"]) == ("pemi", "pemi")
    assert instance["no_new_privs"] is True
    jail = instance["jail"]
    assert (jail["name"], jail["log"], jail["procfs"]) == ("pemi", True, True)
    mounts = jail["mount"]
    writable = {path for path, writable in mounts.items() if writable == "1"}
    assert writable == {"/var/run/pemi", "/var/lib/pemi"}
    for path in mounts:
        assert (router.root / path[1:]).exists(), path
    sets = json.loads(router.read(instance["capabilities"]))
    assert set(sets) == {"bounding", "effective", "ambient", "permitted", "inheritable"}
    for names in sets.values():
        assert names == ["CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_NICE"]


def test_the_filter_of_system_calls_is_in_the_jail_and_may_be_missing(router):
    router.program("/sbin/ujail", "#!/bin/sh\n")
    enable(router)
    router.service("start")
    assert router.instance["jail"]["mount"][SECCOMP] == "0"
    # procd would load it for programs with a dynamic linker only.
    assert "seccomp" not in router.instance
    (router.root / SECCOMP[1:]).unlink()
    router.service("restart")
    assert "--seccomp" not in router.instance["command"]
    assert SECCOMP not in router.instance["jail"]["mount"]


def test_without_its_user_it_does_not_start(router):
    enable(router)
    router.service("start")
    assert router.instance["command"] == RUN
    router.write("/etc/passwd", "root:x:0:0::/:/bin/sh\n")
    for verb in ("reload", "start"):
        router.service(verb)
        assert router.told["instances"] == {}
        (line,) = router.log
        assert line.startswith("err /etc/config/pemi: section 'main', option 'run_as_root': ")
        assert "no user 'pemi'" in line and "install the package pemi again" in line
        leaves_nothing(router)
    router.uci("set pemi.main.run_as_root=0")
    router.service("start")
    assert router.told["instances"] == {}


def test_it_runs_as_root_if_told_so(router):
    enable(router, "set pemi.main.run_as_root=1")
    # With the user there it is no reason to.
    router.service("start")
    assert router.instance["command"] == RUN and router.log == []
    router.write("/etc/passwd", "root:x:0:0::/:/bin/sh\n")
    router.program("/sbin/ujail", "#!/bin/sh\n")
    router.service("restart")
    assert router.instance["command"] == ROOT
    assert not {"jail", "user", "capabilities"} & router.instance.keys()
    (line,) = router.log
    assert line.startswith("warn ") and "runs as root, as option run_as_root says" in line


def test_lists_and_old_style_options_are_the_same(router):
    enable(
        router,
        "add_list pemi.main.port=8443",
        "delete pemi.main.network",
        "add_list pemi.main.device=wlan0",
        "add_list pemi.main.device=wlan1",
    )
    router.service("start")
    assert router.config["port"] == "443 8443"
    assert router.config["device"] == "wlan0 wlan1"
    assert router.config["network"] == ""
    router.uci("delete pemi.main.device", "set pemi.main.device=wlan0 wlan1")
    router.service("reload")
    assert router.config["device"] == "wlan0 wlan1"


def test_without_networks_and_devices_it_is_lan(router):
    enable(router, "delete pemi.main.network")
    router.service("start")
    assert router.config["network"] == "lan" and router.config["devices"] == "br-lan"


def test_an_empty_section_means_the_defaults(router):
    router.write("/etc/config/pemi", "config pemi 'main'\n\toption enabled 'on'\n")
    router.service("start")
    assert router.instance["command"] == RUN
    assert router.log == []


def test_values_arrive_as_they_are(router):
    strange = """a'b"c\\d $HOME `id` $(id)"""
    quoted = strange.replace("'", "'\\''")
    router.write(
        "/etc/config/pemi", f"config pemi 'main'\n\toption enabled 1\n\toption odd '{quoted}'\n"
    )
    router.service("start")
    assert router.config["odd"] == strange
    assert len(router.log) == 1 and router.log[0].startswith("warn /etc/config/pemi: option 'odd'")


def test_a_reload_without_a_change_changes_nothing(router):
    enable(router)
    router.service("start")
    place = router.root / "var/etc/pemi/config.json"
    before = place.stat().st_mtime_ns, place.stat().st_ino
    router.service("reload")
    assert (place.stat().st_mtime_ns, place.stat().st_ino) == before
    assert router.instance["command"] == RUN


def test_a_reload_takes_the_new_settings(router):
    enable(router)
    router.service("start")
    told = router.instance
    router.uci("set pemi.main.cache_kib=1024")
    router.service("reload")
    assert router.config["cache_kib"] == "1024"
    # Only the file's content differs: procd sends a signal, nothing more.
    assert router.instance == told


def test_switched_off_by_a_reload(router):
    enable(router)
    router.service("start")
    router.uci("set pemi.main.enabled=0")
    router.service("reload")
    assert router.told["instances"] == {}
    leaves_nothing(router)


def leaves_nothing(router):
    for path in ("var/etc/pemi", "var/run/pemi"):
        assert not (router.root / path).exists(), path
    removed = router.read("/var/log/nft")
    assert "delete table inet pemi" in removed and "delete table bridge pemi" in removed


@pytest.mark.parametrize("verb", ["stop", "reload"])
def test_nobody_waits_for_a_killed_daemon(router, verb):
    enable(router)
    router.service("start")
    os.mknod(router.root / "var/run/pemi/control.sock", 0o140600)
    router.uci("set pemi.main.enabled=0")
    start = time.monotonic()
    router.service(verb)
    assert time.monotonic() - start < 5
    leaves_nothing(router)


def test_a_network_that_comes_later(router):
    router.devices(lan="br-lan")
    enable(router, "add_list pemi.main.network=guest", "add_list pemi.main.network=guset")
    router.service("start")
    assert router.config["devices"] == "br-lan"
    assert router.config["absent"] == "guest guset"
    late, wrong = router.log
    assert "network 'guest' is not helped now: it is not up" in late
    assert "network 'guset'" in wrong and "/etc/config/network has no such" in wrong
    assert router.told["triggers"][1:] == [f"interface.* {n}" for n in ("lan", "guest", "guset")]
    router.devices(lan="br-lan", guest="wlan0-1")
    router.service("reload")
    assert router.config["devices"] == "br-lan wlan0-1"
    assert router.config["absent"] == "guset"


def test_no_network_at_all_is_no_reason_not_to_start(router):
    router.devices()
    enable(router)
    router.service("start")
    assert router.instance["command"] == RUN
    assert (router.config["devices"], router.config["absent"]) == ("", "lan")


# section, option, bad value, part of what is allowed
BAD = [
    ("main", "enabled", "maybe", "1, 0, on, off"),
    ("main", "run_as_root", "maybe", "1, 0, on, off"),
    ("main", "mode", "magic", "routed, bridged"),
    ("main", "direction", "up", "down, both"),
    ("main", "port", "0", "1 to 65535"),
    ("main", "port", "https", "1 to 65535"),
    ("main", "device", "a/b", "15 characters"),
    ("main", "device", "wlan*", "15 characters"),
    ("main", "cache_kib", "63", "64 to 1048576"),
    ("main", "cache_kib", "4M", "64 to 1048576"),
    ("main", "max_flows", "15", "16 to 65536"),
    ("main", "resend_percent", "101", "0 to 100"),
    ("main", "resend_percent", "-1", "0 to 100"),
    ("main", "conceal", "perhaps", "1, 0, on, off"),
    ("main", "release_s", "1.5", "0 to 86400"),
    ("main", "queue", "65536", "0 to 65535"),
    ("main", "queues", "9", "1 to 8"),
    ("main", "mark", "0", "1 to 4294967295"),
    ("main", "bypass_mark", "0x20000000", "bits that mark"),
    ("main", "helped_mark", "0x10000000", "bits that bypass_mark"),
    ("main", "realtime_priority", "99", "0 to 98"),
    ("main", "radio", "on", "auto, always, off"),
    ("main", "log_level", "loud", "error, warn, info, debug"),
    ("main", "control", "relative", "absolute path"),
    ("sidekick", "enabled", "2", "1, 0, on, off"),
    ("sidekick", "port", "70000", "1 to 65535"),
    ("sidekick", "interval", "2x", "1ms to 1000ms"),
    ("sidekick", "threshold", "65", "1 to 64"),
]


@pytest.mark.parametrize(("section", "option", "value", "allowed"), BAD)
def test_a_bad_value_is_named_and_harms_nobody(router, section, option, value, allowed):
    # At the start its default is used; but what is not on is not started.
    enable(router, f"set pemi.{section}.{option}={value}")
    router.service("start")
    assert len(router.log) == 1, router.log
    line = router.log[0]
    # Marks are numbers once they are compared.
    quoted = value if "mark" in option and value != "0" else f'"{value}"'
    for part in (f"section '{section}'", f"option '{option}'", f"value {quoted}", allowed):
        assert part in line, line
    assert line.startswith("err /etc/config/pemi: ")
    if (section, option) == ("main", "enabled"):
        assert router.told["instances"] == {}
    else:
        assert line.endswith("; its default is used")
        assert router.instance["command"] == RUN
        sections = {"main": router.config, "sidekick": router.config["sidekick"]}
        assert option not in sections[section]

    # A running service stays as it is.
    router.service("stop")
    router.write("/etc/config/pemi", "config pemi 'main'\n\toption enabled '1'\n")
    router.service("start")
    assert router.log == []
    before, told = router.read("/var/etc/pemi/config.json"), router.instance
    router.uci("set pemi.sidekick=sidekick", f"set pemi.{section}.{option}={value}")
    router.service("reload")
    assert len(router.log) == 1, router.log
    assert router.log[0].endswith("; the service keeps its last good configuration")
    assert (router.read("/var/etc/pemi/config.json"), router.instance) == (before, told)
    assert sorted(p.name for p in (router.root / "var/etc/pemi").iterdir()) == [
        "config.json",
        "fw4.nft",
    ]


def test_all_bad_values_are_named_at_once(router):
    enable(router, "set pemi.main.queues=9", "set pemi.sidekick.port=0")
    router.service("start")
    assert len(router.log) == 2, router.log


def test_a_file_that_cannot_be_read(router):
    broken = "config pemi 'main'\n\toption enabled '1\n"
    router.write("/etc/config/pemi", broken)
    router.service("start")
    assert router.told["instances"] == {}
    assert len(router.log) == 1 and "/etc/config/pemi: Parse error" in router.log[0], router.log
    router.write("/etc/config/pemi", "config pemi 'main'\n\toption enabled '1'\n")
    router.service("start")
    before = router.instance
    router.write("/etc/config/pemi", broken)
    router.service("reload")
    assert len(router.log) == 1 and "/etc/config/pemi: Parse error" in router.log[0], router.log
    assert router.instance == before
    check = router.service("check")
    assert check.returncode == 1 and "/etc/config/pemi: Parse error" in check.stderr
    assert check.stdout == ""


def test_a_missing_file_means_off(router):
    (router.root / "etc/config/pemi").unlink()
    router.service("start")
    assert router.told["instances"] == {} and router.log == []


def test_unknown_sections_and_options_are_told(router):
    enable(router, "set pemi.main.cash_kib=1", "set pemi.x=rule", "set pemi.x.port=1")
    router.service("start")
    assert any("a section of type 'rule' is not known" in line for line in router.log)
    assert any("option 'cash_kib' is not known" in line for line in router.log)
    assert len(router.log) == 2, router.log
    assert router.config["port"] == "443"


def test_a_full_disk_loses_nothing(router):
    enable(router)
    router.service("start")
    before = router.read("/var/etc/pemi/config.json")
    router.uci("set pemi.main.cache_kib=1024")
    os.mknod(router.root / "dev/full", 0o020666, os.makedev(1, 7))
    (router.root / "var/etc/pemi/config.json.new").symlink_to("/dev/full")
    router.service("reload")
    assert any("cannot be written" in line for line in router.log), router.log
    assert router.read("/var/etc/pemi/config.json") == before
    assert router.instance["command"] == RUN


def test_stop_leaves_nothing(router):
    enable(router)
    router.service("start")
    router.write("/var/run/pemi/remains", "")
    router.service("stop")
    assert router.told is None
    leaves_nothing(router)


def test_wifi_is_looked_at_though_nobody_is_to_be_helped(router):
    router.uci("set pemi.main.radio=always", "set firewall.@defaults[0].flow_offloading=1")
    router.service("start")
    assert router.instance["command"] == RUN and router.log == []
    assert (router.config["firewall"], router.config["devices"]) == ("nobody", "br-lan")
    assert not (router.root / "var/etc/pemi/fw4.nft").exists()
    # Help is switched on, and off again.
    router.write("/var/state/table", "")
    enable(router)
    router.service("reload")
    assert router.config["firewall"] == "nft"
    assert (router.root / "var/etc/pemi/fw4.nft").exists()
    wait_for(router, "/var/log/firewall", "reload\n")
    router.uci("set pemi.main.enabled=0")
    router.service("reload")
    assert router.config["firewall"] == "nobody"
    assert not (router.root / "var/etc/pemi/fw4.nft").exists()
    wait_for(router, "/var/log/firewall", "reload\nreload\n")
    # It is enough that nobody wants to look.
    router.uci("set pemi.main.radio=auto")
    router.service("reload")
    assert router.told["instances"] == {}
    leaves_nothing(router)


def test_names_of_clients_are_in_the_jail_if_there_are_any(router):
    router.program("/sbin/ujail", "#!/bin/sh\n")
    enable(router)
    router.write("/tmp/dhcp.leases", "")
    (router.root / "tmp/hosts").mkdir()
    router.service("start")
    mounts = router.instance["jail"]["mount"]
    assert (mounts["/tmp/dhcp.leases"], mounts["/tmp/hosts"]) == ("0", "0")
    (router.root / "tmp/dhcp.leases").unlink()
    router.service("restart")
    assert "/tmp/dhcp.leases" not in router.instance["jail"]["mount"]


def test_helped_flows_are_kept_from_offloading_while_it_runs(router):
    enable(router)
    router.service("start")
    rule = router.read("/var/etc/pemi/fw4.nft")
    assert rule.startswith("insert rule inet fw4 forward ct mark & 0x40000000 != 0 ct state")
    assert router.read("/var/log/firewall") == "", "no offloading, no need to reload"
    router.service("stop")
    router.uci("set firewall.@defaults[0].flow_offloading=1")
    router.write("/var/state/table", "")
    router.service("start")
    wait_for(router, "/var/log/firewall", "reload\n")
    router.service("reload")
    router.uci("set pemi.main.helped_mark=256")
    router.service("reload")
    assert "0x00000100" in router.read("/var/etc/pemi/fw4.nft")
    wait_for(router, "/var/log/firewall", "reload\nreload\n")
    router.service("stop")
    wait_for(router, "/var/log/firewall", "reload\nreload\nreload\n")
    assert not (router.root / "var/etc/pemi").exists()


def wait_for(router, path, text):
    """Until the script in the background has come that far."""
    script = f"until grep -c . {path} | grep -qx {text.count(chr(10))}; do sleep 0.1; done"
    done = router.chroot("timeout", "20", "sh", "-c", script)
    assert done.returncode == 0 and router.read(path) == text, router.read(path)


def test_status_says_what_to_do_next(router):
    off = router.service("status")
    assert (off.returncode, off.stdout.splitlines()[0]) == (3, "inactive")
    command = "uci set pemi.main.enabled=1; uci commit pemi; service pemi restart"
    assert f"It is switched off. To switch it on: {command}" in off.stdout
    # What it says is what does it.
    for part in command.split("; ")[:2]:
        assert router.chroot(*part.split()).returncode == 0
    stopped = router.service("status")
    assert stopped.returncode == 3
    assert "It is switched on and does not run: service pemi start" in stopped.stdout
    router.service("restart")
    assert router.service("status").stdout == "running\n"


def test_status_flows_and_check_are_verbs(router):
    assert router.service("status").returncode == 3
    enable(router)
    router.service("start")
    status = router.service("status")
    assert (status.returncode, status.stdout) == (0, "running\n")
    flows = router.service("flows")
    assert flows.returncode == 1 and "is the pemi service running?" in flows.stderr
    clients = router.service("clients")
    assert clients.returncode == 1 and "is the pemi service running?" in clients.stderr
    check = router.service("check")
    assert check.returncode == 0 and "cache_kib = 4096" in check.stdout
    assert 'firewall = "nft"' in check.stdout, "as the service has it"
    router.uci("set pemi.main.queues=9")
    check = router.service("check")
    assert check.returncode == 1
    assert "/etc/config/pemi: section 'main', option 'queues'" in check.stderr
    assert router.log == [], "it only tells"
