// SPDX-License-Identifier: GPL-2.0-or-later
//! The downloads that are compared: the newest ones of each kind. What was true a month ago of
//! another channel and other neighbours is not asked for, so the oldest makes room, and nothing
//! grows.

use std::collections::VecDeque;

use pemi_engine::{Knowledge, Outcome};

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
            kbit_s: u32::try_from(kbit_s).unwrap_or(u32::MAX),
            stalls: u16::try_from(outcome.stalls).unwrap_or(u16::MAX),
        }
    }
}

/// Those of one kind of clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    pub helped: VecDeque<Sample>,
    pub alone: VecDeque<Sample>,
}

impl Samples {
    pub fn add(&mut self, helped: bool, sample: Sample) {
        let (samples, most) = match helped {
            true => (&mut self.helped, HELPED),
            false => (&mut self.alone, ALONE),
        };
        if samples.len() >= most {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// The rates of both sides.
    pub fn rates(&self) -> (Vec<u32>, Vec<u32>) {
        let rates = |of: &VecDeque<Sample>| of.iter().map(|it| it.kbit_s).collect();
        (rates(&self.helped), rates(&self.alone))
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
        assert_eq!(Sample::new(&outcome), Sample { kbit_s: 10_000, stalls: u16::MAX });
        let odd = Outcome { bytes: u64::MAX, busy: 0, ..outcome };
        assert_eq!(Sample::new(&odd).kbit_s, u32::MAX);
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut samples = Samples::default();
        for kbit_s in 0..1000 {
            samples.add(kbit_s % 2 == 0, Sample { kbit_s, stalls: 0 });
        }
        let (helped, alone) = samples.rates();
        assert_eq!((helped.len(), alone.len()), (HELPED, ALONE));
        assert_eq!((helped.last(), alone.first()), (Some(&998), Some(&(999 - 2 * 63))));
    }
}
