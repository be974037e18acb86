// SPDX-License-Identifier: GPL-2.0-or-later
//! Nobody can have the router send much more than was sent to it: where the firewall
//! lets a stranger in, too, copies are for those who have asked for something.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::net::IpAddr;
use std::thread;
use std::time::Duration;

use lab::packet::{long, short};
use lab::sniff::{Kind, Sniffer};
use lab::{ENDS, Net, PORT};
use serde_json::{Value, json};

/// All that the engine sends again to somebody silent it has sent by then.
const SILENCE: Duration = Duration::from_millis(800);
/// RFC 9000, section 8: to an address that has not answered an endpoint sends so
/// many times what came.
const LIMIT: usize = 3;
/// Ports of the client that a stranger tries.
const TRIED: u16 = 2048;

fn count(status: &Value, pointer: &str) -> u64 {
    status.pointer(pointer).and_then(Value::as_u64).unwrap()
}

/// With `direction` both the client's own answers are looked at as well.
fn strangers(direction: &str, filter: &[&str]) {
    let config = json!({"device": ["lan0"], "direction": direction});
    let Some(net) = Net::ruled(&config) else { return };
    for rule in filter {
        for tool in ["iptables-nft", "ip6tables-nft"] {
            net.tool("r", &format!("{tool} -A FORWARD {rule}"));
        }
    }
    let mut daemon = net.start(&["--device", "lan0", "--direction", direction]);
    let lan = Sniffer::new(&net, "c");
    for (client, stranger) in ENDS {
        // Somebody listens there and does not answer, so the kernel does not either.
        let silent = net.socket("c", client, 161);
        let from = net.socket("s", stranger, PORT);
        for _ in 0..TRIED {
            from.send_to(&long(0, 200), silent.local_addr().unwrap()).unwrap();
        }
        let to: IpAddr = client.parse().unwrap();
        for port in 20_000..20_000 + TRIED {
            from.send_to(&long(0, 200), (to, port)).unwrap();
        }
    }
    thread::sleep(SILENCE);
    let frames = lan.take();
    for (_, stranger) in ENDS {
        let arrived = frames.iter().filter(|frame| frame.is_from(stranger)).count();
        assert!(arrived <= 2 * usize::from(TRIED), "{arrived} datagrams of {stranger} arrived");
        assert!(arrived >= usize::from(TRIED), "the firewall lets them in");
    }
    assert_eq!(frames.iter().filter(|frame| frame.kind == Kind::Echo).count(), 0, "pings");
    let status = daemon.until(|_| true);
    assert_eq!(count(&status, "/resent/packets"), 0, "copies");
    assert_eq!(count(&status, "/probes/sent"), 0, "probes");
    assert_eq!(daemon.log().matches("flow ").count(), 0, "log lines");
}

#[test]
fn strangers_get_nothing_twice() {
    strangers("down", &[]);
}

#[test]
fn strangers_get_nothing_twice_with_both_directions() {
    strangers("both", &[]);
}

#[test]
fn a_pinhole_is_for_originals() {
    let rules = [
        "-m conntrack --ctstate ESTABLISHED -j ACCEPT",
        "-p udp --dport 161 -j ACCEPT",
        "-o lan0 -j DROP",
    ];
    strangers("down", &rules);
}

/// A client that has asked and then says nothing may not have asked at all: somebody
/// else may use its address.
#[test]
fn a_silent_client_gets_three_times_what_came_at_most() {
    let Some(net) = Net::ruled(&json!({"device": ["lan0"]})) else { return };
    let mut daemon = net.start(&["--device", "lan0"]);
    let lan = Sniffer::new(&net, "c");
    let flights: [&[Vec<u8>]; 3] = [
        &[long(0, 1200)],
        &[long(0, 1200), long(2, 1200), long(2, 700)],
        &[&[long(0, 1200), long(2, 1200)][..], &vec![short(1000); 20]].concat(),
    ];
    let mut copies = 0;
    for (client, server) in ENDS {
        for flight in flights {
            let client = net.socket("c", client, 0);
            let server = net.socket("s", server, PORT);
            client.send_to(&long(0, 1200), server.local_addr().unwrap()).unwrap();
            server.recv(&mut [0; 2048]).expect("nothing arrives at the server");
            for datagram in flight {
                server.send_to(datagram, client.local_addr().unwrap()).unwrap();
            }
            thread::sleep(SILENCE);
            let headers = if client.local_addr().unwrap().is_ipv4() { 28 } else { 48 };
            let came: usize = flight.iter().map(|datagram| datagram.len() + headers).sum();
            let frames = lan.take();
            let datagrams = frames.iter().filter(|frame| matches!(frame.kind, Kind::Udp { .. }));
            let went: usize = datagrams.map(|frame| frame.len).sum();
            assert!(went >= came, "{went} of {came} bytes arrive");
            assert!(went <= LIMIT * came, "{went} bytes for {came}");
            copies += went - came;
        }
    }
    assert!(copies > 0, "there are copies");
    assert!(count(&daemon.until(|_| true), "/resent/packets") > 0);
}
