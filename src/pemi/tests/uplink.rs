// SPDX-License-Identifier: GPL-2.0-or-later
//! Copies on the way up: they reach the server as if from the client, also where
//! the router translates addresses, and only if both directions are asked for.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use lab::{Daemon, ENDS, Net, PORT};
use serde_json::Value;

/// Longer than the engine waits for a silent server's answer.
const SILENCE: Duration = Duration::from_millis(600);

/// A client's first datagram of QUIC version 1.
fn initial() -> Vec<u8> {
    let mut datagram = vec![0xc3, 0, 0, 0, 1, 4, 1, 2, 3, 4, 4, 9, 9, 9, 9, 0];
    let body = 1200 - datagram.len() - 2;
    datagram.extend((0x4000 | body as u16).to_be_bytes());
    datagram.extend((0..body).map(|at| (at * 31) as u8));
    datagram
}

/// Whence it came.
fn hear(server: &UdpSocket, wanted: &[u8]) -> SocketAddr {
    let mut buffer = [0; 2048];
    let (len, sender) = loop {
        match server.recv_from(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => break result.expect("nothing arrives"),
        }
    };
    assert!(buffer[..len] == *wanted, "altered");
    sender
}

fn count(daemon: &mut Daemon, pointer: &str) -> u64 {
    daemon.until(|_| true).pointer(pointer).and_then(Value::as_u64).unwrap()
}

/// The client greets a server that stays silent.
fn greet(net: &Net, (client, server): (&str, &str)) -> (UdpSocket, UdpSocket, SocketAddr) {
    let client = net.socket("c", client, 50_000);
    let server = net.socket("s", server, PORT);
    client.send_to(&initial(), server.local_addr().unwrap()).unwrap();
    let sender = hear(&server, &initial());
    (client, server, sender)
}

#[test]
fn a_silent_server_is_greeted_again() {
    let Some(net) = Net::new() else { return };
    let mut daemon = net.start(&["--device", "lan0", "--direction", "both"]);
    for (n, ends) in (1..).zip(ENDS) {
        let (client, server, sender) = greet(&net, ends);
        assert_eq!(sender, client.local_addr().unwrap());
        assert_eq!(hear(&server, &initial()), sender, "the copy");
        assert!(count(&mut daemon, "/resent/packets") >= n);
        assert_eq!(count(&mut daemon, "/packets/up"), n, "no copy comes into the queue");
    }
    assert_eq!(count(&mut daemon, "/resent/errors"), 0);
    daemon.signal(libc::SIGTERM);
    let (status, log) = daemon.end();
    assert!(status.success() && log.contains(" 0 could not be;"), "{status} {log}");
}

#[test]
fn copies_are_translated_like_their_flow() {
    let Some(net) = Net::new() else { return };
    // As in the README: only copies on their way down are not tracked.
    let marked = "-m mark --mark 0x20000000/0x20000000";
    for rule in [
        "-t nat -A POSTROUTING -o wan0 -j MASQUERADE",
        &format!("-t raw -A OUTPUT {marked} -p udp --dport {PORT} -j RETURN"),
        &format!("-t raw -A OUTPUT {marked} -j CT --notrack"),
    ] {
        let status = Command::new("ip")
            .args(["netns", "exec", &net.at("r"), "iptables-nft"])
            .args(rule.split(' '))
            .status()
            .unwrap();
        assert!(status.success(), "{rule}");
    }
    let _daemon = net.start(&["--direction", "both"]);
    let (client, server, sender) = greet(&net, ENDS[0]);
    assert_ne!(sender.ip(), client.local_addr().unwrap().ip());
    assert_eq!(hear(&server, &initial()), sender, "the copy");
}

#[test]
fn not_unless_it_is_asked_for() {
    let Some(net) = Net::new() else { return };
    let mut daemon = net.start(&["--device", "lan0"]);
    let (_client, server, _) = greet(&net, ENDS[0]);
    server.set_read_timeout(Some(SILENCE)).unwrap();
    assert!(server.recv(&mut [0; 2048]).is_err(), "a copy");
    assert_eq!(count(&mut daemon, "/resent/packets"), 0);
}
