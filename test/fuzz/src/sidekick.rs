// SPDX-License-Identifier: GPL-2.0-or-later
//! Target `sidekick`: a router with whatever messages, packets and times come.

use std::net::SocketAddr;
use std::num::{NonZeroU8, NonZeroU16};

use pemi_quack::{AnyQuack, Hello, Interval, Message, Width};
use pemi_sidekick::router::{Config, Micros, Sessions, Stats, Via};

use crate::input::Input;

const SESSIONS: usize = 6;
const OF_A_CLIENT: usize = 4;
/// Bytes of a message with one sum of two bytes.
const SHORTEST_QUACK: u64 = 20 + 5 + 2;

struct Router {
    sessions: Sessions,
    now: Micros,
    cookie: u64,
    epoch: u32,
}

/// Calls everything with `data`.
pub fn run(data: &[u8]) {
    drive(data);
}

fn drive(data: &[u8]) -> Stats {
    let config =
        Config { max_sessions: SESSIONS, max_per_client: OF_A_CLIENT, ..Config::default() };
    let sessions = Sessions::new(config, [3; 16], u32::MAX);
    let mut router = Router { sessions, now: 1_000_000_000, cookie: 0, epoch: 0 };
    let mut input = Input(data);
    while !input.is_empty() {
        router.step(&mut input);
        router.sent();
        let flows: Vec<(u32, u16)> = router.sessions.flows().collect();
        assert!(flows.len() <= SESSIONS);
        assert_eq!(router.sessions.stats().sessions as usize, flows.len());
        assert_eq!(router.sessions.next_timeout().is_some(), !flows.is_empty());
    }
    let stats = router.sessions.stats();
    assert!(stats.quack_bytes >= stats.quacks * SHORTEST_QUACK, "{stats:?}");
    router.sessions.stop();
    router.sent();
    assert_eq!(router.sessions.next_timeout(), None);
    stats
}

impl Router {
    fn step(&mut self, input: &mut Input<'_>) {
        let kind = input.byte();
        let who = input.byte();
        let client = SocketAddr::from(([192, 0, 2, who % 4], 6_000 + u16::from(who / 128)));
        let via = Via { device: u32::from(who & 16), local: [192, 0, 2, 254].into() };
        match kind % 6 {
            // As it came from the network.
            0 => {
                let len = usize::from(input.byte());
                self.sessions.on_message(self.now, client, via, input.take(len));
            }
            // With what the router said before.
            1 => {
                let token = u64::from(input.byte() % 16);
                let hello = Hello {
                    token,
                    cookie: self.cookie,
                    width: Width::from_bytes(2 << (kind / 6 % 3)).unwrap_or(Width::Bits32),
                    threshold: NonZeroU8::new(input.byte()).unwrap_or(NonZeroU8::MIN),
                    interval: interval(input.byte()),
                    offset: u16::from(input.byte() % 80),
                    client_port: u16::from(input.byte() % 8),
                    server: [198, 51, 100, 1].into(),
                    server_port: 443,
                    losses: u16::from(input.byte()) << 8,
                };
                self.say(client, via, Message::Hello(hello));
            }
            2 => {
                let token = u64::from(input.byte() % 16);
                let message = match kind / 6 % 2 {
                    0 => Message::Bye { token },
                    _ => Message::Reset { token, epoch: self.epoch },
                };
                self.say(client, via, message);
            }
            3 => {
                let from = SocketAddr::new(client.ip(), u16::from(input.byte() % 8));
                let to = SocketAddr::from(([198, 51, 100, 1], 443));
                let segment = usize::from(input.byte());
                let payload = vec![input.byte(); usize::from(input.byte()) * 4];
                let now = self.now;
                self.sessions.on_packet(now, via.device, from, to, &payload, segment);
            }
            4 => {
                self.now = self.now.wrapping_add(1 << (who % 40));
                self.sessions.on_timeout(self.now);
            }
            _ => {
                if let Some(at) = self.sessions.next_timeout() {
                    self.now = self.now.max(at);
                    self.sessions.on_timeout(self.now);
                    assert!(self.sessions.next_timeout().is_none_or(|next| next > self.now));
                }
            }
        }
    }

    fn say(&mut self, from: SocketAddr, via: Via, message: Message<'_>) {
        let mut bytes = Vec::new();
        message.write(&mut bytes);
        self.sessions.on_message(self.now, from, via, &bytes);
    }

    /// What it sends are messages.
    fn sent(&mut self) {
        while let Some(sending) = self.sessions.next_action() {
            match Message::parse(sending.bytes) {
                Ok(Message::Cookie { cookie, .. }) => self.cookie = cookie,
                Ok(Message::Accept { epoch, .. }) => self.epoch = epoch,
                Ok(Message::Quack { quack, .. }) => drop(AnyQuack::parse(quack).expect("a quACK")),
                Ok(Message::Refuse { .. } | Message::Bye { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn interval(byte: u8) -> Interval {
    let number = NonZeroU16::new(u16::from(byte / 4) + 1).unwrap_or(NonZeroU16::MIN);
    match byte % 4 {
        0 => Interval::Router,
        1 => Interval::Packets(number),
        2 => Interval::Millis(number),
        _ => Interval::Adaptive,
    }
}

/// A session of each kind with a steady flow that pauses; and a stranger.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![vec![0, 1, 12, 1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]];
    for kind in 0..4 {
        let hello = [1, 1, 5, 8, kind + 8, 1, 3, 0];
        let mut seed = [hello, hello].concat();
        for n in 0..40 {
            // About 16 ms, a packet, and what is due.
            seed.extend([4, 14, 3, 1, 3, if n % 9 == 0 { 16 } else { 0 }, n, 10]);
        }
        seed.extend([5, 0, 5, 0, 5, 0, 8, 1, 5, 3, 1, 3, 0, 9, 9, 2, 1, 5, 4, 24, 5, 0]);
        seeds.push(seed);
    }
    // A merged packet of more segments than messages may wait.
    let merged = vec![1, 1, 5, 1, 8, 0, 0, 0, 1, 1, 5, 1, 1, 1, 1, 8, 9, 5, 1, 3, 0, 254];
    seeds.push(merged);
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_get_somewhere() {
        for seed in &seeds()[1..5] {
            let stats = drive(seed);
            assert!(stats.packets > 30 && stats.quacks > 0, "{stats:?}");
        }
    }
}
