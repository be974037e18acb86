// SPDX-License-Identifier: GPL-2.0-or-later
//! Sets of numbers as ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Numbers as disjoint ranges.
#[derive(Clone, Debug, Default)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds a range; tells whether any of it was new.
    pub fn insert(&mut self, range: Range<u64>) -> bool {
        let Range { mut start, mut end } = range;
        if start >= end {
            return false;
        }
        let (wanted, mut covered) = (start..end, 0);
        // Ranges that overlap or touch the new one.
        while let Some((&from, &to)) = self.0.range(..=end).next_back()
            && to >= start
        {
            covered += to.min(wanted.end).saturating_sub(from.max(wanted.start));
            self.0.remove(&from);
            start = start.min(from);
            end = end.max(to);
        }
        self.0.insert(start, end);
        covered < wanted.end - wanted.start
    }

    /// Removes all numbers below.
    pub fn remove_below(&mut self, limit: u64) {
        while let Some((&start, &end)) = self.0.first_key_value()
            && start < limit
        {
            self.0.remove(&start);
            if end > limit {
                self.0.insert(limit, end);
            }
        }
    }

    /// The largest number.
    pub fn largest(&self) -> Option<u64> {
        self.0.last_key_value().map(|(_, end)| end - 1)
    }

    /// The smallest number.
    pub fn first(&self) -> Option<u64> {
        self.0.first_key_value().map(|(start, _)| *start)
    }

    /// How many numbers there are from this one on.
    pub fn count_from(&self, from: u64) -> u64 {
        self.0.iter().map(|(start, end)| end.saturating_sub(from.max(*start))).sum()
    }

    /// The end of the range that begins at 0.
    pub fn prefix(&self) -> u64 {
        self.0.get(&0).copied().unwrap_or(0)
    }

    /// Whether a number is in it.
    pub fn contains(&self, number: u64) -> bool {
        self.0.range(..=number).next_back().is_some_and(|(_, end)| number < *end)
    }

    /// The ranges, largest first.
    pub fn descending(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().rev().map(|(start, end)| *start..*end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::single_range_in_vec_init)] // one range is what is expected
    fn joins_what_touches() {
        let mut ranges = Ranges::default();
        assert!(ranges.insert(5..7));
        assert!(ranges.insert(0..2));
        assert!(!ranges.insert(5..6));
        assert!(ranges.insert(1..6));
        assert!(ranges.descending().eq([0..7].into_iter()));
        assert!(ranges.insert(8..9));
        assert!(ranges.insert(7..8));
        assert_eq!((ranges.prefix(), ranges.largest()), (9, Some(8)));
        ranges.remove_below(4);
        assert!(ranges.descending().eq([4..9].into_iter()));
        assert!(ranges.contains(4) && !ranges.contains(3) && !ranges.contains(9));
    }
}
