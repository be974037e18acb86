# SPDX-License-Identifier: GPL-2.0-or-later
"""What every assist says of itself before it runs."""

import pytest
from testbed import cli
from testbed.assists.assist import Site
from testbed.assists.fec import Fec
from testbed.assists.off import Off
from testbed.assists.pemi import Pemi
from testbed.assists.pep import Pep
from testbed.assists.registry import ASSISTS
from testbed.assists.sidekick import Sidekick
from testbed.loads import apps
from testbed.world.programs import Programs
from testbed.world.topology import Topology

DOWNLOAD = apps.goodput(1_000_000, None, 10)
OVER_TCP = apps.connect(1, None, "tcp")
VOICE = apps.media(1, 240, 20)
SERVER = "10.0.2.2:4433"
# Each with: a command line that asks for it, its name in results, its programs, an application
# that it helps, where that one's server listens, whether the daemon can be killed.
EACH = [
    (Off(), "--off goodput", "off", [], DOWNLOAD, SERVER, False),
    (Pemi(), "--pemi goodput", "pemi", ["pemi"], DOWNLOAD, SERVER, True),
    (Pep(), "--pep connect --stack tcp", "pep", ["pep"], OVER_TCP, SERVER, False),
    (Fec(2, 3), "--fec 2 3 goodput", "fec-2-3", ["fec"], DOWNLOAD, "127.0.0.1:4434", False),
    (Sidekick("2p"), "--sidekick 2p media", "sidekick-2p", ["pemi"], VOICE, SERVER, True),
]


def test_all_of_the_registry_are_here():
    assert tuple(type(assist) for assist, *_ in EACH) == ASSISTS


@pytest.mark.parametrize("row", EACH, ids=[name for _, _, name, *_ in EACH])
def test_what_it_says_of_itself(row, tmp_path):
    assist, line, name, programs, load, address, has_daemon = row
    asked = cli.parse(line.split()).setups[0].assist
    assert asked == assist
    assert assist.name == name
    assert [path.name for path in assist.programs(Programs())] == programs
    assert assist.has_daemon == has_daemon
    assist.accepts(load)
    running = assist.at(Site(Topology(ipv6=False), load, Programs(), 0, tmp_path))
    assert running.address == address
    assert running.children == ()
    # Only Sidekick's sender is told anything.
    assert bool(running.sender_options) == isinstance(assist, Sidekick)


@pytest.mark.parametrize(
    ("assist", "load", "words"),
    [
        (Pep(), DOWNLOAD, "goodput runs over QUIC"),
        (Fec(2, 3), OVER_TCP, "connect runs over TCP"),
        (Sidekick("2p"), DOWNLOAD, "media or upload, not goodput"),
    ],
)
def test_what_it_cannot_help_is_named(assist, load, words):
    with pytest.raises(ValueError, match=words):
        assist.accepts(load)


def test_repairs_are_not_scored_as_copies():
    assert [assist.name for assist, *_ in EACH if not assist.scored] == ["fec-2-3"]
