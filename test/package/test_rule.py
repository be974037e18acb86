# SPDX-License-Identifier: GPL-2.0-or-later
"""The init script and the rule of ours that fw4 has taken in, where nothing is offloaded."""

FW4 = """table inet fw4 {
	chain forward { # handle 2
		ct mark & 0x40000000 != 0x00000000 ct state established,related accept \
comment "!pemi: helped flows are not offloaded" # handle 42
		ct state vmap { established : accept } comment "!fw4: Handle forwarded flows" # handle 7
		ct mark & 0x00000100 != 0x00000000 accept \
comment "!pemi: helped flows are not offloaded" # handle 43
	}
}
"""


def test_no_rule_stays_in_the_firewall_without_offloading_either(router):
    """fw4 takes the rule in whenever it is loaded, and nobody reloads it for us then."""
    router.uci("set pemi.main.enabled=1")
    router.service("start")
    router.write("/var/state/fw4", FW4)
    router.write("/var/log/nft", "")
    router.service("stop")
    deleted = [line for line in router.read("/var/log/nft").splitlines() if "delete rule" in line]
    assert deleted == [f"nft delete rule inet fw4 forward handle {handle}" for handle in (42, 43)]
    assert router.read("/var/log/firewall") == "", "no offloading, no need to reload"


def test_a_rule_with_another_mark_replaces_that_of_before(router):
    router.uci("set pemi.main.enabled=1")
    router.service("start")
    router.write("/var/state/fw4", FW4)
    router.write("/var/log/nft", "")
    router.service("reload")
    assert "delete rule" not in router.read("/var/log/nft"), "nothing has changed"
    router.uci("set pemi.main.helped_mark=256")
    router.service("reload")
    assert "nft delete rule inet fw4 forward handle 42" in router.read("/var/log/nft")
