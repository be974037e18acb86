// SPDX-License-Identifier: GPL-2.0-or-later
//! What a client's last counts amount to: how many packets it lets pass before it replies.

use crate::store::recent::Recent;

/// Counts that are remembered (chosen: those of about one round trip).
const COUNTS: usize = 12;
/// A client that replies to every second packet replies to three when the second of a pair is
/// missing. Believed when this many of the counts were the usual one (chosen: five in six).
const STEADY: usize = 10;
/// A client that is busy with other things replies after five packets now and after nine then. Its
/// count is regular if one of this many of the last ones was the usual one (chosen: half of them;
/// Chromium's are nearly all the same, and of five counts by chance each is a fifth).
const REGULAR_PART: usize = 2;
/// A high count is what the client counts to if three quarters of the last ones are near it, by this
/// part of it (chosen: one packet of Chromium's ten). A host that is late replies to what has come by
/// then, which is any number.
const EVEN_PERCENT: usize = 75;
const NEAR_PART: u32 = 8;
/// Counts before one is the usual one (chosen: two losses among them do not decide).
const ENOUGH: usize = 4;
/// So many counts by which the habit of another flow is recognised (chosen: one may be chance, and a
/// change to long counts is noticed with one more than [`ENOUGH`] of them).
const FIRST: core::ops::RangeInclusive<usize> = 2..=ENOUGH + 1;
/// The usual count is the one that this share of the others, in tenths, is not above (chosen: a
/// little above the middle, because losses make counts shorter).
const USUAL_TENTHS: usize = 6;

/// The last counts, and what they amount to, kept because every reply asks. Every flow has
/// them, so that four bytes have to do for a count.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    counts: Recent<u32, COUNTS>,
    usual: u32,
    steady: bool,
    regular: bool,
    even: bool,
}

impl Default for Tally {
    // Inlined it takes 60 bytes more on MIPS.
    #[inline(never)]
    fn default() -> Tally {
        Tally { counts: Recent::new(), usual: 0, steady: false, regular: false, even: false }
    }
}

impl Tally {
    /// The usual count; 0 while there are too few.
    pub fn usual(&self) -> u64 {
        u64::from(self.usual)
    }

    /// Nearly all are the same.
    pub fn steady(&self) -> bool {
        self.steady
    }

    /// Half of them are.
    pub fn regular(&self) -> bool {
        self.regular
    }

    /// Most are nearly the same.
    pub fn even(&self) -> bool {
        self.even
    }

    /// The first ones, if they are all the same.
    pub fn first(&self) -> Option<u64> {
        let first = self.counts.last()?;
        let few = FIRST.contains(&self.counts.len());
        (few && self.counts.iter().all(|count| count == first)).then_some(u64::from(first))
    }

    /// One more.
    pub fn push(&mut self, count: u64) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let leaves = self.counts.leaves_next();
        self.counts.push(count);
        if leaves == Some(count) {
            // The same counts as before, as those of most clients are: nothing has to be sorted.
            return;
        }
        let enough = self.counts.len() >= ENOUGH;
        self.usual = self.counts.quantile(USUAL_TENTHS, 10).filter(|_| enough).unwrap_or(0);
        let same = self.counts.iter().filter(|count| *count == self.usual).count();
        self.steady = same >= STEADY;
        self.regular = REGULAR_PART * same >= self.counts.len();
        let is_near = |count: &u32| count.abs_diff(self.usual) <= self.usual / NEAR_PART;
        let near = self.counts.iter().filter(is_near).count();
        self.even = 100 * near >= EVEN_PERCENT * self.counts.len();
    }

    /// Others came before, and from now on it is this one.
    pub fn begin_with(&mut self, count: u64) {
        *self = Tally::default();
        (0..ENOUGH).for_each(|_| self.push(count));
    }

    /// Another flow of the client has counted so steadily.
    pub fn take_up(&mut self, count: u64) {
        (0..STEADY).for_each(|_| self.push(count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(counts: &[u64]) -> Tally {
        let mut tally = Tally::default();
        counts.iter().for_each(|count| tally.push(*count));
        tally
    }

    #[test]
    fn high_counts_are_even_if_most_are_nearly_the_same() {
        let chromium = tally(&[10, 10, 11, 10, 9, 10, 3, 10, 10, 1, 10, 10]);
        assert!(chromium.even() && chromium.regular() && chromium.usual() == 10);
        // A host that is late, and one of which the router reads packets by twos.
        assert!(!tally(&[7, 3, 8, 6, 9, 5, 7, 7, 4, 7]).even());
        let by_turns = tally(&[7, 1, 7, 1, 7, 1, 7, 1]);
        assert!(by_turns.regular() && !by_turns.even());
    }

    #[test]
    fn what_begins_anew_is_believed_at_once() {
        let mut tally = tally(&[2; 12]);
        assert!(tally.steady() && tally.usual() == 2);
        tally.begin_with(10);
        assert!(tally.even() && tally.usual() == 10 && !tally.steady());
    }
}
