// SPDX-License-Identifier: GPL-2.0-or-later
//! The sums.

use alloc::boxed::Box;
use alloc::vec;
use core::num::NonZeroU8;

use crate::field::Field;

/// What can name a packet: `u16`, `u32` or `u64`, taken from a place in the
/// packet where every value is equally likely. Two of *n* packets that share
/// one cannot be told apart (paper, section 3): of 1,000, 1.5 % with 16
/// bits, 0.00002 % with 32.
pub trait Identifier: Field {
    /// Sums are kept modulo the largest prime below 2 to the power of the
    /// identifier's bits; identifiers that are not below it count as what is
    /// left of them.
    const MODULUS: Self = Self::PRIME;
    /// Bytes of an identifier, and of a sum, on the wire.
    const SIZE: usize = Self::BYTES;
}

impl Identifier for u16 {}
impl Identifier for u32 {}
impl Identifier for u64 {}

/// Sums over the identifiers of a collection of packets, in any order and with
/// repetitions: for *i* from 1 to the threshold, the sum of their *i*-th
/// powers. Besides, how many they are modulo 65,536, and which came last.
///
/// Takes the threshold times the identifier's size in memory, allocated once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quack<I> {
    pub(crate) sums: Box<[I]>,
    pub(crate) count: u16,
    pub(crate) last: Option<I>,
}

impl<I: Identifier> Quack<I> {
    /// Of no packets. `threshold` is how many may be missing before decoding
    /// becomes impossible, 1 to 255; time per packet grows with it, and so do
    /// the bytes on the wire.
    pub fn new(threshold: NonZeroU8) -> Quack<I> {
        let sums = vec![I::default(); usize::from(threshold.get())].into_boxed_slice();
        Quack { sums, count: 0, last: None }
    }

    /// How many packets may be missing.
    pub fn threshold(&self) -> usize {
        self.sums.len()
    }

    /// How many identifiers are in it, modulo 65,536.
    pub fn count(&self) -> u16 {
        self.count
    }

    /// The identifier inserted last, as it was given; none in a new one.
    pub fn last(&self) -> Option<I> {
        self.last
    }

    /// The sums of the first, second, third... powers, each below
    /// [`Identifier::MODULUS`].
    pub fn sums(&self) -> &[I] {
        &self.sums
    }

    /// Counts a packet.
    pub fn insert(&mut self, id: I) {
        self.count = self.count.wrapping_add(1);
        self.last = Some(id);
        each_power(&mut self.sums, id, I::plus);
    }

    /// Takes a packet out again, for instance one known to be lost. Whether it
    /// had been inserted is not known here. [`Quack::last`] stays what it is.
    pub fn remove(&mut self, id: I) {
        self.count = self.count.wrapping_sub(1);
        each_power(&mut self.sums, id, I::minus);
    }

    /// Nothing in it any more, as after [`Quack::new`].
    pub fn clear(&mut self) {
        self.sums.fill(I::default());
        self.count = 0;
        self.last = None;
    }

    /// The sender's sums set to those of the receiver and, after them,
    /// `in_flight`: what was sent after the packet that the receiver got last.
    /// So a sender goes on after a [`DecodeError`](crate::DecodeError) without
    /// asking the receiver to start anew; the packets until then stay
    /// unaccounted for. The threshold becomes the receiver's.
    pub fn resync(&mut self, received: &Quack<I>, in_flight: &[I]) {
        self.clone_from(received);
        in_flight.iter().for_each(|&id| self.insert(id));
    }
}

/// Powers that are computed side by side, so that they do not wait for each
/// other's products. Small CPUs do one thing at a time anyway.
const CHAINS: usize = if cfg!(target_pointer_width = "64") { 4 } else { 1 };

/// `sums[i] = with(sums[i], id^(i + 1))`
fn each_power<I: Field>(sums: &mut [I], id: I, with: impl Fn(I, I) -> I) {
    let first = id.reduce();
    let mut powers = [first; CHAINS];
    let mut step = first;
    for power in powers.iter_mut().skip(1) {
        step = step.times(first);
        *power = step;
    }
    let (chunks, rest) = sums.as_chunks_mut::<CHAINS>();
    for chunk in chunks {
        for (sum, power) in chunk.iter_mut().zip(powers) {
            *sum = with(*sum, power);
        }
        powers = powers.map(|power| power.times(step));
    }
    for (sum, power) in rest.iter_mut().zip(powers) {
        *sum = with(*sum, power);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(n: u8) -> NonZeroU8 {
        NonZeroU8::new(n).expect("not zero")
    }

    #[test]
    fn sums_of_powers() {
        let mut quack = Quack::<u32>::new(threshold(7));
        [2, 3, 3].iter().for_each(|&id| quack.insert(id));
        let power = |i| 2u32.pow(i) + 2 * 3u32.pow(i);
        assert_eq!(quack.sums(), [1, 2, 3, 4, 5, 6, 7].map(power));
        assert_eq!((quack.count(), quack.last(), quack.threshold()), (3, Some(3), 7));
        quack.remove(3);
        assert_eq!(quack.sums(), [1, 2, 3, 4, 5, 6, 7].map(|i| 2u32.pow(i) + 3u32.pow(i)));
        quack.clear();
        assert_eq!(quack, Quack::new(threshold(7)));
    }

    #[test]
    fn from_the_prime_on_identifiers_start_again() {
        let mut quack = Quack::<u16>::new(threshold(5));
        [u16::MODULUS, u16::MODULUS + 2].iter().for_each(|&id| quack.insert(id));
        assert_eq!(quack.sums(), [2, 4, 8, 16, 32]);
        assert_eq!(quack.last(), Some(u16::MODULUS + 2));
    }

    #[test]
    fn the_count_wraps() {
        let mut quack = Quack::<u64>::new(threshold(1));
        quack.remove(9);
        assert_eq!(quack.count(), u16::MAX);
        quack.insert(9);
        assert_eq!((quack.count(), quack.sums()), (0, &[0][..]));
    }

    #[test]
    fn resync_adopts_the_receivers() {
        let mut received = Quack::<u32>::new(threshold(3));
        received.insert(5);
        let mut sent = Quack::new(threshold(3));
        (0..50).for_each(|id| sent.insert(id));
        sent.resync(&received, &[6, 7]);
        [6, 7].iter().for_each(|&id| received.insert(id));
        assert_eq!(sent, received);
    }
}
