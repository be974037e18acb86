// SPDX-License-Identifier: GPL-2.0-or-later
//! Target `sender`: the sending end of Sidekick, with whatever claims to come from its
//! router: any bytes, and messages with its token and a router's sums over what has
//! arrived, in which everything else may be wrong.

use std::collections::BTreeSet;
use std::num::{NonZeroU8, NonZeroU16};
use std::time::Duration;

use pemi_quack::{Interval, Message, Quack, Reason};
use pemi_sidekick::sender::{Options, Sender};

use crate::input::Input;

const TOKEN: u64 = 7;
const STEP: Duration = Duration::from_micros(300);

struct Session {
    sender: Sender,
    now: Duration,
    /// What the router got.
    received: Quack<u32>,
    sequence: u16,
    epoch: u32,
    sent: u64,
    lost: BTreeSet<u64>,
}

/// Calls everything with `data`.
pub fn run(data: &[u8]) {
    drive(data);
}

fn drive(data: &[u8]) -> Session {
    let mut input = Input(data);
    let threshold = NonZeroU8::new(input.byte() % 20).unwrap_or(NonZeroU8::MIN);
    let server = ([192, 0, 2, 1], 443).into();
    let options = Options { log_limit: 64, threshold, ..Options::new(TOKEN, 5_000, server) };
    let mut session = Session {
        sender: Sender::new(options),
        now: Duration::from_secs(1),
        received: Quack::new(threshold),
        sequence: 0,
        epoch: 1,
        sent: 0,
        lost: BTreeSet::new(),
    };
    while !input.is_empty() {
        session.step(&mut input);
        session.take();
    }
    session.sender.close();
    session.take();
    assert_eq!(session.sender.next_timeout(), None);
    session
}

impl Session {
    fn step(&mut self, input: &mut Input<'_>) {
        let what = input.byte();
        match what & 7 {
            0 | 1 => self.packets(what >> 3, input.byte()),
            2 => {
                let len = usize::from(what >> 3) * 4;
                self.sender.on_message(self.now, input.take(len));
            }
            3 => self.answer(what >> 3, input),
            4 | 5 => self.quack(what >> 3, input.byte()),
            6 => self.now += STEP * (1 << (what >> 3 & 15)),
            _ => {
                if let Some(at) = self.sender.next_timeout() {
                    self.now = self.now.max(at);
                }
            }
        }
    }

    /// Some packets go out, and those with a bit of `fates` do not arrive.
    fn packets(&mut self, count: u8, fates: u8) {
        for n in 0..=count & 15 {
            // Few identifiers, if so wanted: equal ones cannot be told apart.
            let number = if count & 16 == 0 { self.sent } else { self.sent % 5 };
            let id = (number as u32).wrapping_mul(0x9e37_79b9) ^ 0x1234_5678;
            self.sender.on_sent(self.now, self.sent, &id.to_be_bytes().repeat(4));
            self.sent += 1;
            if fates >> (n & 7) & 1 == 0 {
                self.received.insert(id);
            }
            self.now += STEP;
        }
    }

    fn answer(&mut self, kind: u8, input: &mut Input<'_>) {
        let token = TOKEN;
        let number = NonZeroU16::new(input.u16()).unwrap_or(NonZeroU16::MIN);
        let message = match kind % 5 {
            0 => Message::Cookie { token, cookie: number.get().into() },
            1 | 2 => {
                self.epoch = self.epoch.wrapping_add(u32::from(kind >> 3));
                let interval = [Interval::Packets(number), Interval::Millis(number)];
                Message::Accept {
                    token,
                    interval: interval[usize::from(kind & 1)],
                    threshold: NonZeroU8::MIN,
                    lifetime_s: input.u16(),
                    epoch: self.epoch,
                }
            }
            3 => Message::Refuse { token, reason: Reason::Full },
            _ => Message::Bye { token },
        };
        self.say(message);
    }

    /// Sums of what has arrived; some bits say what is wrong with them.
    fn quack(&mut self, wrong: u8, age: u8) {
        self.sequence = self.sequence.wrapping_add(if wrong & 1 == 0 { 1 } else { 0x8001 });
        let mut quack = Vec::new();
        self.received.write(NonZeroU8::MAX, &mut quack);
        if wrong & 2 != 0 {
            let at = usize::from(age) % quack.len();
            quack[at] ^= 1;
        }
        if wrong & 4 != 0 {
            self.epoch = self.epoch.wrapping_add(1);
            self.received = Quack::new(NonZeroU8::new(8).unwrap_or(NonZeroU8::MIN));
        }
        let age_us = u32::from(age) << (wrong & 24);
        let (sequence, epoch) = (self.sequence, self.epoch);
        self.say(Message::Quack { token: TOKEN, sequence, epoch, age_us, quack: &quack });
    }

    fn say(&mut self, message: Message<'_>) {
        let mut bytes = Vec::new();
        message.write(&mut bytes);
        self.sender.on_message(self.now, &bytes);
    }

    /// What it says are a sender's messages, and what it calls lost was sent.
    fn take(&mut self) {
        let mut messages = 0;
        while let Some(bytes) = self.sender.poll_message(self.now) {
            let message = Message::parse(&bytes).expect("a message");
            assert_eq!(message.token(), TOKEN);
            assert!(matches!(
                message,
                Message::Hello(_) | Message::Reset { .. } | Message::Bye { .. }
            ));
            messages += 1;
            assert!(messages < 10, "it does not stop");
        }
        while let Some(tag) = self.sender.next_lost(self.now) {
            assert!(tag < self.sent, "{tag} has not been sent");
            assert!(self.lost.insert(tag), "{tag} is lost twice");
        }
        let stats = self.sender.stats();
        assert!(stats.resyncs <= stats.quacks && stats.spurious <= stats.losses);
    }
}

/// A session with losses, then one with each kind of mistake.
pub fn seeds() -> Vec<Vec<u8>> {
    (0..32u8)
        .map(|wrong| {
            let mut seed = vec![8, 7, 3, 0, 9, 7, 3 | 1 << 3, 0, 2, 0, 60];
            for round in 0..6 {
                seed.extend([7 << 3, 1 << round, 4, 0]);
            }
            seed.extend([15 << 3 | 1, 4, 4 | wrong << 3, 3, 24 << 3, 8, 4, 1, 6 | 9 << 3, 7]);
            seed.extend([3 | wrong << 3, 1, 1, 1, 1, 2 | 3 << 3, wrong, 1, 2, 3, 4, 5, 4, 9, 7]);
            seed
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_find_losses() {
        assert!(seeds().iter().all(|seed| drive(seed).lost.len() >= 3));
    }
}
