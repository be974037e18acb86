// SPDX-License-Identifier: GPL-2.0-or-later
//! How far the rings were read, and the times of what was in them.

use pemi_engine::{MS, Nanos, Time};

use crate::sys::packet_ring::FRAMES;

/// After so long without a packet the kernel is asked to wake the thread for the next one (chosen:
/// a wake-up for each packet is what a ring saves, and packets of a download come more often).
const QUIET: Nanos = 20 * MS;

/// How far the rings were read.
#[derive(Debug, Default)]
pub(super) struct Drain {
    /// When it began; what is in the rings has happened before.
    pub until: Time,
    /// By how much the wall clock was ahead of ours then, once somebody has looked.
    ahead: Option<u64>,
    /// Packets that may still be shown, so that it comes to an end.
    pub left: usize,
    /// The time of the last packet that was shown.
    pub last: Time,
    /// When a packet was found last.
    found: Time,
    /// Packets in this drain, and in the last one before it that found any.
    counted: [usize; 2],
}

impl Drain {
    pub fn begin(&mut self, now: Time, taps: usize) {
        self.until = now;
        self.ahead = None;
        self.left = taps * FRAMES;
        // What was missed is told with the next packet, however many drains later that is.
        if self.counted[0] > 0 {
            self.counted = [0, self.counted[0]];
        }
    }

    /// The next packet is of this time on the wall clock; gives that on ours. People may set
    /// theirs, so it is one between the packet before and now in any case.
    pub fn show(&mut self, stamp: u64, wall: impl FnOnce() -> u64) -> Time {
        let until = self.until.as_nanos();
        let ahead = *self.ahead.get_or_insert_with(|| wall().wrapping_sub(until));
        // A moment before the machine's start is negative.
        let at = u64::try_from(stamp.wrapping_sub(ahead).cast_signed()).unwrap_or(0);
        self.last = Time::from_nanos(at).max(self.last).min(self.until);
        self.found = self.until;
        self.left -= 1;
        self.counted[0] += 1;
        self.last
    }

    /// Whether a ring may have been full before the packet that was shown last.
    pub fn was_full(&self) -> bool {
        self.counted.iter().any(|counted| *counted >= FRAMES)
    }

    /// Whether packets came lately, so that more are to be expected.
    pub fn is_busy(&self, now: Time) -> bool {
        now.since(self.found) < QUIET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds since 1970 at the machine's start.
    const EPOCH: u64 = 1_800_000_000_000_000_000;

    fn ms(ms: i64) -> Time {
        Time::ZERO + ms * MS
    }

    /// A drain at this time, and the times that packets get which left at those of the wall clock.
    fn drain(drain: &mut Drain, now: i64, wall: u64, left: &[u64]) -> Vec<Time> {
        drain.begin(ms(now), 1);
        left.iter().map(|left| drain.show(*left, || wall)).collect()
    }

    #[test]
    fn packets_have_the_time_at_which_they_left() {
        let wall = |ms: u64| EPOCH + ms * 1_000_000;
        let mut state = Drain::default();
        let times = drain(&mut state, 50, wall(50), &[wall(47), wall(48), wall(50)]);
        assert_eq!(times, [ms(47), ms(48), ms(50)]);
        // The clock was set, forwards and backwards, after they had left.
        let times = drain(&mut state, 60, wall(60) + EPOCH, &[wall(57), wall(58)]);
        assert_eq!(times, [ms(50), ms(50)], "no earlier than what was shown");
        let times = drain(&mut state, 70, wall(3), &[wall(67), wall(68)]);
        assert_eq!(times, [ms(70), ms(70)], "no later than now");
        let times = drain(&mut state, 80, wall(13), &[wall(12)]);
        assert_eq!(times, [ms(79)]);
        assert_eq!(drain(&mut state, 90, EPOCH, &[0, u64::MAX]), [ms(79), ms(79)]);
    }

    #[test]
    fn a_drain_comes_to_an_end_and_tells_whether_there_was_room() {
        let mut state = Drain::default();
        drain(&mut state, 50, EPOCH, &vec![EPOCH; FRAMES - 1]);
        assert!(!state.was_full() && state.left == 1);
        drain(&mut state, 51, EPOCH, &vec![EPOCH; FRAMES]);
        assert!(state.was_full() && state.left == 0);
        // Batches of the queue, while nothing comes to the rings.
        drain(&mut state, 51, EPOCH, &[]);
        drain(&mut state, 51, EPOCH, &[]);
        drain(&mut state, 52, EPOCH, &[EPOCH]);
        assert!(state.was_full(), "what was missed is told with the next packet");
        drain(&mut state, 53, EPOCH, &[EPOCH]);
        assert!(!state.was_full());
        assert!(state.is_busy(ms(53) + QUIET - 1) && !state.is_busy(ms(53) + QUIET));
    }
}
