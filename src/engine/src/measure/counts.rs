// SPDX-License-Identifier: GPL-2.0-or-later
//! What the access point counts of the packets to a client: how many it lost after all retries,
//! and how many its queue dropped.
//!
//! Counters are looked at ten times a second or so, which is too late to name a packet or to judge
//! a single sign. But where hardly anything is counted as lost, hardly any sign means a loss of this
//! hop. So copies that follow from inference have a limit: some to begin with, and a few for each loss that
//! was counted. Who tells nothing for a while limits nothing.

use crate::api::{Count, Radio};
use crate::measure::belief::Belief;
use crate::time::{MS, Nanos, SEC, Time};

/// Copies that a client's flows may have before any loss was counted, and again after each
/// look that has found one (chosen: those of a slow start; with 8 of them a download of 2 MB over a
/// hop that loses 1 % got to half the speed in `make sim`, because its first loss stayed).
const FREE: i32 = 32;
/// Copies for each counted loss (as inference needs at 1 %, where few of them hit; with 2 or 6 the
/// same download got to 4.0 and 4.3 Mbit/s instead of 7.9).
const EACH: i32 = 8;
/// Copies that may be saved up (chosen: those of a burst of losses; more would outlast it).
const MOST: i32 = 128;
/// What was told longer ago says nothing of now (chosen: as long as some radios take to be asked
/// without harm).
const FRESH: Nanos = SEC;
/// Losses are forgotten after this long without another (chosen).
const CLEAN: Nanos = 5 * SEC;
/// A queue that has dropped a packet is taken for full for so long (chosen: two looks).
const FULL: Nanos = 200 * MS;
/// Between two requests for counts (half of what the daemon takes them for).
const AGAIN: Nanos = SEC;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    /// When the counters were looked at last, and what they are good for.
    told: Option<(Time, Count)>,
    asked: Option<Time>,
    /// Copies that may be sent.
    credit: i32,
    lost: Option<Time>,
    dropped: Option<Time>,
    belief: Belief,
}

impl Counts {
    pub fn new() -> Counts {
        Counts {
            told: None,
            asked: None,
            credit: FREE,
            lost: None,
            dropped: None,
            belief: Belief::default(),
        }
    }

    /// Whether the client's access point should be asked, for the next second or so.
    pub fn wanted(&mut self, now: Time) -> bool {
        let wanted = self.asked.is_none_or(|asked| now.since(asked) >= AGAIN);
        if wanted {
            self.asked = Some(now);
        }
        wanted
    }

    /// The counters were looked at.
    pub fn tell(&mut self, radio: &Radio) {
        if radio.lost_is == Count::Nothing {
            return self.forget();
        }
        if !self.fresh(radio.to) {
            // What was reported meanwhile nobody has followed.
            self.belief = Belief::default();
        }
        self.belief.counted(radio.to, radio.lost);
        self.told = Some((radio.to, radio.lost_is));
        if radio.queue_drops > radio.lost {
            self.dropped = Some(radio.to);
        }
        if radio.lost > 0 {
            self.lost = Some(radio.to);
            let lost = i32::try_from(radio.lost).unwrap_or(MOST);
            let earned = lost.min(MOST) * EACH;
            self.credit = (self.credit + earned).clamp(FREE, MOST);
        } else if self.lost.is_some_and(|lost| radio.to.since(lost) >= CLEAN) {
            self.credit = self.credit.min(FREE);
        }
    }

    /// The client is with another access point, or with none that anybody knows of.
    pub fn forget(&mut self) {
        *self = Counts { asked: self.asked, ..Counts::new() };
    }

    /// Whether each loss of this client's packets is counted.
    pub fn exact(&self) -> bool {
        matches!(self.told, Some((_, Count::Exact)))
    }

    /// Whether anybody tells anything.
    pub fn told(&self) -> bool {
        self.told.is_some()
    }

    /// Whether losses were counted lately.
    pub fn lossy(&self, now: Time) -> bool {
        self.fresh(now) && self.lost.is_some_and(|lost| now.since(lost) < CLEAN)
    }

    /// Whether somebody has told lately.
    fn fresh(&self, now: Time) -> bool {
        self.told.is_some_and(|(told, _)| now.since(told) < FRESH)
    }

    /// Of a packet is reported, whatever became of it.
    pub fn reported(&mut self) {
        self.belief.reported();
    }

    /// A loss is reported. Whether that is believed.
    pub fn believes_loss(&mut self, now: Time) -> bool {
        !self.fresh(now) || self.belief.believes_loss()
    }

    /// Copies that may be sent because of signs; none: nobody counts.
    pub fn allowed(&self, now: Time) -> Option<usize> {
        self.fresh(now).then_some(self.credit.max(0) as usize)
    }

    /// A copy was sent that no report has asked for.
    pub fn copied(&mut self, now: Time) {
        if self.fresh(now) {
            self.credit = (self.credit - 1).max(0);
        }
    }

    /// Whether the queue in front of the radio is known to be full: what is missing then was
    /// dropped there, and the sender has to hear of it.
    pub fn queue_drops(&self, now: Time) -> bool {
        self.dropped.is_some_and(|dropped| now.since(dropped) < FULL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Time {
        Time::ZERO + ms * MS
    }

    fn look(ms: i64, lost: u32, queue_drops: u32) -> Radio {
        let lost_is = Count::Exact;
        Radio { from: at(ms - 100), to: at(ms), sent: 90, lost, lost_is, queued: 0, queue_drops }
    }

    #[test]
    fn copies_are_limited_by_what_was_counted() {
        let mut counts = Counts::new();
        assert_eq!(counts.allowed(at(1000)), None);
        counts.copied(at(1000));
        counts.tell(&look(1000, 0, 0));
        assert_eq!(counts.allowed(at(1000)), Some(32));
        (0..50).for_each(|_| counts.copied(at(1000)));
        counts.tell(&look(1100, 0, 0));
        assert_eq!(counts.allowed(at(1100)), Some(0));
        assert!(!counts.lossy(at(1100)));
        counts.tell(&look(1200, 1, 0));
        assert_eq!(counts.allowed(at(1200)), Some(32));
        counts.tell(&look(1300, 3, 0));
        assert_eq!(counts.allowed(at(1300)), Some(56));
        counts.tell(&look(1400, u32::MAX, 0));
        assert_eq!(counts.allowed(at(1400)), Some(128));
        assert!(counts.lossy(at(1400)));
        counts.tell(&look(6400, 0, 0));
        assert_eq!(counts.allowed(at(6400)), Some(32));
        assert_eq!(counts.allowed(at(7400)), None, "nobody tells any more");
    }

    #[test]
    fn a_queue_that_drops_is_full_for_a_while() {
        let mut counts = Counts::new();
        counts.tell(&look(1000, 2, 1));
        assert!(!counts.queue_drops(at(1000)));
        counts.tell(&look(1100, 2, 3));
        counts.tell(&look(1200, 0, 0));
        assert!(counts.queue_drops(at(1299)) && !counts.queue_drops(at(1300)));
    }

    #[test]
    fn who_has_moved_is_asked_of_anew() {
        let mut counts = Counts::new();
        assert!(counts.wanted(at(0)) && !counts.wanted(at(999)) && counts.wanted(at(1000)));
        counts.tell(&look(1000, 0, 5));
        assert!(counts.exact());
        counts.forget();
        assert!(!counts.exact() && !counts.fresh(at(1000)) && !counts.queue_drops(at(1000)));
        assert!(!counts.wanted(at(1001)));
    }
}
