// SPDX-License-Identifier: GPL-2.0-or-later
//! Power sums and their decoding in the obvious way: remainders by division,
//! one power after the other, every packet of the log put into the polynomial
//! with Horner's rule. Right, and slow.

/// The largest prime below 2^bits, for 16, 32 and 64.
pub fn prime(bits: u32) -> u64 {
    match bits {
        16 => 65_521,
        32 => 4_294_967_291,
        _ => 18_446_744_073_709_551_557,
    }
}

/// Power sums modulo the largest prime below 2^`BITS`.
#[derive(Clone, Debug)]
pub struct Plain<const BITS: u32> {
    /// Of the first, second... powers.
    pub sums: Vec<u64>,
    /// Identifiers in them.
    pub count: u64,
}

fn times<const BITS: u32>(a: u64, b: u64) -> u64 {
    if BITS <= 32 {
        a * b % prime(BITS)
    } else {
        (u128::from(a) * u128::from(b) % u128::from(prime(BITS))) as u64
    }
}

fn plus<const BITS: u32>(a: u64, b: u64) -> u64 {
    if BITS <= 32 {
        (a + b) % prime(BITS)
    } else {
        ((u128::from(a) + u128::from(b)) % u128::from(prime(BITS))) as u64
    }
}

fn minus<const BITS: u32>(a: u64, b: u64) -> u64 {
    plus::<BITS>(a, prime(BITS) - b)
}

fn inverse<const BITS: u32>(a: u64) -> u64 {
    // Fermat: a^(p - 2).
    let (mut power, mut exponent, mut result) = (a, prime(BITS) - 2, 1);
    while exponent > 0 {
        if exponent % 2 == 1 {
            result = times::<BITS>(result, power);
        }
        power = times::<BITS>(power, power);
        exponent /= 2;
    }
    result
}

impl<const BITS: u32> Plain<BITS> {
    /// Of nothing.
    pub fn new(threshold: usize) -> Self {
        Plain { sums: vec![0; threshold], count: 0 }
    }

    /// Adds the powers of `id`.
    pub fn insert(&mut self, id: u64) {
        self.count += 1;
        let id = id % prime(BITS);
        let mut power = 1;
        for sum in &mut self.sums {
            power = times::<BITS>(power, id);
            *sum = plus::<BITS>(*sum, power);
        }
    }

    /// The indices of `log` that are not in `received`, if they are no more
    /// than the threshold and all different.
    pub fn decode(&self, log: &[u64], received: &Self) -> Option<Vec<usize>> {
        let missing = usize::try_from(self.count.checked_sub(received.count)?).ok()?;
        let pairs = self.sums.iter().zip(&received.sums);
        let sums: Vec<u64> = pairs.map(|(sent, got)| minus::<BITS>(*sent, *got)).collect();
        if missing > sums.len() {
            return None;
        }
        let mut coefficients = vec![1];
        for k in 1..=missing {
            let mut total = sums[k - 1];
            for i in 1..k {
                total = plus::<BITS>(total, times::<BITS>(coefficients[i], sums[k - 1 - i]));
            }
            let of_k = inverse::<BITS>(k as u64);
            coefficients.push(times::<BITS>(minus::<BITS>(0, total), of_k));
        }
        let mut lost = Vec::new();
        for (index, &id) in log.iter().enumerate() {
            let id = id % prime(BITS);
            let value =
                coefficients.iter().fold(0, |value, &c| plus::<BITS>(times::<BITS>(value, id), c));
            if value == 0 {
                lost.push(index);
            }
        }
        (lost.len() == missing).then_some(lost)
    }
}
