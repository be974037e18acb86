// SPDX-License-Identifier: GPL-2.0-or-later
//! Random numbers that are the same on every machine.

use crate::Nanos;

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of one seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Another sequence that depends on this one's seed and on `number`.
    pub fn fork(&self, number: u64) -> Random {
        Random(Random(self.0 ^ number.wrapping_mul(0xd134_2543_de82_ef95)).draw())
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(end)) >> 64) as u64
    }

    /// A number from 0 (included) to 1 (excluded).
    pub fn unit(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A time from an exponential distribution, at least one nanosecond.
    pub fn exponential(&mut self, mean: Nanos) -> Nanos {
        (-(1.0 - self.unit()).ln() * mean as f64) as Nanos + 1
    }
}
