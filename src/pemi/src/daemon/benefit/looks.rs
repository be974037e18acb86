// SPDX-License-Identifier: GPL-2.0-or-later
//! When it is asked whether help does harm, and how certain the answer has to be.
//!
//! Chance leaves the truth out of an interval of 99 % once in a hundred looks, so one that is
//! looked at after each download says harm at some time, whatever is true (Armitage, McPherson and
//! Rowe, "Repeated significance tests on accumulating data", Journal of the Royal Statistical
//! Society A 132, 1969). So the chance of being wrong is spent in parts (Lan and DeMets, "Discrete
//! sequential boundaries for clinical trials", Biometrika 70, 1983): of one percent the first look
//! may spend a half, the next two a quarter, the next four an eighth, and so on. However many looks there are,
//! and however many downloads two of them share, they are wrong once in a hundred networks at most: the
//! chance of any of several things never exceeds the sum of theirs.

use super::sample::ALONE;

/// How far from its mean, on one side, a normal variable is with the chance that each look may have from the
/// first, the second, the fourth, the eighth on, and so on: 1 in 200, 800, 3200, in hundredths of its
/// standard deviation.
const DEVIATIONS: [u16; 12] = [258, 303, 343, 379, 412, 443, 472, 499, 525, 550, 574, 597];

/// What has been looked at of one network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// So many times.
    pub taken: u32,
    /// Downloads that were left alone, as many as there were.
    pub alone: u32,
    /// The next look comes with so many.
    pub due: u32,
}

impl Looks {
    /// One more download was left alone.
    pub fn count(&mut self) {
        self.alone = self.alone.saturating_add(1);
    }

    /// How many deviations wide an interval the look may use that is due.
    pub fn due(&self) -> Option<u64> {
        // None comes beyond the last of them: by then a quarter of a million downloads were left alone.
        let at = self.taken.saturating_add(1).ilog2() as usize;
        let deviations = DEVIATIONS.get(at).copied().unwrap_or(u16::MAX);
        (self.alone >= self.due).then_some(deviations.into())
    }

    /// That look has shown something, true or not. The next one comes when half as many are there again
    /// (chosen: it would see the same otherwise), or all of those that are kept are others.
    pub fn taken(&mut self) {
        self.taken = self.taken.saturating_add(1);
        self.due = self.alone.saturating_add((self.alone / 2).clamp(1, ALONE as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The chance of a normal variable to be more than so many deviations above its mean.
    fn beyond(deviations: f64) -> f64 {
        let step = 0.001;
        let density = |at: f64| (-at * at / 2.0).exp() / std::f64::consts::TAU.sqrt();
        (0..10_000).map(|n| density(deviations + (f64::from(n) + 0.5) * step) * step).sum()
    }

    #[test]
    fn all_looks_together_are_wrong_once_in_a_hundred() {
        let mut looks = Looks::default();
        let mut spent = 0.0;
        for _ in 1..4096 {
            let deviations = looks.due().unwrap();
            spent += beyond(deviations as f64 / 100.0);
            looks = Looks { taken: looks.taken + 1, ..looks };
        }
        assert!((0.009..0.01).contains(&spent), "{spent}");
        assert_eq!(looks.due(), Some(u16::MAX.into()));
    }

    #[test]
    fn looks_become_rare_but_never_cease() {
        let mut looks = Looks::default();
        let mut at = Vec::new();
        for _ in 0..300 {
            looks.count();
            if looks.due().is_some() {
                at.push(looks.alone);
                looks.taken();
            }
        }
        assert_eq!(at, [1, 2, 3, 4, 6, 9, 13, 19, 28, 42, 63, 94, 141, 205, 269]);
        assert_eq!(looks.taken as usize, at.len());
        let last = Looks { taken: u32::MAX, alone: u32::MAX, due: u32::MAX };
        assert!(last.due().is_some());
    }
}
