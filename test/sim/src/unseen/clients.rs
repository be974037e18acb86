// SPDX-License-Identifier: GPL-2.0-or-later
//! What help is worth to the downloads of each client, of all the cases that were drawn.

use std::collections::BTreeMap;

use super::{Case, Measure};

/// A line for each client, first the one that gains least or, if ceilings are known, is furthest from its own;
/// nothing where there is no case.
pub fn table(cases: &[Case], lossy: bool) -> String {
    let mut clients: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        if case.lossy == lossy && case.measure == Measure::Goodput {
            clients.entry(&case.client).or_default().push(case);
        }
    }
    if clients.is_empty() {
        return String::new();
    }
    let kind = if lossy { "with losses" } else { "without losses" };
    let ceiling = cases.iter().all(|case| case.lossless.is_some());
    let mut text = format!("{kind:20} cases   x off");
    if ceiling {
        text += "  off/lossless  on/lossless";
    }
    text += "  told of 100  unneeded %\n";
    let mut lines: Vec<(f64, String)> =
        clients.into_iter().map(|(client, cases)| line(client, &cases, ceiling)).collect();
    lines.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    text.extend(lines.into_iter().map(|(_, line)| line));
    text
}

/// The line, and what it is sorted by.
fn line(client: &str, cases: &[&Case], ceiling: bool) -> (f64, String) {
    let all = cases.len() as f64;
    let mean = |of: &dyn Fn(&Case) -> f64| cases.iter().map(|case| of(case)).sum::<f64>() / all;
    let times_off = mean(&|case| case.times_off().ln()).exp();
    let mut text = format!("{client:20} {:5} {times_off:7.3}", cases.len());
    let mut key = times_off;
    if ceiling {
        let of_lossless = |n: usize| {
            let of = |case: &Case| case.results[n] / case.lossless.unwrap_or(f64::INFINITY);
            mean(&of)
        };
        key = of_lossless(1);
        text += &format!(" {:13.3} {key:12.3}", of_lossless(0));
    }
    let sum = |of: fn(&Case) -> u64| cases.iter().map(|case| of(case)).sum::<u64>();
    let told = match sum(|case| case.losses) {
        0 => "-".into(),
        losses => format!("{:.0}", 100.0 * sum(|case| case.told) as f64 / losses as f64),
    };
    text += &format!(" {told:>12} {:11.1}\n", mean(&|case| case.unneeded_percent));
    (key, text)
}

#[cfg(test)]
mod tests {
    use super::super::tests::case;
    use super::*;

    #[test]
    fn the_client_that_is_furthest_from_its_ceiling_comes_first() {
        let of = |client: &str, on, lossless| Case {
            client: client.into(),
            lossless: Some(lossless),
            losses: 50,
            told: 20,
            ..case(on)
        };
        let cases = [of("near", 15.0, 16.0), of("far", 20.0, 40.0), of("far", 20.0, 80.0)];
        let text = table(&cases, true);
        let lines: Vec<Vec<&str>> =
            text.lines().map(|it| it.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["far", "2", "2.000", "0.188", "0.375", "40", "0.0"]);
        assert_eq!(lines[2], ["near", "1", "1.500", "0.625", "0.938", "40", "0.0"]);
        assert_eq!(table(&cases, false), "");
    }

    #[test]
    fn without_a_ceiling_nothing_is_said_of_it() {
        let text = table(&[case(15.0)], true);
        assert!(!text.contains("lossless"));
        assert!(text.contains("1.500            -"));
    }
}
