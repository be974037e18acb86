// SPDX-License-Identifier: GPL-2.0-or-later
//! When to quACK so that a loss is told soon and little is sent: at once when a packet
//! is late, and seldom besides. Where no packet is due at any known time: every few
//! packets or milliseconds.
//!
//! Never more than one quACK for two packets, [`BURST`] saved up included.

use super::cadence::{Arrival, Cadence};
use super::due::Due;
use super::{MS, Micros};

/// Packets after which a quACK goes out in any case.
const PLAIN: u16 = 8;
/// Where there is no cadence: so long after the first packet that was not told.
const PATIENCE: Micros = 20 * MS;
/// Credit is counted in packets; a quACK takes two.
const PRICE: u8 = 2;
/// quACKs that can be saved up.
const BURST: u8 = 8;
/// Arrivals after a late one that are told at once: the quACK that told of it may be lost.
const ANSWERS: u8 = 2;
/// How often a quACK is repeated to which nothing came.
const REPEATS: u8 = 2;
/// Lates that nothing came after until none is expected to.
const UNANSWERED: u8 = 4;
/// A usual time from a late quACK to the packet sent again, until it is known.
const RESPONSE: u32 = 4_000;
const SHORTEST_RESPONSE: u32 = 500;
const LONGEST_RESPONSE: u32 = 200_000;
/// So long after the last of several packets of one beat the rest of them is missing.
const CROWD: Micros = 2 * MS;

/// A late packet that was told of, and is expected to be sent again.
#[derive(Clone, Copy, Debug)]
struct Watch {
    since: Micros,
    repeat_at: Micros,
    left: u8,
}

#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    cadence: Cadence,
    credit: u8,
    untold: u16,
    /// When the first untold packet has waited long enough; none once that was looked at.
    plain_at: Option<Micros>,
    crowd_at: Option<Micros>,
    last: Option<Micros>,
    /// Mean time between arrivals.
    gap: u32,
    answers: u8,
    late_at: Micros,
    watch: Option<Watch>,
    response: u32,
    unanswered: u8,
}

impl Adaptive {
    pub fn new() -> Adaptive {
        Adaptive {
            cadence: Cadence::new(),
            credit: 0,
            untold: 0,
            plain_at: None,
            crowd_at: None,
            last: None,
            gap: 0,
            answers: 0,
            late_at: 0,
            watch: None,
            response: RESPONSE,
            unanswered: 0,
        }
    }

    /// A packet was counted. Lates are those that nobody noticed before it.
    pub fn on_packet(&mut self, now: Micros) -> Due {
        let mut due = Due::default();
        while self.cadence.late_at().is_some_and(|at| at <= now) {
            self.missed(now);
            due.late += 1;
        }
        self.credit = (self.credit + 1).min(BURST * PRICE);
        self.untold = self.untold.saturating_add(1);
        let pause = self.paused(now);
        let arrival = self.cadence.on_arrival(now);
        match arrival {
            Arrival::OffBeat => self.responded(now),
            Arrival::SameBeat => self.crowd_at = Some(now.saturating_add(CROWD)),
            Arrival::OnBeat | Arrival::Free => self.crowd_at = None,
        }
        let answer = self.answers > 0;
        self.answers = self.answers.saturating_sub(1);
        let free = arrival == Arrival::Free;
        due.quack = if answer || free && pause {
            self.spend(now, 0)
        } else if self.untold >= PLAIN {
            self.spend(now, PRICE)
        } else {
            false
        };
        if !due.quack && free {
            self.plain_at.get_or_insert(now.saturating_add(PATIENCE));
        }
        due
    }

    /// When to call [`Adaptive::on_timeout`].
    pub fn deadline(&self) -> Option<Micros> {
        let repeat = self.watch.map(|watch| watch.repeat_at);
        [self.cadence.late_at(), repeat, self.plain_at, self.crowd_at].into_iter().flatten().min()
    }

    pub fn on_timeout(&mut self, now: Micros) -> Due {
        let is_due = |at: Option<Micros>| at.is_some_and(|at| at <= now);
        let mut due = Due::default();
        // Of several late ones with nothing between them only the first is worth repeats:
        // more likely than that all were lost is that the sender has paused.
        let is_first = self.answers < ANSWERS;
        while is_due(self.cadence.late_at()) {
            self.missed(now);
            due.late += 1;
        }
        if due.late > 0 {
            due.quack = self.spend(now, 0);
            if due.quack && is_first && self.unanswered < UNANSWERED {
                let repeat_at = self.repeat_after(now);
                self.watch = Some(Watch { since: now, repeat_at, left: REPEATS });
            }
        }
        if let Some(watch) = self.watch.filter(|watch| watch.repeat_at <= now) {
            self.watch = watch.left.checked_sub(1).map(|left| Watch { left, ..watch });
            if self.watch.is_some() && self.spend(now, PRICE) {
                due.quack = true;
            } else {
                self.watch = None;
                self.unanswered = self.unanswered.saturating_add(1);
            }
        }
        for timer in [is_due(self.plain_at), is_due(self.crowd_at)] {
            due.quack |= timer && !due.quack && self.untold > 0 && self.spend(now, PRICE);
        }
        // What there was no credit for comes with the next one.
        self.plain_at = self.plain_at.filter(|at| *at > now);
        self.crowd_at = self.crowd_at.filter(|at| *at > now);
        due
    }

    fn missed(&mut self, now: Micros) {
        self.cadence.missed();
        self.answers = ANSWERS;
        self.late_at = now;
    }

    /// Whether this one comes much later after the last one than usual.
    fn paused(&mut self, now: Micros) -> bool {
        let gap = now.saturating_sub(self.last.unwrap_or(now)).min(1_000 * MS) as u32;
        self.last = Some(now);
        let usual = self.gap;
        self.gap = usual - usual / 8 + gap / 8;
        usual > 0 && gap > usual.saturating_mul(4).max(4_000)
    }

    fn responded(&mut self, now: Micros) {
        let known = self.watch.take();
        let since = known.map_or(self.late_at, |watch| watch.since);
        let took = now.saturating_sub(since).min(LONGEST_RESPONSE.into()) as u32;
        if known.is_some() {
            self.response = (self.response - self.response / 4 + took / 4).max(SHORTEST_RESPONSE);
            self.unanswered = 0;
        } else if self.cadence.period().is_some_and(|period| took < period) {
            self.unanswered = 0;
        }
    }

    fn repeat_after(&self, now: Micros) -> Micros {
        now.saturating_add(Micros::from(self.response) * 2)
    }

    /// Pays for a quACK if it can, and leaves `reserve` for others.
    fn spend(&mut self, now: Micros, reserve: u8) -> bool {
        if self.credit < PRICE + reserve {
            return false;
        }
        self.credit -= PRICE;
        self.untold = 0;
        self.plain_at = None;
        self.crowd_at = None;
        let repeat_at = self.repeat_after(now);
        if let Some(watch) = &mut self.watch {
            watch.repeat_at = repeat_at;
        }
        true
    }
}
