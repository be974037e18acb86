// SPDX-License-Identifier: GPL-2.0-or-later
//! Packet numbers that a sender leaves out on purpose, so that a client which acknowledges what it
//! has not seen is found out (RFC 9000, section 21.4).
//!
//! The server here is quinn-proto, which leaves out few. So the client takes its packets for ones with
//! other numbers, among which some are missing, and acknowledges those that they have.

use std::ops::Range;

use crate::random::Random;

/// Which are left out.
#[derive(Debug, Default)]
pub struct Skips {
    /// One after so many on average, if any.
    every: Option<(u64, Random)>,
    /// The packets before which a number is left out, by the numbers that they have.
    before: Vec<u64>,
}

impl Skips {
    /// One after so many packets on average.
    pub fn new(every: u64, random: Random) -> Skips {
        Skips { every: Some((every, random)), before: Vec::new() }
    }

    /// The number that a packet seems to have.
    pub fn seen(&mut self, number: u64) -> u64 {
        let last = |before: &[u64]| before.last().copied().unwrap_or(0);
        while let Some((every, random)) = &mut self.every
            && last(&self.before) <= number
        {
            let next = last(&self.before) + 1 + random.below(2 * *every);
            self.before.push(next);
        }
        number + self.before.partition_point(|before| *before <= number) as u64
    }

    /// The number that it has, of one that has come.
    pub fn sent(&self, seen: u64) -> u64 {
        let (mut low, mut high) = (0, self.before.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.before[middle] + (middle as u64) < seen {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        seen - low as u64
    }

    /// Ranges of what has come, the largest first, with the numbers that the packets have.
    pub fn all_sent(&self, seen: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut sent: Vec<Range<u64>> = Vec::new();
        for range in seen {
            let range = self.sent(range.start)..self.sent(range.end - 1) + 1;
            match sent.last_mut().filter(|above| above.start == range.end) {
                Some(above) => above.start = range.start,
                None => sent.push(range),
            }
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_is_what_was_sent_again() {
        let mut skips = Skips::new(10, Random::new(1));
        let seen: Vec<u64> = (0..500).map(|number| skips.seen(number)).collect();
        assert!(seen.windows(2).all(|pair| (1..=2).contains(&(pair[1] - pair[0]))));
        let left_out = seen[499] - 499;
        assert!((35..70).contains(&left_out), "{left_out} left out");
        assert!(seen.iter().zip(0..).all(|(seen, number)| skips.sent(*seen) == number));
    }

    #[test]
    fn gaps_of_the_senders_own_close_in_what_it_is_told() {
        let mut skips = Skips { every: None, before: vec![3, 6] };
        let seen = [2, 3, 5, 6, 8].map(|number| skips.seen(number));
        assert_eq!(seen, [2, 4, 6, 8, 10]);
        let ranges = [10..11, 8..9, 6..7, 4..5, 2..3];
        assert_eq!(skips.all_sent(&ranges), [8..9, 5..7, 2..4]);
    }

    #[test]
    fn without_any_numbers_stay_as_they_are() {
        let mut skips = Skips::default();
        assert_eq!((skips.seen(7), skips.sent(7)), (7, 7));
        assert_eq!(skips.all_sent(&[4..9, 0..3]), [4..9, 0..3]);
    }
}
