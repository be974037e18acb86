// SPDX-License-Identifier: GPL-2.0-or-later
//! The smallest value of the last while, in two numbers.

use crate::time::{Nanos, Time};

/// The smallest of what was pushed in the last `WINDOW`. It keeps one value for each
/// half of it, so that the oldest ones are forgotten after between half a window and
/// a whole one.
#[derive(Clone, Debug)]
pub(crate) struct Least<const WINDOW: Nanos> {
    /// Of the half that is running, and of the one before it.
    halves: [Nanos; 2],
    since: Time,
}

impl<const WINDOW: Nanos> Least<WINDOW> {
    pub fn new(now: Time) -> Self {
        Least { halves: [Nanos::MAX; 2], since: now }
    }

    /// Gives whether it is the smallest.
    // Inlined it takes 300 bytes more on MIPS.
    #[inline(never)]
    pub fn push(&mut self, now: Time, value: Nanos) -> bool {
        if now.since(self.since) > WINDOW / 2 {
            self.halves = [Nanos::MAX, self.halves[0]];
            self.since = now;
        }
        self.halves[0] = self.halves[0].min(value);
        value <= self.halves[0].min(self.halves[1])
    }

    /// `None` while nothing was pushed.
    pub fn get(&self) -> Option<Nanos> {
        Some(self.halves[0].min(self.halves[1])).filter(|least| *least < Nanos::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SEC;

    #[test]
    fn forgets_after_half_a_window_to_a_whole_one() {
        let mut least = Least::<{ 10 * SEC }>::new(Time::ZERO);
        assert_eq!(least.get(), None);
        least.push(Time::ZERO, 3);
        least.push(Time::ZERO + 5 * SEC, 7);
        assert_eq!(least.get(), Some(3));
        least.push(Time::ZERO + 6 * SEC, 9);
        assert_eq!(least.get(), Some(3), "from the half before");
        least.push(Time::ZERO + 12 * SEC, 8);
        assert_eq!(least.get(), Some(8));
    }
}
