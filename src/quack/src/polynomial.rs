// SPDX-License-Identifier: GPL-2.0-or-later
//! The polynomial whose roots are the missing identifiers.

use alloc::vec;
use alloc::vec::Vec;

use crate::field::{Field, LANES};

/// A root, and how often it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root<F> {
    pub value: F,
    pub times: usize,
}

/// One with leading coefficient 1, by its coefficients from the highest power
/// on. A zero stands before them where needed to
/// make their number odd.
#[derive(Debug)]
pub struct Polynomial<F> {
    coefficients: Vec<F>,
    degree: usize,
}

impl<F: Field> Polynomial<F> {
    /// From the sums of the powers of `degree` numbers, with Newton's
    /// identities. None if there are fewer sums than numbers, or if the sums
    /// that are not needed contradict the others: with as many as one too
    /// many, wrong sums pass for right ones once in a prime.
    pub fn from_sums(sums: &[F], degree: usize) -> Option<Polynomial<F>> {
        let zeros = degree % 2;
        let mut coefficients = vec![F::default(); zeros];
        coefficients.reserve(degree + 1);
        coefficients.push(F::ONE);
        for (k, &sum) in (1..=u8::MAX).zip(sums) {
            let others = sums.get(..usize::from(k) - 1)?;
            let known = coefficients.get(zeros + 1..)?;
            let products = known.iter().zip(others.iter().rev()).map(|(a, b)| a.times(*b));
            let total = products.fold(sum, F::plus);
            if usize::from(k) <= degree {
                coefficients.push(F::default().minus(total).times(F::inverse(k)));
            } else if total != F::default() {
                return None;
            }
        }
        (coefficients.len() == zeros + degree + 1).then_some(Polynomial { coefficients, degree })
    }

    /// The roots that are among `candidates`, sorted; none if not all are.
    pub fn roots_among(mut self, candidates: &[F]) -> Option<Vec<Root<F>>> {
        let mut roots: Vec<Root<F>> = Vec::with_capacity(self.degree);
        for chunk in candidates.chunks(LANES) {
            if self.degree == 0 {
                break;
            }
            // Not filled up, it would find the root 0.
            let mut points = [chunk.first()?.reduce(); LANES];
            for (point, candidate) in points.iter_mut().zip(chunk) {
                *point = candidate.reduce();
            }
            let values = F::evaluate(&self.coefficients, &points);
            for (&value, _) in points.iter().zip(values).filter(|(_, y)| *y == F::default()) {
                if roots.iter().all(|root| root.value != value) {
                    roots.push(Root { value, times: self.divide(value) });
                }
            }
        }
        roots.sort_unstable_by_key(|root| root.value);
        (self.degree == 0).then_some(roots)
    }

    /// Divides by (x - root) as often as that leaves no remainder, but once at
    /// least; gives how often.
    fn divide(&mut self, root: F) -> usize {
        let mut times = 0;
        let mut again = true;
        while again && self.degree > 0 {
            // Horner's scheme gives the quotient, one place further right, and
            // applied to that its value at the root.
            let (mut quotient, mut value) = (F::default(), F::default());
            for coefficient in &mut self.coefficients {
                let next = quotient.times(root).plus(*coefficient);
                *coefficient = quotient;
                value = value.times(root).plus(quotient);
                quotient = next;
            }
            self.degree -= 1;
            times += 1;
            again = value == F::default();
            if self.degree.is_multiple_of(2) {
                self.coefficients.drain(..self.coefficients.len().min(2));
            }
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums<F: Field>(ids: &[F], threshold: usize) -> Vec<F> {
        let mut powers = vec![F::ONE; ids.len()];
        let mut sums = Vec::new();
        for _ in 0..threshold {
            powers.iter_mut().zip(ids).for_each(|(power, id)| *power = power.times(*id));
            sums.push(powers.iter().fold(F::default(), |sum, power| sum.plus(*power)));
        }
        sums
    }

    fn roots<F: Field>(ids: &[F], threshold: usize, log: &[F]) -> Option<Vec<(F, usize)>> {
        let roots = Polynomial::from_sums(&sums(ids, threshold), ids.len())?.roots_among(log)?;
        Some(roots.iter().map(|root| (root.value, root.times)).collect())
    }

    #[test]
    fn coefficients() {
        // (x - 1)(x - 2)(x - 3)
        let cubic = Polynomial::from_sums(&sums(&[1u32, 2, 3], 5), 3).expect("consistent");
        assert_eq!(cubic.coefficients, [0, 1, u32::PRIME - 6, 11, u32::PRIME - 6]);
    }

    #[test]
    fn any_degree_and_multiplicity() {
        for degree in 0..=40u16 {
            let ids: Vec<u16> = (0..degree).map(|n| n * 1000).collect();
            let log: Vec<u16> = (0..110).rev().map(|n| n * 500).collect();
            let expected: Vec<_> = ids.iter().map(|&id| (id, 1)).collect();
            assert_eq!(roots(&ids, 40, &log), Some(expected), "{degree}");
            let same = vec![u64::PRIME - 1; usize::from(degree)];
            let expected = if degree == 0 { vec![] } else { vec![(same[0], same.len())] };
            assert_eq!(roots(&same, 40, &[5, u64::PRIME - 1, u64::PRIME - 1]), Some(expected));
        }
        let mixed = [0u32, 9, 0, 9, 8, 0];
        assert_eq!(roots(&mixed, 6, &[0, 9, 8]), Some(vec![(0, 3), (8, 1), (9, 2)]));
    }

    #[test]
    fn not_to_be_found() {
        assert_eq!(roots(&[1u32, 2], 2, &[1, 3]), None);
        assert_eq!(roots(&[1u32, 2], 2, &[]), None);
        assert_eq!(roots::<u32>(&[], 2, &[]), Some(vec![]));
        assert!(Polynomial::from_sums(&[1u32, 2], 3).is_none());
        let mut wrong = sums(&[1u32, 2], 3);
        wrong[2] += 1;
        assert!(Polynomial::from_sums(&wrong, 2).is_none());
        assert!(Polynomial::from_sums(&wrong, 0).is_none());
    }
}
