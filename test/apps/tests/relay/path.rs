// SPDX-License-Identifier: GPL-2.0-or-later
//! What a router and its hops make of packets, without sockets and clocks: 1 ms to the sender,
//! 25 ms to the receiver, losses on the way from the sender, and quACKs. Times are in
//! nanoseconds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use pemi_sidekick_tests::Random;
use pemi_sidekick_tests::router::Model;

const NEAR: u64 = 1_000_000;
const FAR: u64 = 25_000_000;

/// What the hop and the router do. Times are from the first packet on.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Share of the sender's packets that is lost.
    pub loss: f64,
    /// Which of them.
    pub seed: u64,
    /// From when to when the router has no sessions and does not answer.
    pub gone: Option<(Duration, Duration)>,
}

/// Where packets come from and go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hop {
    /// From the sender, at the router.
    Up,
    /// From the router on to the receiver.
    Out,
    /// From the receiver.
    Down,
    /// From the sender to the router itself, and back.
    Ask,
    Answer,
}

/// When it arrives, which of those at that time it is, where, and what.
type Passing = (u64, u64, Hop, Vec<u8>);

pub struct Path {
    options: Options,
    random: Random,
    model: Model,
    start: Option<u64>,
    serial: u64,
    queue: BinaryHeap<Reverse<Passing>>,
}

impl Path {
    pub fn new(options: Options) -> Path {
        Path {
            options,
            random: Random::new(options.seed),
            model: Model::new(7, 0, 65_530),
            start: None,
            serial: 0,
            queue: BinaryHeap::new(),
        }
    }

    /// A packet comes from one of the ends: up, down, or to ask the router.
    pub fn enter(&mut self, now: u64, hop: Hop, bytes: Vec<u8>) {
        if hop == Hop::Down {
            return self.pass(now + FAR + NEAR, hop, bytes);
        }
        self.start.get_or_insert(now);
        if self.random.unit() >= self.options.loss {
            self.pass(now + NEAR, hop, bytes);
        }
    }

    /// When to poll, if nothing comes before.
    pub fn next_timeout(&self) -> Option<u64> {
        let next = self.queue.peek().map(|Reverse((at, ..))| *at);
        let due = self.model.next_timeout().map(|due| due.as_nanos() as u64);
        [next, due].into_iter().flatten().min()
    }

    /// Does what is due; what reaches an end by now: out, down, or as an answer of the router.
    pub fn poll(&mut self, now: u64) -> Vec<(Hop, Vec<u8>)> {
        let mut ends = Vec::new();
        while self.queue.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, _, hop, bytes))) = self.queue.pop() else { break };
            let answer = match hop {
                Hop::Up | Hop::Ask if self.gone(now) => None,
                Hop::Up => self.model.on_packet(Duration::from_nanos(now), &bytes),
                Hop::Ask => self.model.on_message(&bytes),
                Hop::Out | Hop::Down | Hop::Answer => {
                    ends.push((hop, bytes));
                    continue;
                }
            };
            if hop == Hop::Up {
                self.pass(now + FAR, Hop::Out, bytes);
            }
            if let Some(answer) = answer {
                self.pass(now + NEAR, Hop::Answer, answer);
            }
        }
        if let Some(message) = self.model.on_timeout(Duration::from_nanos(now)) {
            self.pass(now + NEAR, Hop::Answer, message);
        }
        ends
    }

    fn pass(&mut self, at: u64, hop: Hop, bytes: Vec<u8>) {
        // Packets of one moment in the order that they came in.
        self.serial += 1;
        self.queue.push(Reverse((at, self.serial, hop, bytes)));
    }

    fn gone(&mut self, now: u64) -> bool {
        let (Some(start), Some((from, to))) = (self.start, self.options.gone) else { return false };
        let since = Duration::from_nanos(now - start);
        let gone = (from..to).contains(&since);
        if gone {
            self.model = Model::new(8, 0, 0);
        }
        gone
    }
}
