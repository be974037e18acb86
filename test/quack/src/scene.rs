// SPDX-License-Identifier: GPL-2.0-or-later
//! Packets of which some are lost, the same ones every time.

use std::num::NonZeroU8;

use pemi_quack::{Identifier, Quack};

/// A sequence of well-mixed numbers (splitmix64).
pub fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    (1u64..).map(move |n| {
        let mut x = seed.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    })
}

/// What was sent, and what of it is to be called lost.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Identifiers of 64 bits, in the order sent.
    pub log: Vec<u64>,
    /// Indices in it, ascending.
    pub lost: Vec<usize>,
}

impl Scene {
    /// `packets` of which `lost` are lost, spread evenly; not the last one.
    pub fn new(seed: u64, packets: usize, lost: usize) -> Scene {
        let log = numbers(seed).take(packets).collect();
        let step = packets.checked_div(lost).unwrap_or(1);
        Scene { log, lost: (0..lost).map(|n| n * step + step / 2).collect() }
    }

    /// The log with identifiers of another width.
    pub fn log<I: Identifier>(&self, narrow: impl Fn(u64) -> I) -> Vec<I> {
        self.log.iter().map(|&id| narrow(id)).collect()
    }

    /// The sums of what was sent and of what arrived.
    pub fn quacks<I: Identifier>(&self, log: &[I], threshold: u8) -> (Quack<I>, Quack<I>) {
        let threshold = NonZeroU8::new(threshold).unwrap_or(NonZeroU8::MIN);
        let (mut sent, mut received) = (Quack::new(threshold), Quack::new(threshold));
        for (index, &id) in log.iter().enumerate() {
            sent.insert(id);
            if self.lost.binary_search(&index).is_err() {
                received.insert(id);
            }
        }
        (sent, received)
    }
}
