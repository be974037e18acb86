// SPDX-License-Identifier: GPL-2.0-or-later
//! Sidekick on the built daemon while somebody floods it with addresses that are not his.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::num::NonZeroU8;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lab::{Net, PORT};
use pemi_quack::{Hello, Interval, Message, Width};
use serde_json::json;

const ROUTER: &str = "10.77.0.1";
const SIDEKICK: u16 = 5103;
/// What a flood sends in a second.
const FLOOD: u32 = 20_000;
const HONEST: u8 = 12;
/// When a sender that gets no answer says HELLO (`sidekick/src/sender/link.rs`).
const TRIES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(3)];

fn hello(number: u8, cookie: u64) -> Vec<u8> {
    let hello = Hello {
        token: 1000 + u64::from(number),
        cookie,
        width: Width::Bits32,
        threshold: NonZeroU8::MIN,
        interval: Interval::Adaptive,
        offset: 1,
        client_port: 40_000 + u16::from(number),
        server: "10.77.1.2".parse().unwrap(),
        server_port: PORT,
        losses: 0,
    };
    let mut bytes = Vec::new();
    Message::Hello(hello).write(&mut bytes);
    bytes
}

/// An IPv4 packet with a HELLO from some address and port of the network. The kernel fills
/// in length and checksum of the header; that of UDP may be left out.
fn spoofed(number: u64) -> Vec<u8> {
    let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    let payload = hello(0, random);
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.extend([10, 77, 0, 3 + (random % 250) as u8]);
    packet.extend([10, 77, 0, 1]);
    packet.extend(((random >> 16) as u16 | 1024).to_be_bytes());
    packet.extend(SIDEKICK.to_be_bytes());
    packet.extend((8 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

/// Sends until it is over; tells how many in a second.
fn flood(net: &Net, over: &AtomicBool) -> u32 {
    let socket =
        net.inside("c", || pemi::sys::socket::raw(libc::AF_INET, libc::IPPROTO_RAW)).unwrap();
    let to: IpAddr = ROUTER.parse().unwrap();
    let (begin, mut sent) = (Instant::now(), 0);
    while !over.load(Ordering::Relaxed) {
        for _ in 0..FLOOD / 200 {
            // A full buffer is a packet that did not leave.
            sent += u32::from(
                pemi::sys::socket::send_to(socket.as_fd(), &spoofed(u64::from(sent)), to).is_ok(),
            );
        }
        let due = begin + Duration::from_secs(1) / FLOOD * sent;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    (f64::from(sent) / begin.elapsed().as_secs_f64()) as u32
}

/// Says HELLO as a sender does; tells how often it took until it was accepted.
fn greet(socket: &UdpSocket, number: u8) -> Option<usize> {
    let (begin, mut cookie, mut buffer) = (Instant::now(), 0, [0; 2048]);
    for (tried, at) in TRIES.into_iter().enumerate() {
        thread::sleep((begin + at).saturating_duration_since(Instant::now()));
        socket.send(&hello(number, cookie)).unwrap();
        while let Ok(len) = socket.recv(&mut buffer) {
            match Message::parse(&buffer[..len]) {
                Ok(Message::Cookie { cookie: new, .. }) => {
                    cookie = new;
                    socket.send(&hello(number, cookie)).unwrap();
                }
                Ok(Message::Accept { .. }) => return Some(tried + 1),
                _ => {}
            }
        }
    }
    None
}

#[test]
fn twelve_are_answered_amid_a_flood_with_addresses_of_others() {
    let Some(net) = Net::new() else { return };
    let file = net.file("pemi.json");
    let text = json!({"device": ["lan0"], "sidekick": {"enabled": true, "port": SIDEKICK}});
    fs::write(&file, text.to_string()).unwrap();
    let mut daemon = net.start(&["--config", file.to_str().unwrap()]);
    let sockets: Vec<UdpSocket> = (1..=HONEST)
        .map(|number| {
            let address = format!("10.77.0.{}", 100 + number);
            let add = ["-n", &net.at("c"), "addr", "add", &format!("{address}/24"), "dev", "eth0"];
            assert!(Command::new("ip").args(add).status().unwrap().success());
            let socket = net.socket("c", &address, 0);
            socket.connect((ROUTER, SIDEKICK)).unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
            socket
        })
        .collect();
    let over = AtomicBool::new(false);
    let (tries, rate) = thread::scope(|scope| {
        let flooding = scope.spawn(|| flood(&net, &over));
        thread::sleep(Duration::from_millis(500));
        let honest: Vec<_> = (1..)
            .zip(&sockets)
            .map(|(number, socket)| scope.spawn(move || greet(socket, number)))
            .collect();
        let tries: Vec<_> = honest.into_iter().map(|thread| thread.join().unwrap()).collect();
        over.store(true, Ordering::Relaxed);
        (tries, flooding.join().unwrap())
    });
    let status = daemon.until(|_| true);
    println!("{rate} HELLOs a second; tries: {tries:?}; {}", status["sidekick"]);
    assert!(rate > FLOOD / 2, "no flood: {rate} a second");
    assert!(tries.iter().all(Option::is_some), "{tries:?}");
    assert_eq!(status["sidekick"]["sessions"], HONEST);
    assert_eq!(status["errors"], json!([]));
}
