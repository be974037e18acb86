// SPDX-License-Identifier: GPL-2.0-or-later
//! What radio adds to a plain link: packets that come in clumps or out of order.

use std::collections::VecDeque;
use std::path::Path;

use anyhow::{Context, bail};
use linkem::Nanos;

use crate::random::Random;
use crate::scenario::{Wifi, ms};

/// Stands behind the link towards the clients.
#[derive(Debug)]
pub struct Air<T> {
    random: Random,
    clump: (Nanos, Nanos),
    /// The end of the current wait.
    awake_at: Nanos,
    reorder_percent: f64,
    reorder: Nanos,
    /// By time, which for those that are not late never falls.
    line: VecDeque<(Nanos, T)>,
}

impl<T> Air<T> {
    /// Nothing in the air yet.
    pub fn new(wifi: &Wifi, seed: u64) -> Air<T> {
        Air {
            random: Random::new(seed ^ 0xa1),
            clump: (ms(wifi.clump_ms[0]), ms(wifi.clump_ms[1])),
            awake_at: 0,
            reorder_percent: wifi.reorder_percent,
            reorder: ms(wifi.reorder_ms),
            line: VecDeque::new(),
        }
    }

    /// A packet comes out of the link.
    pub fn push(&mut self, now: Nanos, item: T) {
        let mut due = now;
        if self.clump.1 > 0 {
            // Waits follow each other without a pause.
            while self.awake_at <= now {
                let (from, to) = self.clump;
                self.awake_at += from + self.random.below(to - from + 1);
            }
            due = self.awake_at;
        }
        let late = self.reorder_percent > 0.0
            && (self.random.below(1_000_000) as f64) < self.reorder_percent * 10_000.0;
        if late {
            due += self.reorder;
        }
        let at = self.line.partition_point(|(other, _)| *other <= due);
        self.line.insert(at, (due, item));
    }

    /// When the next packet arrives.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.line.front().map(|(due, _)| *due)
    }

    /// A packet that has arrived by now.
    pub fn pop_due(&mut self, now: Nanos) -> Option<T> {
        if self.line.front()?.0 > now {
            return None;
        }
        self.line.pop_front().map(|(_, item)| item)
    }
}

/// Losses as they were recorded, over and over.
#[derive(Clone, Debug)]
pub struct Recorded {
    lost: Vec<bool>,
    next: usize,
}

impl Recorded {
    /// Reads a file of lines `0` and `1`; each seed begins elsewhere in it.
    pub fn read(path: &Path, seed: u64) -> anyhow::Result<Recorded> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read the loss trace {}", path.display()))?;
        let mut lost = Vec::new();
        for (number, line) in text.lines().enumerate() {
            match line.trim() {
                "" => {}
                "0" => lost.push(false),
                "1" => lost.push(true),
                other => bail!("{}, line {}: '{other}' is not 0 or 1", path.display(), number + 1),
            }
        }
        if lost.is_empty() {
            bail!("{}: a loss trace needs at least one line of 0 or 1", path.display());
        }
        let next = Random::new(seed).below(lost.len() as u64) as usize;
        Ok(Recorded { lost, next })
    }

    /// Is the next packet lost?
    pub fn next_is_lost(&mut self) -> bool {
        let lost = self.lost[self.next];
        self.next = (self.next + 1) % self.lost.len();
        lost
    }
}
