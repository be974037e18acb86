// SPDX-License-Identifier: GPL-2.0-or-later
//! What an access point reports of the packets to its clients: late, sometimes wrong, sometimes
//! not at all.

use std::collections::BTreeMap;

use linkem::Nanos;
use pemi_engine::{Fate, Ticket};

use crate::random::Random;
use crate::scenario::{Reports as Settings, ms};

/// Reports that are on their way to the router's daemon.
pub struct Reports {
    settings: Settings,
    random: Random,
    due: BTreeMap<(Nanos, u32), Fate>,
}

impl Reports {
    /// As the scenario has them.
    pub fn new(settings: &Settings, seed: u64) -> Reports {
        let random = Random::new(seed ^ 0x5a_0000);
        Reports { settings: settings.clone(), random, due: BTreeMap::new() }
    }

    /// The fate of a packet is known to the radio.
    pub fn settled(&mut self, now: Nanos, Ticket(ticket): Ticket, arrived: bool) {
        if self.chance(self.settings.missing_percent) {
            return;
        }
        let known = arrived && !self.chance(self.settings.false_percent);
        let fate = if known { Fate::Arrived } else { Fate::Lost };
        self.due.insert((now + ms(self.settings.lag_ms), ticket), fate);
    }

    fn chance(&mut self, percent: f64) -> bool {
        percent > 0.0 && (self.random.below(1_000_000) as f64) < percent * 1e4
    }

    /// When the next one comes.
    pub fn next(&self) -> Option<Nanos> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next one that has come.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Ticket, Fate)> {
        self.next().filter(|at| *at <= now)?;
        self.due.pop_first().map(|((_, ticket), fate)| (Ticket(ticket), fate))
    }
}
