// SPDX-License-Identifier: GPL-2.0-or-later
//! Habits: how a client's flows have acknowledged, kept for its next one.
//!
//! What is kept is not believed but recognised: a flow takes up a habit when its own first counts
//! are those of it, and no sooner. So another program on the same client, or another client
//! that has got the address, learns from nothing as it would without this, and a server can do no
//! more than show its own flows a habit that only flows of the same habit will take up.

use core::num::NonZeroU32;

use crate::time::{Nanos, SEC, Time};

/// Habits that are kept for a client (chosen: a browser, and one program beside it).
const KEPT: usize = 2;
/// For how long (chosen: programs stay the same for days, but an address may be given to somebody
/// else sooner).
const MEMORY: Nanos = 600 * SEC;

/// How a flow has acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Habit {
    /// Packets a reply.
    pub count: u8,
    /// All replies are of one size.
    pub alike: bool,
    /// So losses showed while its packets changed places.
    pub paired: bool,
    /// Its delayed-acknowledgement timer, if that was seen, in nanoseconds; less than a tenth of a
    /// second.
    pub timer: Option<NonZeroU32>,
}

/// The habits of one client.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits([Option<(Time, Habit)>; KEPT]);

impl Habits {
    /// A flow has this habit now: in place of one with the same count, or else of the one that was
    /// seen longest ago.
    pub fn keep(&mut self, now: Time, mut habit: Habit) {
        let kept = &mut self.0;
        let same = kept.iter().position(|it| it.is_some_and(|(_, it)| it.count == habit.count));
        let before = same.and_then(|place| kept[place]);
        habit.paired |= habit.alike && before.is_some_and(|(_, it)| it.paired);
        let place = same.unwrap_or_else(|| {
            let seen = |place: &usize| kept[*place].map(|(at, _)| at);
            (0..KEPT).min_by_key(seen).unwrap_or(0)
        });
        kept[place] = Some((now, habit));
    }

    /// The habit with this count, if a flow had it lately.
    pub fn of(&self, now: Time, count: u64) -> Option<Habit> {
        let fresh = |(at, habit): (Time, Habit)| {
            (u64::from(habit.count) == count && now.since(at) <= MEMORY).then_some(habit)
        };
        self.0.iter().flatten().copied().find_map(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: Nanos) -> Time {
        Time::ZERO + seconds * SEC
    }

    const TENTH: Habit = Habit { count: 10, alike: true, paired: false, timer: None };
    const SECOND: Habit = Habit { count: 2, alike: false, paired: false, timer: None };
    const FOURTH: Habit = Habit { count: 4, alike: true, paired: false, timer: None };

    #[test]
    fn the_two_seen_last_are_kept_and_expire() {
        let mut habits = Habits::default();
        assert_eq!(habits.of(at(0), 10), None);
        habits.keep(at(0), TENTH);
        habits.keep(at(1), SECOND);
        assert_eq!((habits.of(at(2), 10), habits.of(at(2), 2)), (Some(TENTH), Some(SECOND)));
        habits.keep(at(3), TENTH);
        habits.keep(at(4), FOURTH);
        assert_eq!(habits.of(at(5), 2), None, "it was seen longest ago");
        assert_eq!((habits.of(at(5), 10), habits.of(at(5), 4)), (Some(TENTH), Some(FOURTH)));
        assert_eq!((habits.of(at(603), 10), habits.of(at(604), 10)), (Some(TENTH), None));
    }

    #[test]
    fn what_was_seen_last_of_a_count_counts() {
        let mut habits = Habits::default();
        habits.keep(at(0), TENTH);
        let plain = Habit { alike: false, ..TENTH };
        habits.keep(at(1), plain);
        assert_eq!(habits.of(at(1), 10), Some(plain));
    }

    #[test]
    fn that_changing_places_was_of_use_is_kept_for_as_long_as_sizes_are_the_same() {
        let mut habits = Habits::default();
        let paired = Habit { paired: true, ..TENTH };
        habits.keep(at(0), paired);
        habits.keep(at(1), TENTH);
        assert_eq!(habits.of(at(1), 10), Some(paired));
        let plain = Habit { alike: false, ..TENTH };
        habits.keep(at(2), plain);
        assert_eq!(habits.of(at(2), 10), Some(plain));
    }
}
