# SPDX-License-Identifier: GPL-2.0-or-later
"""What servers say of their connections when these are over."""

from testbed.experiment import sender


def test_connections_are_summed():
    said = (
        '{"listening":"10.0.2.2:4433"}\n'
        '{"sender":{"packets":100,"lost":3,"spurious":1}}\n'
        "something else\n"
        '{"sender":{"packets":50,"lost":0,"spurious":0}}\n'
    )
    assert sender(said) == {"packets": 150, "lost": 3, "spurious": 1}


def test_what_one_does_not_tell_is_not_known():
    said = (
        '{"sender":{"packets":1,"lost":0,"spurious":null}}\n'
        '{"sender":{"packets":1,"lost":0,"spurious":2}}'
    )
    assert sender(said) == {"packets": 2, "lost": 0, "spurious": None}


def test_servers_of_others_say_nothing_of_it():
    assert sender("nginx: something\n") is None
