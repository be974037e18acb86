// SPDX-License-Identifier: GPL-2.0-or-later
//! Integers modulo the largest prime below 2^16, 2^32 or 2^64.
//!
//! Such a prime is 2^b less a small excess, so the upper half of a product
//! counts as the excess times itself: two folds and one subtraction instead
//! of a division, which a 24Kc takes some forty cycles for.

use core::fmt::Debug;
use core::hash::Hash;

/// Points that a polynomial is evaluated at in one go. Enough for the compiler
/// to use vectors and to hide the latency of a multiplication.
pub const LANES: usize = 64;

/// An integer type and its prime. Elements are canonical (below the prime)
/// unless told otherwise.
pub trait Field: Copy + Eq + Ord + Hash + Debug + Default + Sized {
    /// Bytes in an identifier.
    const BYTES: usize;
    /// The largest prime that fits.
    const PRIME: Self;
    /// One.
    const ONE: Self;

    /// Any value to its residue.
    fn reduce(self) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// Also right for factors that are not canonical.
    fn times(self, other: Self) -> Self;
    /// 1/k; for zero, zero.
    fn inverse(k: u8) -> Self;
    /// The lowest bits, for filters.
    fn low_bits(self) -> usize;

    /// From as many bytes as it has, in network order; anything else is none.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
    fn with_bytes<R>(self, take: impl FnOnce(&[u8]) -> R) -> R;

    /// The values of the polynomial with these coefficients, highest power
    /// first, at every one of `points`. The number of coefficients is odd.
    fn evaluate(coefficients: &[Self], points: &[Self; LANES]) -> [Self; LANES] {
        let mut values = [Self::default(); LANES];
        for &coefficient in coefficients {
            for (value, &point) in values.iter_mut().zip(points) {
                *value = value.times(point).plus(coefficient);
            }
        }
        values
    }
}

macro_rules! field {
    ($id:ident, $wide:ident, $excess:literal $(, $evaluate:item)?) => {
        impl Field for $id {
            const BYTES: usize = size_of::<$id>();
            const PRIME: $id = $id::MAX - ($excess - 1);
            const ONE: $id = 1;

            #[inline]
            fn reduce(self) -> $id {
                if self >= Self::PRIME { self - Self::PRIME } else { self }
            }

            #[inline]
            fn plus(self, other: $id) -> $id {
                // Adding the excess as well wraps exactly where the sum
                // reaches the prime.
                let (sum, wrapped) = self.overflowing_add(other.wrapping_add($excess));
                if wrapped { sum } else { sum.wrapping_sub($excess) }
            }

            #[inline]
            fn minus(self, other: $id) -> $id {
                let (difference, wrapped) = self.overflowing_sub(other);
                if wrapped { difference.wrapping_sub($excess) } else { difference }
            }

            #[inline]
            fn times(self, other: $id) -> $id {
                let product = self as $wide * other as $wide;
                // Below (excess + 1) * 2^b; what is above 2^b is small.
                let folded = (product >> $id::BITS) * $excess + (product as $id) as $wide;
                let above = (folded >> $id::BITS) as $id;
                // As in `plus`: the excess more wraps from the prime on.
                let (sum, wrapped) = (folded as $id).overflowing_add((above + 1) * $excess);
                if wrapped { sum } else { sum.wrapping_sub($excess) }
            }

            #[inline]
            fn inverse(k: u8) -> $id {
                static INVERSES: [$id; 256] = {
                    const PRIME: $wide = $id::PRIME as $wide;
                    let mut table = [0; 256];
                    table[1] = 1;
                    let mut k = 2;
                    while k < 256 {
                        // prime = q k + r, so 1/k = -q/r.
                        let quotient = PRIME / k as $wide;
                        let of_remainder = table[(PRIME % k as $wide) as usize] as $wide;
                        table[k] = (PRIME - quotient * of_remainder % PRIME) as $id;
                        k += 1;
                    }
                    table
                };
                INVERSES[usize::from(k)]
            }

            #[inline]
            fn low_bits(self) -> usize {
                self as usize
            }

            fn from_bytes(bytes: &[u8]) -> Option<$id> {
                bytes.try_into().ok().map($id::from_be_bytes)
            }

            fn with_bytes<R>(self, take: impl FnOnce(&[u8]) -> R) -> R {
                take(&self.to_be_bytes())
            }

            $($evaluate)?
        }
    };
}

field!(u16, u32, 15);
field!(
    u32,
    u64,
    5,
    fn evaluate(coefficients: &[u32], points: &[u32; LANES]) -> [u32; LANES] {
        pairs::evaluate(coefficients, points)
    }
);
field!(u64, u128, 59);

/// Evaluation two coefficients at a time, with the squares of the points: one
/// reduction serves two products, whose upper and lower halves are added up
/// apart. The compiler makes vectors of it, also without AVX: a product of 32
/// by 32 bits is one instruction for two lanes, if it sees that it is one.
mod pairs {
    use super::{Field, LANES};

    const LOW: u64 = u32::MAX as u64;

    /// Values below 2^32, though not below the prime.
    type Lanes = [u64; LANES];

    /// From below 2^40 to below 2^32: where one fold is not enough, what is
    /// left for the second is small.
    fn squeeze(value: u64) -> u64 {
        let once = (value >> 32) * 5 + (value & LOW);
        (once >> 32) * 5 + (once & LOW)
    }

    /// values * points^2 + a points + b. Not inlined: there it is made into
    /// vectors, among other code it was not.
    #[inline(never)]
    fn step(values: &mut Lanes, points: &Lanes, squares: &Lanes, a: u64, b: u64) {
        for lane in 0..LANES {
            let first = (values[lane] & LOW) * (squares[lane] & LOW);
            let second = (points[lane] & LOW) * (a & LOW);
            let high = (first >> 32) + (second >> 32);
            let low = (first & LOW) + (second & LOW) + b;
            values[lane] = squeeze(high * 5 + low);
        }
    }

    pub fn evaluate(coefficients: &[u32], points: &[u32; LANES]) -> [u32; LANES] {
        let points = points.map(u64::from);
        let mut squares = points;
        step(&mut squares, &[0; LANES], &points, 0, 0);
        let (head, rest) = coefficients.split_first().unwrap_or((&0, &[]));
        let mut values = [u64::from(*head); LANES];
        for &[a, b] in rest.as_chunks::<2>().0 {
            step(&mut values, &points, &squares, a.into(), b.into());
        }
        values.map(|value| (value as u32).reduce())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arithmetic<F: Field>(values: &[F], wide: impl Fn(F) -> u128) {
        let prime = wide(F::PRIME);
        for &a in values {
            assert_eq!(wide(a.reduce()), wide(a) % prime);
            for &b in values {
                // The product of the halves keeps within 128 bits.
                let (high, low) = (wide(a) >> 32, wide(a) & 0xffff_ffff);
                let product = (((high * wide(b) % prime) << 32) + low * wide(b)) % prime;
                assert_eq!(wide(a.times(b)), product, "{a:?} * {b:?}");
                let (a, b) = (a.reduce(), b.reduce());
                assert_eq!(wide(a.plus(b)), (wide(a) + wide(b)) % prime, "{a:?} + {b:?}");
                assert_eq!(wide(a.minus(b)), (wide(a) + prime - wide(b)) % prime, "{a:?} - {b:?}");
            }
        }
        for k in 1..=u8::MAX {
            let mut sum = F::default();
            (0..k).for_each(|_| sum = sum.plus(F::ONE));
            assert_eq!(sum.times(F::inverse(k)), F::ONE, "1/{k}");
        }
    }

    /// Small, around the prime, around half of it and in between.
    fn values(max: u64) -> impl Iterator<Item = u64> {
        let near = (0..70).flat_map(move |n| [n, max - n, max / 2 - n, max / 2 + n]);
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        near.chain((0..200).map(move |_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x & max
        }))
    }

    #[test]
    fn as_with_division() {
        let max = u64::from(u16::MAX);
        arithmetic(&values(max).map(|x| x as u16).collect::<alloc::vec::Vec<_>>(), u128::from);
        let max = u64::from(u32::MAX);
        arithmetic(&values(max).map(|x| x as u32).collect::<alloc::vec::Vec<_>>(), u128::from);
        arithmetic(&values(u64::MAX).collect::<alloc::vec::Vec<_>>(), u128::from);
    }

    #[test]
    fn the_primes_are_the_largest() {
        assert_eq!(u16::PRIME, 65_521);
        assert_eq!(u32::PRIME, 4_294_967_291);
        assert_eq!(u64::PRIME, 18_446_744_073_709_551_557);
        let divides = |n: u32| (2..=65_535).find(|d| n.is_multiple_of(*d) && *d < n);
        assert_eq!(divides(u32::from(u16::PRIME)), None);
        assert_eq!(divides(u32::PRIME), None);
        assert!((u16::PRIME + 1..=u16::MAX).all(|n| divides(u32::from(n)).is_some()));
        assert!((u32::PRIME + 1..=u32::MAX).all(|n| divides(n).is_some()));
    }

    /// A value below 2^32 after four products of the largest factors.
    #[test]
    fn vectors_at_the_edge() {
        let big = [u32::PRIME - 1; 21];
        for point in [0, 1, 2, u32::PRIME - 1, u32::PRIME - 2, 0x8000_0000, u32::PRIME / 2] {
            let expected = big.iter().fold(0u32, |value, &c| value.times(point).plus(c));
            assert_eq!(u32::evaluate(&big, &[point; LANES]), [expected; LANES]);
            assert_eq!(u32::evaluate(&[7], &[point; LANES]), [7; LANES]);
        }
    }
}
