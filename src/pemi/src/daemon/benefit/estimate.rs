// SPDX-License-Identifier: GPL-2.0-or-later
//! How much faster downloads are with help: Hodges' and Lehmann's estimate with the interval of
//! confidence that goes with the test of Wilcoxon, Mann and Whitney (Hollander, Wolfe and Chicken,
//! "Nonparametric Statistical Methods", sections 4.1 to 4.3).
//!
//! Nothing is assumed of how rates are distributed, and one download from a fast server does not
//! move a median. Downloads are compared only with those of clients whose losses are known in the
//! same way. Orders do not change under a logarithm, so quotients do as well as differences of
//! logarithms, and all of it is whole numbers.

/// The two-sided 95 % of a normal distribution, in hundredths of its standard deviation.
pub const CONFIDENT: u64 = 196;
/// What quotients are counted in.
pub const ONE: u32 = 1000;

/// How many times as fast, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The median of all quotients.
    pub ratio: u32,
    /// Within which the true one is.
    pub between: Option<(u32, u32)>,
}

/// Rates of downloads that may be compared: with help, and without.
pub type Pair<'a> = (&'a [u32], &'a [u32]);

/// The estimate of several such pairs together, with an interval of so many standard deviations;
/// nothing while a side is missing everywhere.
pub fn estimate(pairs: &[Pair<'_>], deviations: u64) -> Option<Estimate> {
    let mut quotients = Vec::with_capacity(pairs.iter().map(|(a, b)| a.len() * b.len()).sum());
    let mut variance = 0;
    for (helped, alone) in pairs {
        for rate in *helped {
            quotients.extend(alone.iter().map(|other| quotient(*rate, *other)));
        }
        let (a, b) = (helped.len() as u64, alone.len() as u64);
        variance += a * b * (a + b + 1);
    }
    quotients.sort_unstable();
    let middle = quotients.len() / 2;
    let ratio = match quotients.len() % 2 {
        0 => (quotients.get(middle.checked_sub(1)?)? / 2).saturating_add(quotients[middle] / 2),
        _ => quotients[middle],
    };
    // The sum of ranks has a twelfth of that as its variance; rounded so that the interval grows.
    let half = (deviations * deviations * variance / 12).isqrt() / 100 + 1;
    let first = (quotients.len() as u64 / 2).checked_sub(half);
    let first = first.map(|at| at as usize);
    let between = first.map(|at| (quotients[at], quotients[quotients.len() - 1 - at]));
    Some(Estimate { ratio, between })
}

fn quotient(rate: u32, other: u32) -> u32 {
    let quotient = u64::from(rate) * u64::from(ONE) / u64::from(other.max(1));
    u32::try_from(quotient).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, from 0 to 999.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) as u32 % 1000
        }

        /// Rates spread over a factor of about three, times so many thousandths.
        fn rates(&mut self, count: usize, thousandths: u32) -> Vec<u32> {
            (0..count).map(|_| (5000 + self.next() * 10) * thousandths / 1000).collect()
        }
    }

    #[test]
    fn the_median_of_quotients() {
        let found = estimate(&[(&[2000, 4000, 8000], &[1000])], CONFIDENT).unwrap();
        assert_eq!(found, Estimate { ratio: 4000, between: None });
        assert_eq!(estimate(&[(&[1000; 9], &[])], CONFIDENT), None);
        assert_eq!(estimate(&[], CONFIDENT), None);
        let even = estimate(&[(&[1000, 3000], &[1000])], CONFIDENT).unwrap();
        assert_eq!(even.ratio, 2000);
        let zero = estimate(&[(&[u32::MAX, 0], &[0, 1])], CONFIDENT).unwrap();
        assert!(zero.ratio > 0, "nothing divides by it");
    }

    #[test]
    fn three_left_alone_are_enough_where_the_difference_is_plain() {
        let (helped, alone) = (vec![5000; 57], vec![9000; 3]);
        let found = estimate(&[(&helped, &alone)], 258).unwrap();
        assert_eq!(found.between, Some((555, 555)));
        assert_eq!(estimate(&[(&helped, &alone[..1])], 258).unwrap().between, None);
    }

    #[test]
    fn kinds_of_clients_are_not_mixed() {
        // One kind is ten times as fast and seldom left alone; help does nothing for either.
        let (fast, slow) = (vec![90_000; 40], vec![9000; 40]);
        let pairs: [Pair<'_>; 2] = [(&fast, &fast[..4]), (&slow, &slow)];
        assert_eq!(estimate(&pairs, CONFIDENT).unwrap().between, Some((1000, 1000)));
    }

    #[test]
    fn the_interval_has_the_truth_in_it_nineteen_times_in_twenty() {
        let mut random = Random(1);
        for (helped, alone, truth) in
            [(57, 3, 1000), (100, 10, 1000), (128, 64, 1800), (45, 15, 700)]
        {
            let mut missed = 0;
            for _ in 0..400 {
                let (a, b) = (random.rates(helped, truth), random.rates(alone, 1000));
                let found = estimate(&[(&a, &b)], CONFIDENT).unwrap().between.unwrap();
                missed += usize::from(truth < found.0 || truth > found.1);
            }
            // Five standard deviations above one in twenty.
            assert!(missed <= 42, "{missed} of 400 with {helped} and {alone}");
        }
    }

    #[test]
    fn more_downloads_make_it_narrower() {
        let mut random = Random(2);
        let mut width = |count: usize| {
            let (a, b) = (random.rates(count * 4, 1500), random.rates(count, 1000));
            let (low, high) = estimate(&[(&a, &b)], CONFIDENT).unwrap().between.unwrap();
            high - low
        };
        assert!(width(32) < width(4) / 2);
    }
}
