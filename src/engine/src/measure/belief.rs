// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether a reported loss is believed, where the access point counts losses as well.
//!
//! A driver that has lost track of a frame calls it lost, and some call lost what their queue has
//! dropped, which is congestion and the sender's to hear of. Neither is counted. But a counter is
//! looked at now and then only, so reports go ahead of it; by how far, and whether
//! it follows, tells what they are worth. A few wrong ones among right ones are no harm: what has
//! arrived is sent again for nothing.

use crate::time::{MS, Nanos, Time};

/// Losses that may be reported and not counted yet, before (chosen: of one burst) and after as
/// many as make a proof were counted (all that may be under way).
const UNPROVEN: u32 = 16;
const PROVEN: u32 = 100;
const PROOF: u32 = 8;
/// Where packets are close together, one in so many of those reported of lately (chosen: far more
/// than a radio loses, and less than a queue that overflows in slow start; with one in sixteen
/// 0.7 % of the losses were not believed at 50 Mbit/s, simulated, and with this none).
const SHARE: u32 = 8;
/// What was not counted when the counter was looked at for the second time after the report, and
/// so much later than the first, never will be (chosen: drivers report in batches of some ms).
const LATE: Nanos = 50 * MS;
/// So many reports have to be wrong for each right one until none is believed without being
/// counted (chosen: one loss in a hundred and five wrong ones is a driver that still helps), and
/// so many in all.
const WRONG: u32 = 7;
const JUDGED: u32 = 16;
/// Reports after which older ones count half (chosen: some seconds of a hop that loses 1 %).
const MEMORY: u32 = 128;
/// Losses counted and not used for a report (chosen: what others than our flows have lost is
/// no proof of ours).
const CREDIT: u32 = 4;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Belief {
    /// Reported since the counter was looked at, and before that, without having been counted.
    new: u32,
    old: u32,
    /// When those became old.
    since: Time,
    /// How many reports were right, and how many wrong.
    right: u32,
    wrong: u32,
    credit: u32,
    /// Packets reported of between two looks, with half of those before.
    reported: u32,
}

impl Belief {
    /// The counter was looked at, and has moved by this.
    pub fn counted(&mut self, at: Time, lost: u32) {
        self.credit = self.credit.saturating_add(lost).min(CREDIT);
        let old = self.old.min(lost);
        let new = self.new.min(lost - old);
        self.old -= old;
        self.new -= new;
        self.right += old + new;
        if at.since(self.since) >= LATE {
            self.since = at;
            self.reported /= 2;
            self.wrong += core::mem::take(&mut self.old);
            self.old = core::mem::take(&mut self.new);
        }
        if self.right + self.wrong >= MEMORY {
            self.right /= 2;
            self.wrong /= 2;
        }
    }

    /// Of a packet is reported, whatever became of it.
    pub fn reported(&mut self) {
        self.reported = self.reported.saturating_add(1);
    }

    /// A loss is reported. Whether that is believed.
    pub fn believes_loss(&mut self) -> bool {
        let ahead = self.old + self.new;
        // More than that would say nothing more.
        self.new += u32::from(ahead < PROVEN);
        if self.wrong >= JUDGED && self.wrong > WRONG * self.right {
            let counted = self.credit > 0;
            self.credit -= u32::from(counted);
            return counted;
        }
        let most = if self.right >= PROOF { PROVEN } else { UNPROVEN };
        ahead < most.max(self.reported / SHARE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks ten times a second at a hop with so many true and wrong reports between two of
    /// them, the true ones counted a look later; gives how many of those of the last ten were
    /// believed.
    fn believed(true_ones: u32, wrong_ones: u32) -> usize {
        let mut belief = Belief::default();
        let mut last = 0;
        for look in 0..50 {
            belief.counted(Time::ZERO + look * 100 * MS, if look > 1 { true_ones } else { 0 });
            let reports = true_ones + wrong_ones;
            let heard = (0..reports).filter(|_| belief.believes_loss()).count();
            last += if look < 40 { 0 } else { heard };
        }
        last
    }

    #[test]
    fn reports_are_believed_as_long_as_the_counter_follows() {
        assert_eq!(believed(1, 0), 10);
        assert_eq!(believed(20, 0), 200);
        assert_eq!(believed(1, 5), 60, "a driver that errs now and then");
        assert_eq!(believed(0, 3), 0, "what a queue has dropped");
        assert_eq!(believed(1, 20), 10, "as far as it is counted");
    }

    #[test]
    fn so_many_may_be_ahead() {
        let mut belief = Belief::default();
        let count = |belief: &mut Belief| (0..1000).filter(|_| belief.believes_loss()).count();
        assert_eq!(count(&mut belief), UNPROVEN as usize);
        belief.counted(Time::ZERO + MS, u32::MAX);
        assert_eq!(count(&mut belief), PROVEN as usize);
        assert_eq!(count(&mut belief), 0);
    }

    #[test]
    fn of_many_packets_so_many_more() {
        let mut belief = Belief::default();
        (0..800).for_each(|_| belief.reported());
        assert_eq!((0..1000).filter(|_| belief.believes_loss()).count(), 100);
    }

    #[test]
    fn a_driver_that_mends_is_believed_again() {
        let mut belief = Belief::default();
        let mut at = Time::ZERO;
        let mut look = |belief: &mut Belief, lost| {
            at = at + 100 * MS;
            belief.counted(at, lost);
            belief.believes_loss()
        };
        assert!((0..100).filter(|_| look(&mut belief, 0)).count() < 50);
        assert!(!look(&mut belief, 0));
        (0..200).for_each(|_| assert!(look(&mut belief, 1)));
        assert!(belief.believes_loss() && belief.believes_loss() && belief.believes_loss());
    }
}
