// SPDX-License-Identifier: GPL-2.0-or-later
//! With two routing tables, as for a VPN: copies on the way up leave as their originals
//! did, and under the same address. Where the client's packets do not go nothing of them may be seen.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use lab::packet::long;
use lab::sniff::{Kind, Sniffer};
use lab::{Daemon, ENDS, Net, PATIENCE, PORT};
use serde_json::{Value, json};

/// Longer than the engine waits for a silent server's answer.
const SILENCE: Duration = Duration::from_millis(600);
/// Of each client to each server.
const GREETINGS: usize = 4;
const TOOLS: [&str; 2] = ["iptables-nft", "ip6tables-nft"];

/// A router with a VPN that carries nothing yet.
fn router() -> Option<Net> {
    let net = Net::ruled(&json!({"device": ["lan0"], "direction": "both"}))?;
    net.zone("v", "vpn0", 3);
    for (version, gateway) in [("-4", "10.77.3.2"), ("-6", "fd77:3::2")] {
        net.ip("r", &format!("{version} route add default via {gateway} dev vpn0 table 100"));
    }
    // A tunnel has no neighbours to ask for, so IPv4 needs no route for what is to leave by it.
    net.ip("r", "link set vpn0 arp off");
    Some(net)
}

/// The client's greetings that nobody answers; how many frames of the client's came to
/// the server by the WAN, and to the other end of the VPN. What the router translates has
/// its own address there.
fn greet(net: &Net, daemon: &mut Daemon, translated: bool) -> (usize, usize) {
    let links = ["s", "v"].map(|part| Sniffer::new(net, part));
    let before = resent(daemon);
    for (client, server) in ENDS {
        let server: IpAddr = server.parse().unwrap();
        for _ in 0..GREETINGS {
            let client = net.socket("c", client, 0);
            client.send_to(&long(0, 1200), (server, PORT)).unwrap();
        }
    }
    thread::sleep(SILENCE);
    // A copy that finds no route by the device of its original is not sent.
    let originals = ENDS.len() * GREETINGS;
    let all = originals..=originals + resent(daemon) - before;
    let (mut came, start) = ([0, 0], Instant::now());
    loop {
        for ((count, link), own) in came.iter_mut().zip(&links).zip(["10.77.1.1", "10.77.3.1"]) {
            for frame in link.take() {
                let Kind::Udp { from, to: (_, PORT), .. } = frame.kind else { continue };
                let own: IpAddr = own.parse().unwrap();
                assert!(from.0.is_ipv6() || (from.0 == own) == translated, "{from:?}");
                *count += 1;
            }
        }
        if all.contains(&came.iter().sum()) {
            return came.into();
        }
        assert!(start.elapsed() < PATIENCE, "{came:?} of {all:?} arrive");
    }
}

fn resent(daemon: &mut Daemon) -> usize {
    let status = daemon.until(|_| true);
    status.pointer("/resent/packets").and_then(Value::as_u64).unwrap() as usize
}

#[test]
fn nothing_leaves_outside_a_vpn() {
    let Some(net) = router() else { return };
    let mut daemon = net.start(&["--device", "lan0", "--direction", "both"]);
    let (wan, vpn) = greet(&net, &mut daemon, false);
    assert_eq!(vpn, 0);
    assert!(wan > ENDS.len() * GREETINGS, "there are copies");
    for version in ["-4", "-6"] {
        net.ip("r", &format!("{version} rule add iif lan0 lookup 100"));
    }
    let (wan, vpn) = greet(&net, &mut daemon, false);
    assert_eq!(wan, 0, "beside the VPN; {vpn} in it");
    assert!(vpn > ENDS.len() * GREETINGS, "there are copies, in the VPN");
}

/// What the owner marks takes the VPN, whichever device it comes from: the mark says
/// it for the copies, too.
#[test]
fn nothing_leaves_outside_a_vpn_for_marked_packets() {
    let Some(net) = router() else { return };
    for version in ["-4", "-6"] {
        net.ip("r", &format!("{version} rule add fwmark 0x100/0x100 lookup 100"));
    }
    for tool in TOOLS {
        net.tool("r", &format!("{tool} -t mangle -A PREROUTING -i lan0 -j MARK --or-mark 0x100"));
    }
    let mut daemon = net.start(&["--device", "lan0", "--direction", "both"]);
    let (wan, vpn) = greet(&net, &mut daemon, false);
    assert_eq!(wan, 0, "beside the VPN; {vpn} in it");
    assert_eq!(vpn, 2 * ENDS.len() * GREETINGS, "each with its copy");
}

/// IPv4 has the router's address in a VPN, copies as well.
#[test]
fn copies_are_translated_in_a_vpn() {
    let Some(net) = router() else { return };
    net.tool("r", "iptables-nft -t nat -A POSTROUTING -o vpn0 -j MASQUERADE");
    for version in ["-4", "-6"] {
        net.ip("r", &format!("{version} rule add iif lan0 lookup 100"));
    }
    let mut daemon = net.start(&["--device", "lan0", "--direction", "both"]);
    let (wan, vpn) = greet(&net, &mut daemon, true);
    assert_eq!(wan, 0, "beside the VPN; {vpn} in it");
    assert!(vpn > ENDS.len() * GREETINGS, "there are copies");
}
