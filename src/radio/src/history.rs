// SPDX-License-Identifier: GPL-2.0-or-later
//! What was lost lately, in a few bytes: the last minute, the last hour, and all of it.

use std::time::Duration;

use crate::meter::Delta;

/// The last minute in steps of five seconds.
const STEP_S: u64 = 5;
const STEPS: usize = 12;
/// The last hour in slots of five minutes: points enough for a small curve.
const STEPS_PER_SLOT: u64 = 60;
/// How many slots the hour has.
pub const SLOTS: usize = 12;

/// Sums of packets, or of a part of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Packets sent, also those that were lost.
    pub sent: u64,
    /// Packets lost after all attempts.
    pub lost: u64,
    /// Attempts beyond the first.
    pub retried: u64,
}

impl Sums {
    /// Of a thousand packets, rounded; none of none.
    pub fn lost_per_mille(&self) -> u32 {
        let packets = self.sent.max(self.lost).max(1);
        ((self.lost.saturating_mul(1000) + packets / 2) / packets) as u32
    }
}

/// The same for a slot, in less room.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    sent: u32,
    lost: u32,
    retried: u32,
}

/// Of one station.
#[derive(Clone, Debug)]
pub struct History {
    /// Number of the newest step since the beginning of time.
    step: u64,
    minute: [u16; STEPS],
    hour: [Slot; SLOTS],
    total: Sums,
    clean_since: Duration,
    clean_sent: u64,
}

impl History {
    /// Begins now, without a loss.
    pub fn new(now: Duration) -> History {
        History {
            step: now.as_secs() / STEP_S,
            minute: [0; STEPS],
            hour: [Slot::default(); SLOTS],
            total: Sums::default(),
            clean_since: now,
            clean_sent: 0,
        }
    }

    /// Adds what happened up to `now`.
    pub fn add(&mut self, now: Duration, delta: &Delta) {
        self.advance(now);
        let minute = &mut self.minute[self.step as usize % STEPS];
        *minute = minute.saturating_add(delta.lost.min(u32::from(u16::MAX)) as u16);
        let slot = &mut self.hour[(self.step / STEPS_PER_SLOT) as usize % SLOTS];
        slot.sent = slot.sent.saturating_add(delta.sent);
        slot.lost = slot.lost.saturating_add(delta.lost);
        slot.retried = slot.retried.saturating_add(delta.retried);
        self.total.sent += u64::from(delta.sent);
        self.total.lost += u64::from(delta.lost);
        self.total.retried += u64::from(delta.retried);
        self.clean_sent += u64::from(delta.sent);
        if delta.lost > 0 {
            (self.clean_since, self.clean_sent) = (now, 0);
        }
    }

    /// Losses of the last 55 to 60 seconds.
    pub fn lost_last_minute(&self, now: Duration) -> u32 {
        let past = now_step(now).saturating_sub(self.step);
        // The newest step is the last one of these.
        let kept = (STEPS as u64).saturating_sub(past);
        (0..kept).map(|back| u32::from(self.minute[at(self.step, back, STEPS)])).sum()
    }

    /// Of the last 55 to 60 minutes.
    pub fn last_hour(&self, now: Duration) -> Sums {
        self.curve(now).iter().fold(Sums::default(), |sum, slot| Sums {
            sent: sum.sent + slot.sent,
            lost: sum.lost + slot.lost,
            retried: sum.retried + slot.retried,
        })
    }

    /// The last hour in slots of five minutes, the newest, which is not yet over, at the end.
    pub fn curve(&self, now: Duration) -> [Sums; SLOTS] {
        let newest = self.step / STEPS_PER_SLOT;
        let past = (now_step(now) / STEPS_PER_SLOT).saturating_sub(newest);
        let mut curve = [Sums::default(); SLOTS];
        for back in 0..(SLOTS as u64).saturating_sub(past) {
            let slot = self.hour[at(newest, back, SLOTS)];
            curve[SLOTS - 1 - (back + past) as usize] = Sums {
                sent: slot.sent.into(),
                lost: slot.lost.into(),
                retried: slot.retried.into(),
            };
        }
        curve
    }

    /// Since the station was seen first.
    pub fn total(&self) -> Sums {
        self.total
    }

    /// When the last loss was counted, or when it was seen first.
    pub fn clean_since(&self) -> Duration {
        self.clean_since
    }

    /// Packets sent since then, none of them lost.
    pub fn clean_sent(&self) -> u64 {
        self.clean_sent
    }

    /// Forgets what is too old for the room it has.
    fn advance(&mut self, now: Duration) {
        let (then, now) = (self.step, now_step(now).max(self.step));
        for step in then.max(now.saturating_sub(STEPS as u64)) + 1..=now {
            self.minute[step as usize % STEPS] = 0;
        }
        let (then, newest) = (then / STEPS_PER_SLOT, now / STEPS_PER_SLOT);
        for slot in then.max(newest.saturating_sub(SLOTS as u64)) + 1..=newest {
            self.hour[slot as usize % SLOTS] = Slot::default();
        }
        self.step = now;
    }
}

fn now_step(now: Duration) -> u64 {
    now.as_secs() / STEP_S
}

/// Where in a ring that is, which was so many before the newest. Before the beginning of time
/// nothing was written, and what is there is zero.
fn at(newest: u64, back: u64, places: usize) -> usize {
    (newest % places as u64 + places as u64 - back) as usize % places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::Worth;

    fn delta(sent: u32, lost: u32) -> Delta {
        Delta { sent, lost, retried: lost.saturating_mul(2), worth: Worth::Exact, anew: false }
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_minute_and_an_hour_and_no_longer() {
        let mut history = History::new(s(7));
        history.add(s(8), &delta(1000, 3));
        assert_eq!(history.lost_last_minute(s(60)), 3);
        // It was in the step from 5 to 10.
        assert_eq!(history.lost_last_minute(s(64)), 3);
        assert_eq!(history.lost_last_minute(s(65)), 0);
        history.add(s(70), &delta(500, 1));
        assert_eq!(history.lost_last_minute(s(70)), 1);
        let hour = history.last_hour(s(3599));
        assert_eq!((hour.sent, hour.lost, hour.retried), (1500, 4, 8));
        assert_eq!(hour.lost_per_mille(), 3);
        assert_eq!(history.last_hour(s(3600)), Sums::default());
        history.add(s(3600), &delta(10, 0));
        assert_eq!(history.last_hour(s(3600)).sent, 10);
        assert_eq!(history.total(), Sums { sent: 1510, lost: 4, retried: 8 });
    }

    #[test]
    fn whoever_is_looked_at_every_second_keeps_all_of_it() {
        let mut history = History::new(s(0));
        for second in 1..=20_000 {
            history.add(s(second), &delta(100, 1));
            let lost = u64::from(history.lost_last_minute(s(second)));
            assert!(lost == second.min(55 + second % 5 + 1) || second < 60 && lost == second);
        }
        // Of the slot that is not over, 200 s of 300 have passed.
        let curve = history.curve(s(20_000));
        assert_eq!((curve[0].lost, curve[10].lost, curve[11].lost), (300, 300, 201));
        assert_eq!(history.last_hour(s(20_000)).lost, 11 * 300 + 201);
    }

    #[test]
    fn how_long_it_is_clean() {
        let mut history = History::new(s(100));
        history.add(s(101), &delta(5, 0));
        assert_eq!((history.clean_since(), history.clean_sent()), (s(100), 5));
        history.add(s(102), &delta(50, 1));
        history.add(s(103), &delta(7, 0));
        assert_eq!((history.clean_since(), history.clean_sent()), (s(102), 7));
    }

    #[test]
    fn more_than_fits_and_times_that_go_back() {
        let mut history = History::new(Duration::MAX);
        for now in [Duration::ZERO, Duration::MAX] {
            history.add(now, &delta(u32::MAX, u32::MAX));
            history.curve(now);
        }
        assert_eq!(history.lost_last_minute(Duration::MAX), u32::from(u16::MAX));
        assert_eq!(history.total().lost_per_mille(), 1000);
        assert_eq!(Sums { sent: 2000, lost: 1, retried: 0 }.lost_per_mille(), 1);
        assert_eq!(Sums::default().lost_per_mille(), 0);
    }
}
