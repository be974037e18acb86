// SPDX-License-Identifier: GPL-2.0-or-later
//! Which packets are missing.

use alloc::vec;
use alloc::vec::Vec;

use crate::error::DecodeError;
use crate::polynomial::{Polynomial, Root};
use crate::quack::{Identifier, Quack};

/// [`Quack::decode`] tries this many packets beyond the one that the receiver
/// got last, in case some of them overtook it.
pub const REORDERED: usize = 16;

/// Which packets of a log the receiver did not get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing<I> {
    /// Certainly missing: indices in the log, ascending.
    pub lost: Vec<usize>,
    /// Share an identifier with another packet of the log of which some are
    /// missing and some are not (paper, section 3): indices, ascending.
    pub indeterminate: Vec<usize>,
    /// The identifiers missing, modulo [`Identifier::MODULUS`], ascending, as
    /// often as they are missing. They are `lost.len()` plus those among
    /// `indeterminate`.
    pub identifiers: Vec<I>,
    /// The log up to here has been accounted for; what comes later is in
    /// flight.
    pub settled: usize,
}

impl<I> Missing<I> {
    /// How many packets are missing.
    pub fn len(&self) -> usize {
        self.identifiers.len()
    }

    /// Whether none are.
    pub fn is_empty(&self) -> bool {
        self.identifiers.is_empty()
    }
}

/// What the sums of a sender and a receiver differ by: the sums over the
/// missing packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference<I> {
    /// Its last identifier means nothing.
    quack: Quack<I>,
}

impl<I: Identifier> Difference<I> {
    /// How many packets are missing.
    ///
    /// # Errors
    ///
    /// [`DecodeError::TooMany`] if they are more than the threshold, and
    /// [`DecodeError::Ahead`] from 32,768 on, where a difference of counts is
    /// taken for a negative one.
    pub fn missing(&self) -> Result<usize, DecodeError> {
        let missing = self.quack.count;
        let threshold = self.quack.threshold() as u8;
        if missing > u16::MAX / 2 {
            Err(DecodeError::Ahead { by: missing.wrapping_neg() })
        } else if missing > u16::from(threshold) {
            Err(DecodeError::TooMany { missing, threshold })
        } else {
            Ok(usize::from(missing))
        }
    }

    /// Which packets are missing of `log`: all that was sent, in any order,
    /// without what the receiver is known to have. With *m* of *n* missing it
    /// takes at most *m n* multiplications, and *t m* for threshold *t*.
    ///
    /// # Errors
    ///
    /// As [`Difference::missing`], and [`DecodeError::NotInLog`] if the sums
    /// are not those of packets in the log.
    pub fn decode(&self, log: &[I]) -> Result<Missing<I>, DecodeError> {
        let missing = self.missing()?;
        Polynomial::from_sums(&self.quack.sums, missing)
            .and_then(|polynomial| polynomial.roots_among(log))
            .and_then(|roots| assign(&roots, log))
            .ok_or(DecodeError::NotInLog)
    }
}

/// Which packets have the identifiers that are missing. None if more of one
/// are missing than there are.
fn assign<I: Identifier>(roots: &[Root<I>], log: &[I]) -> Option<Missing<I>> {
    let total = roots.iter().map(|root| root.times).sum();
    let mut identifiers = Vec::with_capacity(total);
    // Most packets are not missing: a look at some bits rules them out.
    const BITS: usize = 1024;
    let mut filter = [0u32; BITS / 32];
    let place = |id: I| (id.low_bits() % BITS / 32, 1u32 << (id.low_bits() % 32));
    for root in roots {
        identifiers.extend((0..root.times).map(|_| root.value));
        let (word, bit) = place(root.value);
        filter[word] |= bit;
    }
    let mut found = Vec::with_capacity(total);
    let mut times = vec![0; roots.len()];
    for (index, id) in log.iter().enumerate() {
        let id = id.reduce();
        let (word, bit) = place(id);
        if filter[word] & bit != 0
            && let Ok(root) = roots.binary_search_by_key(&id, |root| root.value)
        {
            found.push((index, root));
            times[root] += 1;
        }
    }
    if roots.iter().zip(&times).any(|(root, times)| *times < root.times) {
        return None;
    }
    let (mut lost, mut indeterminate) = (Vec::with_capacity(total), Vec::new());
    for (index, root) in found {
        let all = times[root] == roots[root].times;
        if all { &mut lost } else { &mut indeterminate }.push(index);
    }
    Some(Missing { lost, indeterminate, identifiers, settled: log.len() })
}

impl<I: Identifier> Quack<I> {
    /// What this, the sender's, has more than the receiver's. If thresholds
    /// differ, the smaller one is left.
    pub fn difference(&self, received: &Quack<I>) -> Difference<I> {
        let sums = self.sums.iter().zip(&received.sums).map(|(sent, got)| sent.minus(*got));
        let count = self.count.wrapping_sub(received.count);
        Difference { quack: Quack { sums: sums.collect(), count, last: None } }
    }

    /// Which packets of `log` the receiver did not get. `self` has the sums
    /// over everything sent; `log` is what was sent latest, in order, at least
    /// everything that may be missing and the packet that the receiver got
    /// last. Packets after that one are in flight and not missing.
    ///
    /// Where packets were reordered, one sent after the receiver's last one may
    /// have arrived before it. So up to [`REORDERED`] more packets are taken
    /// into account until the sums fit; the fewest that do.
    ///
    /// A receiver that got nothing yet settles nothing.
    ///
    /// # Errors
    ///
    /// Each [`DecodeError`], as it says there.
    pub fn decode(&self, log: &[I], received: &Quack<I>) -> Result<Missing<I>, DecodeError> {
        let Some(last) = received.last else {
            let nothing =
                received.count == 0 && received.sums.iter().all(|sum| *sum == I::default());
            return if nothing { Ok(Missing::default()) } else { Err(DecodeError::LastUnknown) };
        };
        let first = log.iter().position(|id| *id == last).ok_or(DecodeError::LastUnknown)?;
        let (early, later) = log.split_at(first + 1);
        let mut difference = self.difference(received);
        later.iter().for_each(|&id| difference.quack.remove(id));
        let mut error = difference.decode(early);
        // Packets that may still be taken in; again so many at each one that
        // has the last one's identifier.
        let again = later.iter().rposition(|id| *id == last).map_or(0, |index| index + 1);
        let mut reach = REORDERED;
        for (settled, &id) in (first + 2..).zip(later).take(again + REORDERED) {
            match error {
                Ok(_) | Err(DecodeError::TooMany { .. }) => break,
                Err(_) => {}
            }
            difference.quack.insert(id);
            if id == last {
                reach = REORDERED;
            } else if reach == 0 {
                continue;
            } else {
                reach -= 1;
            }
            match difference.decode(log.get(..settled).unwrap_or(log)) {
                Ok(missing) => return Ok(missing),
                Err(new) if id == last || matches!(error, Err(DecodeError::Ahead { .. })) => {
                    error = Err(new);
                }
                // With packets beyond the last one it says less.
                Err(DecodeError::TooMany { .. }) => break,
                Err(_) => {}
            }
        }
        error
    }
}
