# SPDX-License-Identifier: GPL-2.0-or-later
"""The daemon's helper: how it is started, and what its quACKs take of the link."""

import json

import pytest
from testbed.assists import sidekick
from testbed.assists.assist import Site
from testbed.assists.sidekick import Sidekick
from testbed.loads import apps
from testbed.world.programs import Programs
from testbed.world.topology import Topology

HEAD = "us,dir,proto,sport,dport,len,head,hash,fate,out_us\n"
QUACK, ACCEPT, HELLO = "01050000" + "00" * 12, "01030000" + "00" * 12, "01010000" + "00" * 12
PAYLOAD = "40" + "00" * 15


def truth(tmp_path, *rows):
    path = tmp_path / "wifi.csv"
    lines = [
        f"{us},{way},17,{sport},{dport},{length},{head},00,{fate},\n"
        for us, way, sport, dport, length, head, fate in rows
    ]
    path.write_text(HEAD + "".join(lines))
    return path


def test_quacks_are_counted_as_they_are_on_the_link(tmp_path):
    path = truth(
        tmp_path,
        (0, "ba", 5000, 5103, 48, HELLO, "ok"),
        (10, "ab", 5103, 5000, 20, ACCEPT, "ok"),
        (1e6, "ba", 4000, 4433, 240, PAYLOAD, "ok"),
        (2e6, "ba", 4000, 4433, 240, PAYLOAD, "lost"),
        (3e6, "ba", 4000, 4433, 240, PAYLOAD, "ok"),
        # Also one that was lost.
        (2e6, "ab", 5103, 5000, 61, QUACK, "ok"),
        (3e6, "ab", 5103, 5000, 61, QUACK, "lost"),
        # What the server says is no part of the call.
        (3e6, "ab", 4433, 4000, 33, QUACK, "ok"),
    )
    found = sidekick.overhead(path, 4433, 4)
    assert found == {
        "quacks": 2,
        "quack_bytes": 2 * 89,
        "other_bytes": 76 + 48,
        "flow_bytes": 3 * 268,
        "quack_bytes_per_s": 89,
        "quack_percent": pytest.approx(100 * 178 / 804, abs=0.001),
    }
    assert sidekick.overhead(path, 4433, 6)["quack_bytes"] == 2 * 109


def test_without_a_call_there_is_no_overhead(tmp_path):
    assert sidekick.overhead(truth(tmp_path), 4433, 4) is None


@pytest.mark.parametrize("ipv6", [False, True])
def test_sender_and_router_mean_the_same(ipv6, tmp_path):
    site = Site(Topology(ipv6=ipv6), apps.media(1, 240, 20), Programs(), 0, tmp_path)
    one = Sidekick("10ms").at(site)
    router = "[fd00:0:0:1::1]:5103" if ipv6 else "10.0.1.1:5103"
    asked = ("--sidekick-interval", "10ms", "--threshold", "8")
    assert one.sender_options == ("--sidekick", router, *asked)
    helper = sidekick.config("10ms")["sidekick"]
    assert helper == {"enabled": True, "port": 5103, "interval": "10ms", "threshold": 8}


def test_what_both_ends_measured_stands_together(tmp_path):
    app = apps.media(1, 240, 20)
    client = app.measured(None, 'listening\n{"sent":50,"rtt_ms":52.0}\n')
    server = {"frames": 50, "dejitter_ms": {"p99": 52.0}}
    said = f'{{"listening":"10.0.2.2:4433"}}\n{json.dumps(server)}\n'
    assert app.completed(client, said) == {"sent": 50, "rtt_ms": 52.0, **server}
