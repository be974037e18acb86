// SPDX-License-Identifier: GPL-2.0-or-later
//! A sender, a router, and a hop of one millisecond between them that loses two packets, in
//! virtual time: neither end knows a socket or a clock.
//!
//! ```sh
//! cargo run -p pemi-sidekick --example both_ends
//! ```

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use pemi_sidekick::Interval;
use pemi_sidekick::router::{Config, Sessions, Via};
use pemi_sidekick::sender::{Options, Sender};

/// A voice call: a packet every 20 ms.
const GAP_MS: u64 = 20;
const PACKETS: u64 = 100;
const LOST: [u64; 2] = [40, 81];

/// One direction of the hop. What is put in comes out a millisecond later.
#[derive(Default)]
struct Hop(VecDeque<(u64, Vec<u8>)>);

impl Hop {
    fn put(&mut self, now_ms: u64, bytes: Vec<u8>) {
        self.0.push_back((now_ms + 1, bytes));
    }

    fn take(&mut self, now_ms: u64) -> Option<Vec<u8>> {
        if self.0.front()?.0 > now_ms { None } else { self.0.pop_front().map(|(_, bytes)| bytes) }
    }
}

/// Stands for an encrypted packet: its bytes look random.
fn packet(number: u64) -> Vec<u8> {
    let word = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [word, word.rotate_left(29) ^ number].iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Which packets the sender found lost, and how long after it had sent them, in milliseconds.
fn run() -> Vec<(u64, u64)> {
    let client: SocketAddr = ([192, 168, 1, 2], 50_000).into();
    let server: SocketAddr = ([192, 0, 2, 1], 4433).into();
    let via = Via { device: 1, local: [192, 168, 1, 1].into() };

    // Of a good generator of random numbers, as is the router's key.
    let mut options = Options::new(0x1234_5678_9abc_def0, client.port(), server);
    options.interval = Interval::Adaptive;
    let mut sender = Sender::new(options);
    let mut router = Sessions::new(Config::default(), [7; 16], 1);

    let (mut packets, mut up, mut down) = (Hop::default(), Hop::default(), Hop::default());
    let mut found = Vec::new();
    for now_ms in 0..GAP_MS * PACKETS {
        // The router: what came, what is due, what it says.
        let now_us = now_ms * 1000;
        while let Some(message) = up.take(now_ms) {
            router.on_message(now_us, client, via, &message);
        }
        while let Some(packet) = packets.take(now_ms) {
            router.on_packet(now_us, via.device, client, server, &packet, 0);
        }
        router.on_timeout(now_us);
        while let Some(sending) = router.next_action() {
            down.put(now_ms, sending.bytes.to_vec());
        }

        // The sender: what came, which packets that shows to be lost, what it says.
        let now = Duration::from_millis(now_ms);
        while let Some(message) = down.take(now_ms) {
            sender.on_message(now, &message);
        }
        while let Some(number) = sender.next_lost(now) {
            found.push((number, now_ms - number * GAP_MS));
        }
        while let Some(message) = sender.poll_message(now) {
            up.put(now_ms, message);
        }
        if now_ms % GAP_MS == 0 {
            let number = now_ms / GAP_MS;
            sender.on_sent(now, number, &packet(number));
            if !LOST.contains(&number) {
                packets.put(now_ms, packet(number));
            }
        }
    }
    found
}

fn main() {
    for (number, after_ms) in run() {
        println!("packet {number} is lost, known {after_ms} ms after it was sent");
    }
}

/// Sooner than the next packet, which is 20 ms later.
#[test]
fn both_losses_are_found_before_the_next_packet() {
    let found = run();
    assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), LOST);
    assert!(found.iter().all(|(_, after_ms)| *after_ms < GAP_MS), "{found:?}");
}
