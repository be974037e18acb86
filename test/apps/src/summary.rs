// SPDX-License-Identifier: GPL-2.0-or-later
//! What is said of many values.

use serde::Serialize;

use crate::output::rounded;

/// Mean and percentiles in milliseconds, by the nearest rank; null where there
/// was nothing.
#[derive(Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Summary {
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
    pub max: Option<f64>,
    pub mean: Option<f64>,
}

impl Summary {
    /// Of the values in any order.
    pub fn of(mut values: Vec<f64>) -> Summary {
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len();
        let rank = |percent: usize| {
            let rank = (count * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied()
        };
        let mean = values.iter().sum::<f64>() / count as f64;
        Summary {
            p50: rank(50),
            p90: rank(90),
            p99: rank(99),
            max: rank(100),
            mean: (count > 0).then(|| rounded(mean)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let summary = Summary::of((1..=200).rev().map(f64::from).collect());
        assert_eq!(
            summary,
            Summary {
                p50: Some(100.0),
                p90: Some(180.0),
                p99: Some(198.0),
                max: Some(200.0),
                mean: Some(100.5)
            }
        );
        assert_eq!(Summary::of(vec![]), Summary::default());
    }
}
