// SPDX-License-Identifier: GPL-2.0-or-later
//! What an access point reports of the packets to its clients: late, sometimes wrong, sometimes
//! not at all.

use std::collections::{BTreeMap, BTreeSet};

use linkem::Nanos;
use pemi_engine::{Fate, Ticket};

use crate::random::Random;
use crate::scenario::{Reports as Settings, ms};

/// Packets of a station that a driver can follow (mt76: `MT_PACKET_ID_MASK`); of more it says at
/// once that they are lost.
const FOLLOWED: usize = 124;

/// Reports that are on their way to the router's daemon.
pub struct Reports {
    settings: Settings,
    random: Random,
    due: BTreeMap<(Nanos, u32), Fate>,
    /// Those that the driver follows, by station.
    followed: BTreeSet<(usize, u32)>,
}

impl Reports {
    /// As the scenario has them.
    pub fn new(settings: &Settings, seed: u64) -> Reports {
        let random = Random::new(seed ^ 0x5a_0000);
        Reports {
            settings: settings.clone(),
            random,
            due: BTreeMap::new(),
            followed: BTreeSet::new(),
        }
    }

    /// A packet is handed to the radio.
    pub fn sent(&mut self, now: Nanos, station: usize, Ticket(ticket): Ticket) {
        if self.followed.range((station, 0)..=(station, u32::MAX)).count() < FOLLOWED {
            self.followed.insert((station, ticket));
        } else {
            self.due.insert((now + ms(self.settings.lag_ms), ticket), Fate::Lost);
        }
    }

    /// The queue has dropped a packet.
    pub fn dropped(&mut self, now: Nanos, station: usize, ticket: Ticket) {
        if self.settings.queue {
            self.settled(now, station, ticket, false);
        } else {
            self.followed.remove(&(station, ticket.0));
        }
    }

    /// The fate of a packet is known to the radio.
    pub fn settled(&mut self, now: Nanos, station: usize, Ticket(ticket): Ticket, arrived: bool) {
        if !self.followed.remove(&(station, ticket)) {
            return;
        }
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
