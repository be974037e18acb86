// SPDX-License-Identifier: GPL-2.0-or-later
//! Worth: whether holding replies back from a sender pays.
//!
//! What is held in vain does harm. The sender stands still meanwhile, then sends all at once what
//! the held replies acknowledge, and where the queue before the router is short that overflows it:
//! the next gap, which is not the hop's either. So where replies keep no exact time, or their sizes vary for
//! other reasons, what may turn out to be in vain is limited to about a round trip of the sender's, of which
//! repairs earn more. When that is spent the sender sees every
//! reply for much longer than the last attempt took, and longer each time. Copies are still sent: the
//! first that repairs something brings the rest back.

use crate::time::{MS, Nanos, SEC, Time};
use crate::tunables::Tunables;

/// What a round trip is divided into.
const PARTS: Nanos = 1000;
/// Round trips that a sender may have; of one that is not known it is the middle one (chosen: between
/// a server in the same town and one beyond an ocean).
const SHORTEST: Nanos = 5 * MS;
const USUAL: Nanos = 50 * MS;
const LONGEST: Nanos = 200 * MS;
/// When it is spent, the sender sees every reply for this many times as long as the last attempt
/// took (chosen: of ten parts of the time one may be spent in vain).
const APART: Nanos = 8;
/// ... and each time for so much longer than the time before, but no longer than this (chosen: as the
/// longest wait of `measure::doubt`).
const GROWTH: Nanos = 2;
const LONGEST_SHOWN: Nanos = 2 * SEC;
/// A repair makes that shorter by this factor (as of the wait for attempts, `measure::doubt`).
const SHRINKAGE: Nanos = 8;
/// A repair earns at least so many times what it took (chosen: on a hop of long round trips, where an
/// attempt in vain takes twice as long as a repair, one repair makes up for one of them).
const EARNED: Nanos = 2;

#[derive(Clone, Debug)]
pub(crate) struct Worth {
    tunables: Tunables,
    /// What attempts may take in vain, in parts of a round trip.
    left: Nanos,
    /// The sender sees every reply for this long ...
    shown: Nanos,
    /// ... from then on.
    since: Time,
}

/// So long in parts of a sender's round trip, if that is known.
fn parts(took: Nanos, round_trip: Option<Nanos>) -> Nanos {
    // No attempt takes longer than a second, but a clock may be set.
    took.clamp(0, SEC) * PARTS / round_trip.unwrap_or(USUAL).clamp(SHORTEST, LONGEST)
}

impl Worth {
    pub fn new(tunables: Tunables) -> Worth {
        Worth { tunables, left: tunables.vain_parts(), shown: 0, since: Time::ZERO }
    }

    /// Whether a gap that opens now may be hidden.
    pub fn hides(&self, now: Time) -> bool {
        now.since(self.since) >= self.shown
    }

    /// An attempt for a gap that was opened then came to nothing. Of several under way at once one
    /// counts, as they were hidden at the same time, and none that was not hidden: where the sender
    /// is told as well, even a copy that was needed often shows nothing.
    pub fn in_vain(&mut self, now: Time, opened: Time, round_trip: Option<Nanos>) {
        if opened < self.since || !self.hides(opened) {
            return;
        }
        let took = now.since(opened);
        self.since = now;
        let spent = parts(took, round_trip);
        if spent < self.left {
            self.left -= spent;
            return;
        }
        self.left = 0;
        self.shown = (self.shown * GROWTH).max(took * APART).min(LONGEST_SHOWN);
    }

    /// A copy that was answered after so long has repaired a gap.
    pub fn repaired(&mut self, took: Nanos, round_trip: Option<Nanos>) {
        let earned = self.tunables.vain_parts_per_repair().max(parts(took, round_trip) * EARNED);
        self.left = (self.left + earned).min(2 * self.tunables.vain_parts());
        self.shown /= SHRINKAGE;
        if self.shown < APART * MS {
            self.shown = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKES: Nanos = 20 * MS;
    const PATH: Option<Nanos> = Some(50 * MS);

    fn at(ms: Nanos) -> Time {
        Time::ZERO + SEC + ms * MS
    }

    /// Gaps every 10 ms for so long, none of which is the hop's; for how long they were hidden.
    fn hidden(worth: &mut Worth, from: Nanos, to: Nanos) -> Nanos {
        let mut hidden = 0;
        let mut now = at(from);
        while now < at(to) {
            let hides = worth.hides(now);
            let opened = now;
            now = now + TAKES;
            worth.in_vain(now, opened, PATH);
            hidden += if hides { TAKES } else { 0 };
            now = now + 10 * MS;
        }
        hidden
    }

    #[test]
    fn what_is_in_vain_is_bounded() {
        let mut worth = Worth::new(Tunables::DEFAULT);
        assert!(worth.hides(at(0)));
        let first = Tunables::DEFAULT.vain_parts() * 50 * MS / PARTS + TAKES;
        assert!((TAKES..=first + 4 * TAKES).contains(&hidden(&mut worth, 0, 2_000)));
        // Then one attempt in two seconds.
        assert!((20 * TAKES..=31 * TAKES).contains(&hidden(&mut worth, 2_000, 62_000)));
    }

    #[test]
    fn a_repair_brings_it_back() {
        let mut worth = Worth::new(Tunables::DEFAULT);
        hidden(&mut worth, 0, 1000);
        assert!(!worth.hides(at(1100)));
        (0..4).for_each(|_| worth.repaired(2 * MS, PATH));
        assert!(worth.hides(at(1100)));
        worth.in_vain(at(1120), at(1100), PATH);
        assert!(worth.hides(at(1121)), "repairs have earned as much");
    }

    #[test]
    fn where_every_second_attempt_repairs_something_all_is_hidden() {
        for takes in [2 * MS, 20 * MS, 50 * MS] {
            let mut worth = Worth::new(Tunables::DEFAULT);
            for n in 0..100 {
                assert!(worth.hides(at(n * 200)), "{n}");
                match n % 2 {
                    0 => worth.repaired(takes / 2, PATH),
                    _ => worth.in_vain(at(n * 200) + takes, at(n * 200), PATH),
                }
            }
        }
    }
}
