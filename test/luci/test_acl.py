# SPDX-License-Identifier: GPL-2.0-or-later
"""The ACL grants what the pages call, and nothing else."""

import re

import acl
import pytest

APP = acl.FILE.parents[5]
SOURCES = {path.name: path.read_text() for path in APP.glob("htdocs/**/*.js")}
# What LuCI's own widgets for networks and devices ask for.
WIDGETS = {
    ("luci-rpc", "getHostHints"),
    ("luci-rpc", "getNetworkDevices"),
    ("network.interface", "dump"),
}
# uci's methods come with every login (luci-base); which configurations does not.
BASE = "uci"
# Holds secrets and is not granted; who may read it anyway is warned of more.
NOT_GRANTED = {"network"}


def declared() -> set[tuple[str, str]]:
    """Object and method of each rpc.declare of the pages."""
    found = set()
    for name, text in SOURCES.items():
        blocks = re.findall(r"rpc\.declare\(\{(.*?)\}\)", text, re.DOTALL)
        assert len(blocks) == text.count("rpc.declare("), name
        for block in blocks:
            fields = dict(re.findall(r"(object|method): '([^']+)'", block))
            found.add((fields["object"], fields["method"]))
    return found


def actions() -> set[str]:
    """What the buttons have the init script do."""
    calls = re.findall(r"(?<!function )\binit\(([^)]*)\)", SOURCES["control.js"])
    return {word for call in calls for word in re.findall(r"'(\w+)'", call)}


def test_nothing_is_granted_by_a_pattern():
    grants = acl.Acl("read", "write")
    for scope, rules in grants.scopes.items():
        for rule in rules:
            assert not re.search(r"[*?\[\]]", "".join(rule)), (scope, rule)


def test_calls_and_grants_are_the_same():
    calls = {call for call in declared() if call[0] != BASE}
    assert set(acl.Acl("read", "write").scopes["ubus"]) == calls | WIDGETS
    # Reading changes nothing: neither files nor services.
    reading = acl.Acl("read").scopes
    assert ("file", "exec") not in reading["ubus"]
    assert {function for _, function in reading["file"]} == {"list"}


def test_files_are_those_that_the_pages_name():
    (queues,) = re.findall(r"const QUEUES = '([^']+)'", SOURCES["api.js"])
    (script,) = re.findall(r"const SCRIPT = '([^']+)'", SOURCES["control.js"])
    lines = {(f"{script} {action}", "exec") for action in actions()}
    assert len(lines) == 4
    assert set(acl.Acl("write").scopes["file"]) == lines
    assert acl.Acl("read").scopes["file"] == [(queues, "list")]


def test_configurations_are_those_that_the_pages_load():
    loaded = {name for text in SOURCES.values() for name in re.findall(r"uci\.load\('(\w+)'", text)}
    assert {name for name, _ in acl.Acl("read").scopes["uci"]} == loaded - NOT_GRANTED
    assert acl.Acl("write").scopes["uci"] == [("pemi", "write")]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("/etc/init.d/firewall", ["stop"]),
        ("/etc/init.d/pemi", []),
        ("/etc/init.d/pemi", ["check"]),
        ("/etc/init.d/pemi", ["start", "x"]),
        ("/etc/init.d/pemi", ["start; reboot"]),
        ("/bin/sh", ["-c", "reboot"]),
    ],
)
def test_nothing_else_can_be_run(command, words):
    line = {"command": command, "params": words}
    assert not acl.Acl("read", "write").allows("file", "exec", line)
    assert not acl.Acl("read", "write").allows("rc", "init", {"name": "firewall", "action": "stop"})


def test_a_reader_starts_and_stops_nothing():
    for action in actions():
        line = {"command": "/etc/init.d/pemi", "params": [action]}
        assert acl.Acl("read", "write").allows("file", "exec", line)
        assert not acl.Acl("read").allows("file", "exec", line)
