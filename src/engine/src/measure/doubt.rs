// SPDX-License-Identifier: GPL-2.0-or-later
//! Doubt: what attempts in vain have taught about a client's hop.
//!
//! On a hop that loses nothing every sign of a gap is something else: a queue that overflows
//! before the router, a clump, a client's own frame. So each attempt that repaired nothing puts
//! off the next one for longer, and each repair for less. Where hardly any repairs something
//! only a rare attempt is left, by which the hop can show that it has changed. It is kept for
//! the client's next flow.

use crate::time::{MS, Nanos, Time};
use crate::tunables::Tunables;

/// An attempt in vain makes the wait longer by this factor, a repair shorter by the other
/// (chosen: where a quarter of all attempts repair something the wait stays as it is).
const LONGER: Nanos = 2;
const SHORTER: Nanos = 8;

/// Where a copy that was needed is answered at once nothing is put off for longer than this (chosen:
/// four needless copies in a second are no load, and of the losses of 1 % one or two come in it).
const LONGEST_IF_ANSWERED: Nanos = 250 * MS;

#[derive(Clone, Debug)]
pub(crate) struct Doubt {
    tunables: Tunables,
    /// Attempts that may be in vain before the wait grows.
    credit: u32,
    /// No attempt is made for this long ...
    wait: Nanos,
    /// ... after the last one that was in vain.
    since: Time,
}

impl Doubt {
    pub fn new(tunables: Tunables) -> Doubt {
        Doubt { tunables, credit: tunables.doubt_credit(), wait: 0, since: Time::ZERO }
    }

    /// Whether it is too early for another attempt; `answered` if an answer will tell at once
    /// whether that was needed, `repairs` if one has repaired something of late. Where that is so
    /// signs that mean nothing come from elsewhere, as from packet numbers that some senders leave
    /// out about once a window, and losses come between them.
    pub fn forbids(&self, now: Time, answered: bool, repairs: bool) -> bool {
        let longest = match (repairs, answered) {
            (true, _) => self.tunables.doubt_shortest(),
            (false, true) => LONGEST_IF_ANSWERED,
            (false, false) => Nanos::MAX,
        };
        now.since(self.since) < self.wait.min(longest)
    }

    /// Whether attempts were in vain that no repair has made up for.
    pub fn is_used(&self) -> bool {
        self.credit < self.tunables.doubt_credit()
    }

    /// Whether more attempts were in vain than repairs make up for.
    pub fn hesitates(&self) -> bool {
        self.wait > 0
    }

    /// An attempt for a gap that was opened then came to nothing. Of several under way at once
    /// one counts: a queue that overflows before the router causes many.
    // Inlined it takes 100 bytes more on MIPS.
    #[inline(never)]
    pub fn in_vain(&mut self, now: Time, opened: Time) {
        if opened < self.since {
            return;
        }
        self.since = now;
        if self.credit > 0 {
            self.credit -= 1;
            return;
        }
        let (shortest, longest) = (self.tunables.doubt_shortest(), self.tunables.doubt_longest());
        self.wait = (self.wait * LONGER).max(shortest).min(longest);
    }

    /// A copy was answered at once by a client whose replies have no other reason to come then:
    /// nothing proves more surely that this hop loses packets.
    pub fn answered(&mut self) {
        self.repaired();
        self.wait = 0;
    }

    /// A copy was proved to have repaired a gap.
    pub fn repaired(&mut self) {
        let credit = self.credit + self.tunables.doubt_per_repair();
        self.credit = credit.min(self.tunables.doubt_credit_cap());
        self.wait /= SHORTER;
        if self.wait < self.tunables.doubt_shortest() {
            self.wait = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    fn at(ms: Nanos) -> Time {
        Time::ZERO + SECOND + ms * MS
    }

    const SECOND: Nanos = 1000 * MS;

    /// Signs every 10 ms for so long, each tried where doubt allows it and in vain; gives how
    /// many were tried.
    fn tried(doubt: &mut Doubt, from: Nanos, to: Nanos) -> usize {
        let times = (from..to).step_by(10).map(at);
        times
            .filter(|now| {
                let tried = !doubt.forbids(*now, false, false);
                if tried {
                    doubt.in_vain(*now, *now);
                }
                tried
            })
            .count()
    }

    #[test]
    fn attempts_in_vain_become_rare_but_do_not_end() {
        let mut doubt = Doubt::new(Tunables::DEFAULT);
        let credit = Tunables::DEFAULT.doubt_credit() as usize;
        assert!(tried(&mut doubt, 0, 1000) <= credit + 8);
        assert!((3..=12).contains(&tried(&mut doubt, 1000, 11_000)), "one now and then");
    }

    #[test]
    fn repairs_bring_the_attempts_back() {
        let mut doubt = Doubt::new(Tunables::DEFAULT);
        tried(&mut doubt, 0, 10_000);
        assert!(doubt.forbids(at(10_000), false, false));
        for _ in 0..3 {
            doubt.repaired();
        }
        assert!(!doubt.forbids(at(10_000), false, false));
        for n in 0..6 {
            doubt.in_vain(at(10_000 + n), at(10_000 + n));
            assert!(!doubt.forbids(at(10_001 + n), false, false), "repairs have earned as much");
        }
    }

    #[test]
    fn where_every_third_attempt_repairs_something_nothing_is_put_off() {
        let mut doubt = Doubt::new(Tunables::DEFAULT);
        for n in 0..300 {
            assert!(!doubt.forbids(at(n * 10), false, false), "{n}");
            if n % 3 == 0 {
                doubt.repaired();
            } else {
                doubt.in_vain(at(n * 10), at(n * 10));
            }
        }
    }

    #[test]
    fn what_is_answered_waits_less_and_an_answer_ends_the_wait() {
        let mut doubt = Doubt::new(Tunables::DEFAULT);
        tried(&mut doubt, 0, 10_000);
        let last = (0..10_000).rev().find(|ms| doubt.since == at(*ms)).unwrap();
        assert!(doubt.forbids(at(last + 249), true, false));
        assert!(!doubt.forbids(at(last + 250), true, false));
        assert!(doubt.forbids(at(last + 250), false, false));
        doubt.answered();
        assert!(!doubt.forbids(at(last), false, false));
    }

    #[test]
    fn where_a_repair_has_come_of_late_nothing_waits_longer_than_at_first() {
        let mut doubt = Doubt::new(Tunables::DEFAULT);
        tried(&mut doubt, 0, 10_000);
        let shortest = Tunables::DEFAULT.doubt_shortest();
        assert!(doubt.forbids(doubt.since + shortest - 1, false, true));
        assert!(!doubt.forbids(doubt.since + shortest, false, true));
        assert!(doubt.forbids(doubt.since + shortest, false, false));
    }

    #[test]
    fn of_several_at_once_one_counts() {
        let mut doubt = Doubt::new(Tunables::DEFAULT);
        for _ in 0..100 {
            doubt.in_vain(at(10), at(5));
        }
        assert!(!doubt.forbids(at(11), false, false));
    }
}
