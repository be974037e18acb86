// SPDX-License-Identifier: GPL-2.0-or-later
//! How far the rings were read, and the times of what was in them.

use pemi_engine::{MS, Nanos, SEC, Time};

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
    /// The time of the last packet.
    last: Time,
    /// When a packet was found last.
    found: Time,
    /// Packets in this drain and in the one before.
    counted: [usize; 2],
}

impl Drain {
    pub fn begin(&mut self, now: Time, taps: usize) {
        self.until = now;
        self.ahead = None;
        self.left = taps * FRAMES;
        self.counted = [0, self.counted[0]];
    }

    /// The time on our clock of one on the wall clock. A moment before the machine's start is negative.
    fn ours(&mut self, stamp: u64, wall: impl FnOnce() -> u64) -> i64 {
        let until = self.until.as_nanos();
        let ahead = *self.ahead.get_or_insert_with(|| wall().wrapping_sub(until));
        stamp.wrapping_sub(ahead).cast_signed()
    }

    /// Whether a packet of this time has come since the drain began, so that it is for the next one.
    pub fn is_over(&mut self, stamp: u64, wall: impl FnOnce() -> u64) -> bool {
        let later = self.ours(stamp, wall).wrapping_sub(self.until.as_nanos().cast_signed());
        // No drain takes that long, but people may have set their clock.
        (1..SEC).contains(&later)
    }

    /// The next packet, of a ring or of the queue, is of this time on the wall clock, or has come by
    /// now; gives that on ours. People may set theirs, so it is one between the packet before and
    /// now in any case.
    pub fn time(&mut self, stamp: Option<u64>, wall: impl FnOnce() -> u64) -> Time {
        let at = stamp.map(|stamp| u64::try_from(self.ours(stamp, wall)).unwrap_or(0));
        let at = at.map_or(self.until, Time::from_nanos);
        self.last = at.max(self.last).min(self.until);
        self.last
    }

    /// A packet was found in a ring.
    pub fn found(&mut self) {
        self.found = self.until;
        self.left -= 1;
        self.counted[0] += 1;
    }

    /// Whether a ring may have been full since the drain before.
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
        let show = |left: &u64| {
            drain.found();
            drain.time(Some(*left), || wall)
        };
        left.iter().map(show).collect()
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
        state.begin(ms(95), 1);
        assert_eq!(state.time(None, || EPOCH), ms(95), "unknown: it has come by now");
    }

    #[test]
    fn what_has_come_since_the_drain_began_is_for_the_next_one() {
        let mut state = Drain::default();
        state.begin(ms(50), 1);
        let mut over = |at: u64| state.is_over(EPOCH + at * 1_000_000, || EPOCH + 50_000_000);
        assert!(!over(49) && !over(50) && over(51) && over(1049));
        assert!(!over(1050), "the clock was set back: it would be for no drain in a long time");
    }

    #[test]
    fn a_drain_comes_to_an_end_and_tells_whether_there_was_room() {
        let mut state = Drain::default();
        drain(&mut state, 50, EPOCH, &vec![EPOCH; FRAMES - 1]);
        assert!(!state.was_full() && state.left == 1);
        drain(&mut state, 51, EPOCH, &vec![EPOCH; FRAMES]);
        assert!(state.was_full() && state.left == 0);
        drain(&mut state, 52, EPOCH, &[EPOCH]);
        assert!(state.was_full(), "what was missed is told with the next packet");
        drain(&mut state, 53, EPOCH, &[]);
        assert!(!state.was_full());
        assert!(state.is_busy(ms(52) + QUIET - 1) && !state.is_busy(ms(52) + QUIET));
    }
}
