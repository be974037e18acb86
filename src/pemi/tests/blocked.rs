// SPDX-License-Identifier: GPL-2.0-or-later
//! What the router's own filter drops stays dropped: nothing of it arrives by way of a
//! copy, nobody is pinged or looked for because of it, and nobody's log tells of it.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::thread;
use std::time::Duration;

use lab::packet::{long, short};
use lab::sniff::{Kind, Sniffer};
use lab::{Daemon, ENDS, Net, PORT};
use serde_json::{Value, json};

/// All that the engine sends again to somebody silent it has sent by then.
const SILENCE: Duration = Duration::from_millis(800);
/// Where no client's socket is: what arrives there was let in by somebody else.
const TARGETS: [(u16, u8, usize); 2] = [(161, 2, 86), (162, 0, 1200)];
/// As many as the first flight's copies would carry, and some more.
const PAYLOADS: u16 = 16;
/// Addresses of the LAN that a stranger tries.
const SCANNED: u16 = 2048;
/// Zones that may not begin anything with the LAN: namespace and addresses.
const STRANGERS: [(&str, [&str; 2]); 2] =
    [("s", ["10.77.1.2", "fd77:1::2"]), ("g", ["10.77.2.2", "fd77:2::2"])];

/// The firewall of a home: the LAN may begin connections and nobody else may, with the
/// LAN, whether its owner writes it with iptables or with nft.
#[derive(Clone, Copy, Debug)]
enum Filter {
    Iptables,
    Nft,
}

impl Filter {
    fn install(self, net: &Net) {
        match self {
            Filter::Iptables => {
                for tool in ["iptables-nft", "ip6tables-nft"] {
                    for rule in [
                        "-m conntrack --ctstate ESTABLISHED -j ACCEPT",
                        "-i lan0 -j ACCEPT",
                        "-o lan0 -j DROP",
                    ] {
                        net.tool("r", &format!("{tool} -A FORWARD {rule}"));
                    }
                }
            }
            Filter::Nft => {
                let file = net.file("filter.nft");
                let rules = "table inet home { chain forward { \
                     type filter hook forward priority filter; policy accept; \
                     ct state established accept; iifname lan0 accept; oifname lan0 drop; }; }";
                fs::write(&file, rules).unwrap();
                net.tool("r", &format!("nft -f {}", file.display()));
            }
        }
    }
}

/// Something that may open a door, and then what is to get in.
fn knock(net: &Net, part: &str, from: &str, to: &str) {
    let socket = net.socket(part, from, PORT);
    let to: IpAddr = to.parse().unwrap();
    for (port, kind, len) in TARGETS {
        socket.send_to(&long(kind, len), (to, port)).unwrap();
        for payload in 0..PAYLOADS {
            socket
                .send_to(&[b"let me in ", &payload.to_be_bytes()[..]].concat(), (to, port))
                .unwrap();
        }
    }
}

/// The same to addresses at which nobody is.
fn scan(net: &Net, part: &str, from: &str) {
    let socket = net.socket(part, from, PORT);
    for host in 0..SCANNED {
        let to = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 1, host);
        socket.send_to(&long(0, 86), (to, 161)).unwrap();
    }
}

/// Neighbours on the LAN that the router has asked for, but for the client.
fn strange_neighbours(net: &Net) -> usize {
    let known = net.tool("r", "ip neigh show dev lan0");
    known
        .lines()
        .filter_map(|line| line.split(' ').next()?.parse::<IpAddr>().ok())
        .filter(|address| match address {
            IpAddr::V4(address) => *address != std::net::Ipv4Addr::new(10, 77, 0, 2),
            IpAddr::V6(address) => address.segments()[6] == 1,
        })
        .count()
}

fn count(status: &Value, pointer: &str) -> u64 {
    status.pointer(pointer).and_then(Value::as_u64).unwrap()
}

/// What got through to the LAN in spite of all, by name.
fn leaks(net: &Net, lan: &Sniffer, daemon: &mut Daemon) -> HashMap<&'static str, u64> {
    thread::sleep(SILENCE);
    let mut seen = HashMap::new();
    let mut see = |what, count: u64| *seen.entry(what).or_default() += count;
    for frame in lan.take() {
        match frame.kind {
            Kind::Udp { from: (_, PORT), payload, .. } if payload.starts_with(b"let me in") => {
                see("payloads", 1);
            }
            Kind::Udp { from: (_, PORT), .. } => see("openings", 1),
            Kind::Echo => see("pings", 1),
            Kind::Neighbour(IpAddr::V6(who)) if who.segments()[6] == 1 => see("searches", 1),
            _ => {}
        }
    }
    see("neighbours", strange_neighbours(net) as u64);
    let status = daemon.until(|_| true);
    see("copies", count(&status, "/resent/packets"));
    see("probes", count(&status, "/probes/sent"));
    see("flows", count(&status, "/flows/active"));
    see("log lines", daemon.log().lines().filter(|line| line.contains("flow ")).count() as u64);
    seen.retain(|_, count| *count > 0);
    seen
}

/// A connection that a client begins is helped: some of it arrives twice.
fn is_helped(net: &Net, (client, server): (&str, &str)) {
    let client = net.socket("c", client, 0);
    let server = net.socket("s", server, PORT);
    client.send_to(&long(0, 1200), server.local_addr().unwrap()).unwrap();
    server.recv(&mut [0; 2048]).expect("nothing arrives at the server");
    let sent = [long(0, 1200), long(2, 1100), long(2, 700), short(1000), short(900)];
    for datagram in &sent {
        server.send_to(datagram, client.local_addr().unwrap()).unwrap();
    }
    let mut arrived = vec![0; sent.len()];
    let mut buffer = [0; 2048];
    while arrived.contains(&0) || arrived.iter().all(|count| *count < 2) {
        let len = client.recv(&mut buffer).expect("no copy arrives");
        let which = sent.iter().position(|datagram| buffer[..len] == **datagram);
        arrived[which.expect("altered")] += 1;
    }
}

fn nothing_gets_in(filter: Filter, direction: &str) {
    let config = json!({"device": ["lan0"], "direction": direction});
    let Some(net) = Net::ruled(&config) else { return };
    net.zone("g", "guest0", 2);
    filter.install(&net);
    let mut daemon = net.start(&["--device", "lan0", "--direction", direction]);
    let lan = Sniffer::new(&net, "c");
    for (part, addresses) in STRANGERS {
        for (from, (client, _)) in addresses.into_iter().zip(ENDS) {
            knock(&net, part, from, client);
        }
        scan(&net, part, addresses[1]);
    }
    let leaks = leaks(&net, &lan, &mut daemon);
    assert!(leaks.is_empty(), "{filter:?}, direction {direction}: {leaks:?}");
    for ends in ENDS {
        is_helped(&net, ends);
    }
}

#[test]
fn nothing_gets_past_iptables() {
    nothing_gets_in(Filter::Iptables, "down");
}

#[test]
fn nothing_gets_past_a_table_of_the_owners() {
    nothing_gets_in(Filter::Nft, "down");
}

#[test]
fn nothing_gets_past_with_both_directions() {
    nothing_gets_in(Filter::Iptables, "both");
}

/// With `direction` `both` the engine greets a silent server again; not for somebody
/// whose greeting the firewall has dropped.
#[test]
fn a_client_that_is_locked_in_reaches_nobody() {
    let config = json!({"device": ["lan0"], "direction": "both"});
    let Some(net) = Net::ruled(&config) else { return };
    for tool in ["iptables-nft", "ip6tables-nft"] {
        net.tool("r", &format!("{tool} -A FORWARD -i lan0 -j DROP"));
    }
    let mut daemon = net.start(&["--device", "lan0", "--direction", "both"]);
    let wan = Sniffer::new(&net, "s");
    for (client, server) in ENDS {
        let server: IpAddr = server.parse().unwrap();
        for _ in 0..4 {
            let client = net.socket("c", client, 0);
            client.send_to(&long(0, 1200), (server, PORT)).unwrap();
        }
    }
    thread::sleep(SILENCE);
    let greetings = wan.take();
    let greetings = greetings.iter().filter(|frame| matches!(frame.kind, Kind::Udp { .. })).count();
    assert_eq!(greetings, 0, "the server was greeted");
    assert_eq!(count(&daemon.until(|_| true), "/resent/packets"), 0);
}
