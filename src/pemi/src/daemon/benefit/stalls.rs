// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether fewer downloads stand still with help: the difference of two shares, and an interval of
//! confidence that is made of Wilson's intervals of the shares (Newcombe, "Interval estimation for the
//! difference between independent proportions", Statistics in Medicine 17, 1998, method 10).
//!
//! Medians as those of rates would tell nothing here: most downloads never stand still, so they are
//! zero on both sides. This interval holds also where none of a few has stood still.
//!
//! Kinds of clients are not mixed: their differences come together with the weights of Mantel and
//! Haenszel, and what is uncertain of each as Zou and Donner add it up ("Construction of confidence
//! limits about effect measures: a general approach", Statistics in Medicine 27, 2008).

use super::estimate::CONFIDENT;

/// What shares are counted in: tenths of a percent.
const ONE: u32 = 1000;
/// What weights are counted in (chosen: with as many downloads as are kept, 32 bits are enough for all but
/// squares; divisions of 64 are kilobytes of code on MIPS).
const WEIGHT: u32 = 100;
/// The square of `CONFIDENT`, and what the square of a whole deviation is in that.
const SQUARE: u32 = (CONFIDENT * CONFIDENT) as u32;
const SCALE: u32 = 100 * 100;

/// Downloads of one side.
#[derive(Clone, Copy, Debug, Default)]
pub struct Side {
    pub stalled: u32,
    pub of: u32,
}

/// The share of helped downloads that stood still, less that of those left alone, in tenths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    pub points: i32,
    /// Within which the true one is, with 95 %.
    pub between: [i32; 2],
}

/// Of several pairs of those with help and those without; nothing while a side is missing everywhere.
pub fn difference(pairs: &[[Side; 2]]) -> Option<Difference> {
    let (mut weights, mut points) = (0, 0);
    let mut squares = [0; 2];
    for sides in pairs.iter().filter(|sides| sides.iter().all(|side| side.of > 0)) {
        let [helped, alone] = sides.map(|side| side.of);
        let weight = (WEIGHT * helped * alone / (helped + alone)) as i32;
        weights += weight;
        for (at, side) in sides.iter().enumerate() {
            let share = (side.stalled * ONE / side.of) as i32;
            points += if at == 0 { weight * share } else { -weight * share };
            // What is uncertain below the one and above the other makes the lower end.
            for (end, bound) in [side.low(), ONE - side.others().low()].into_iter().enumerate() {
                let length = weight * (bound as i32 - share);
                squares[at ^ end] += (i64::from(length) * i64::from(length)) as u64;
            }
        }
    }
    let [below, above] = squares.map(|square| square.isqrt() as i32);
    let at = |sum: i32| sum.checked_div(weights);
    Some(Difference { points: at(points)?, between: [at(points - below)?, at(points + above)?] })
}

impl Side {
    /// What is true of those that did not stand still is true of those that did the other way round.
    fn others(self) -> Side {
        Side { stalled: self.of - self.stalled, of: self.of }
    }

    /// The lower end of Wilson's interval.
    fn low(self) -> u32 {
        let Side { stalled, of } = self;
        let scatter = u64::from(SQUARE) * u64::from(stalled * (of - stalled) * SCALE / of);
        let half = (scatter + u64::from(SQUARE).pow(2) / 4).isqrt() as u32;
        (SCALE * stalled + SQUARE / 2 - half) * ONE / (SCALE * of + SQUARE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(helped: (u32, u32), alone: (u32, u32)) -> [Side; 2] {
        [helped, alone].map(|(stalled, of)| Side { stalled, of })
    }

    fn one(helped: (u32, u32), alone: (u32, u32)) -> Difference {
        difference(&[sides(helped, alone)]).unwrap()
    }

    #[test]
    fn intervals_are_those_that_newcombe_gives() {
        // Table II of the article.
        for (helped, alone, low, high) in [
            ((56, 70), (48, 80), 52, 334),
            ((9, 10), (3, 10), 171, 809),
            ((5, 56), (0, 29), -38, 193),
            ((0, 10), (0, 10), -278, 278),
        ] {
            let [found_low, found_high] = one(helped, alone).between;
            assert!((found_low - low).abs() <= 2, "{helped:?} {alone:?}: {found_low}");
            assert!((found_high - high).abs() <= 2, "{helped:?} {alone:?}: {found_high}");
        }
    }

    #[test]
    fn without_two_sides_nothing_is_told() {
        assert_eq!(difference(&[]), None);
        assert_eq!(difference(&[sides((1, 9), (0, 0)), sides((0, 0), (1, 9))]), None);
        // The other kind does not matter.
        let pairs = [sides((3, 128), (9, 14)), sides((9, 9), (0, 0))];
        assert_eq!(difference(&pairs), Some(one((3, 128), (9, 14))));
    }

    #[test]
    fn nothing_overflows_with_as_many_as_are_kept() {
        for (helped, alone) in [((0, 128), (64, 64)), ((64, 128), (32, 64)), ((128, 128), (0, 64))]
        {
            let found = difference(&[sides(helped, alone); 3]).unwrap();
            let [low, high] = found.between;
            let one = ONE as i32;
            assert!(-one <= low && low <= found.points && found.points <= high && high <= one);
        }
    }

    #[test]
    fn kinds_of_clients_are_not_mixed() {
        // One kind stands still often and is seldom left alone; help does nothing for either.
        let pairs = [sides((60, 120), (3, 6)), sides((0, 60), (0, 60))];
        assert_eq!(difference(&pairs).unwrap().points, 0);
    }

    /// Numbers that look random.
    struct Random(u64);

    impl Random {
        fn side(&mut self, of: u32, percent: u64) -> Side {
            let stalled = (0..of).filter(|_| {
                self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (self.0 >> 33) % 100 < percent
            });
            Side { stalled: stalled.count() as u32, of }
        }
    }

    #[test]
    fn the_interval_has_the_truth_in_it_nineteen_times_in_twenty() {
        let mut random = Random(1);
        for (helped, alone, with, without) in [
            (128, 64, 5, 30),
            (128, 14, 2, 60),
            (57, 3, 10, 10),
            (100, 10, 50, 50),
            (128, 64, 0, 1),
            (45, 15, 40, 5),
        ] {
            // Two kinds, of which the second stands still more often.
            let truth = (with as i32 - without as i32) * ONE as i32 / 100;
            let mut missed = 0;
            for _ in 0..1000 {
                let mut kind = |more: u64| {
                    [random.side(helped, with + more), random.side(alone, without + more)]
                };
                let [low, high] = difference(&[kind(0), kind(20)]).unwrap().between;
                missed += usize::from(truth < low || truth > high);
            }
            println!("{helped} at {with} %, {alone} at {without} %: {missed} of 1000 missed");
            // Four standard deviations above one in twenty.
            assert!(missed <= 78, "{missed} of 1000 with {helped} and {alone}");
        }
    }
}
