// SPDX-License-Identifier: GPL-2.0-or-later
//! The downloads that are compared: the newest ones of each kind, in the order in which they came.
//! What was true a month ago of another channel and other neighbours is not asked for, so the oldest
//! makes room, and nothing grows.
//!
//! Both sides are of the same days. As few are left alone, the newest hundred helped ones are of this
//! evening and the newest fifty others of the whole week: an evening on which the line is slow
//! would look like harm. So it is not always the oldest helped one that makes room, but the oldest where
//! most of them lie between two that were left alone.

use std::collections::VecDeque;

use pemi_engine::{Knowledge, Outcome};

use super::stalls::Side;

/// The newest that are kept of each kind: helped ones, and those left alone (chosen: by them an
/// interval of confidence is about a tenth wide where rates differ by a factor of three, and all
/// quotients of them are counted in a few milliseconds on a small router).
pub const HELPED: usize = 128;
pub const ALONE: usize = 64;
/// Kinds of clients: by what tells of their losses.
pub const KINDS: [Knowledge; 3] = [Knowledge::Replies, Knowledge::Counts, Knowledge::Reports];

/// A download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub helped: bool,
    pub kbit_s: u32,
    /// How often it stood still.
    pub stalls: u16,
}

impl Sample {
    pub fn new(outcome: &Outcome) -> Sample {
        // Bits, and milliseconds in nanoseconds. Beyond two terabytes it is too low, and in no
        // more than 64 bits: a division of 128 is 2 KB of code on MIPS.
        let kbit_s = outcome.bytes.saturating_mul(8_000_000) / outcome.busy.max(1).unsigned_abs();
        Sample {
            helped: outcome.helped,
            kbit_s: u32::try_from(kbit_s).unwrap_or(u32::MAX),
            stalls: u16::try_from(outcome.stalls).unwrap_or(u16::MAX),
        }
    }
}

/// Those of one kind of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    all: VecDeque<Sample>,
    helped: usize,
}

impl Samples {
    pub fn add(&mut self, sample: Sample) {
        self.helped += usize::from(sample.helped);
        self.all.push_back(sample);
        if self.count(false) > ALONE {
            // Nothing is left to compare those with that came before it.
            let oldest = self.all.iter().position(|it| !it.helped).unwrap_or(0);
            self.all.drain(..=oldest);
            self.helped -= oldest;
        }
        if self.helped > HELPED {
            let crowd = self.crowd();
            self.all.remove(crowd);
            self.helped -= 1;
        }
    }

    /// Where the longest row of helped ones begins, of several the oldest.
    fn crowd(&self) -> usize {
        let (mut crowd, mut longest, mut begin) = (0, 0, 0);
        for (at, sample) in self.all.iter().enumerate() {
            if !sample.helped {
                begin = at + 1;
            } else if at + 1 - begin > longest {
                (crowd, longest) = (begin, at + 1 - begin);
            }
        }
        crowd
    }

    /// Those that were helped, or those that were left alone.
    fn of(&self, helped: bool) -> impl Iterator<Item = &Sample> {
        self.all.iter().filter(move |it| it.helped == helped)
    }

    pub fn count(&self, helped: bool) -> usize {
        if helped { self.helped } else { self.all.len() - self.helped }
    }

    /// How many stood still, of those that were helped, and of the others.
    pub fn stalls(&self) -> [Side; 2] {
        let mut sides = [Side::default(); 2];
        for sample in &self.all {
            let side = &mut sides[usize::from(!sample.helped)];
            side.of += 1;
            side.stalled += u32::from(sample.stalls > 0);
        }
        sides
    }

    /// All of them, the newest last.
    pub fn iter(&self) -> impl Iterator<Item = &Sample> {
        self.all.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The rates of both sides.
    pub fn rates(&self) -> (Vec<u32>, Vec<u32>) {
        let rates = |helped| self.of(helped).map(|it| it.kbit_s).collect();
        (rates(true), rates(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_time_in_which_something_came() {
        let outcome = Outcome {
            network: 0,
            helped: true,
            knowledge: Knowledge::Replies,
            bytes: 1_250_000,
            busy: 1_000_000_000,
            stalls: 70_000,
        };
        assert_eq!(
            Sample::new(&outcome),
            Sample { helped: true, kbit_s: 10_000, stalls: u16::MAX }
        );
        let odd = Outcome { bytes: u64::MAX, busy: 0, ..outcome };
        assert_eq!(Sample::new(&odd).kbit_s, u32::MAX);
    }

    /// So many of which every so many-th is left alone; their rates are their numbers.
    fn samples(count: u32, every: u32) -> Samples {
        let mut samples = Samples::default();
        for kbit_s in 0..count {
            samples.add(Sample { helped: kbit_s % every != 0, kbit_s, stalls: 0 });
        }
        samples
    }

    #[test]
    fn the_oldest_makes_room() {
        let (helped, alone) = samples(1000, 2).rates();
        assert_eq!((helped.len(), alone.len()), (ALONE + 1, ALONE));
        assert_eq!((helped[0], alone[0], helped.last()), (871, 872, Some(&999)));
    }

    #[test]
    fn both_sides_are_of_the_same_days() {
        for count in [300, 2000, 5000] {
            let (helped, alone) = samples(count, 20).rates();
            assert_eq!(helped.len(), HELPED);
            assert_eq!(alone.len(), ALONE.min(count as usize / 20));
            for (n, begin) in alone.iter().enumerate() {
                let row = helped.iter().filter(|it| (*begin..begin + 20).contains(it)).count();
                // Before the first there are some, too.
                let (few, many) = (HELPED / (alone.len() + 1), HELPED / alone.len() + 1);
                assert!((few..=many).contains(&row), "{row} after number {n} of {count}");
            }
        }
    }

    #[test]
    fn where_nothing_is_left_alone_the_newest_are_kept() {
        let mut samples = Samples::default();
        (0..500).for_each(|kbit_s| samples.add(Sample { helped: true, kbit_s, stalls: 0 }));
        assert_eq!(samples.rates().0, (372..500).collect::<Vec<u32>>());
    }
}
