// SPDX-License-Identifier: GPL-2.0-or-later
//! The rows of `make sim`: scenarios, what is asked of the engine in each, and
//! what came out.

mod by_chance;
mod checks;
mod far;
mod fast;
mod grid;
mod habits;
mod imprecise;
pub mod offline;
mod open;
mod outages;
mod radio;
mod reported;
mod senders;
mod tails;
mod traced;

use std::collections::HashMap;

use indicatif::ProgressBar;
use serde::Serialize;

use crate::run::{Assist, Outcome, arrange, run_all};
use crate::scenario::Scenario;
pub use checks::{Bar, Runs};
pub use grid::cases;

/// [`judge_in_doubt`] begins with one in so many seeds.
const FIRST_PART: u64 = 3;

/// A scenario and what is asked of the engine in it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Group and parameters, as in `cubic 5 MB 1 %`.
    pub name: String,
    /// The scenario.
    pub scenario: Scenario,
    /// What is asked.
    pub bars: Vec<Bar>,
}

/// A line of the result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The case and what is asked.
    pub name: String,
    /// Whether it is so.
    pub holds: bool,
    /// What is asked.
    pub bar: String,
    /// What came out, in the bar's unit.
    pub value: f64,
    /// Medians of the goodput, Mbit/s; not of recordings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goodput_mbps: Option<Goodput>,
    /// Runs of each kind; of recordings one.
    pub seeds: u64,
    /// Why it does not hold, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Whether it holds or nearly does.
    #[serde(skip)]
    pub nearly: bool,
}

impl Row {
    /// A row that is not about simulated runs.
    pub fn new(name: String, value: f64, holds: bool, bar: String) -> Row {
        let value = (value * 1e4).round() / 1e4;
        let reason = if holds { None } else { open::reason(&name) };
        Row { name, holds, bar, value, goodput_mbps: None, seeds: 1, reason, nearly: holds }
    }

    /// Whether it does not even nearly hold, and no reason is known for that.
    pub fn is_wrong(&self) -> bool {
        !self.nearly && self.reason.is_none()
    }
}

/// Medians of a case, Mbit/s; all flows together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs)]
pub struct Goodput {
    pub off: f64,
    pub on: f64,
    /// Only where a bar asks for it: it costs a third of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lossless: Option<f64>,
}

/// Judges the cases as [`judge`] does, but all with a part of the seeds first, and with all of them only those of
/// which a row is then wrong.
pub fn judge_in_doubt(
    cases: &[Case],
    seeds: u64,
    progress: impl Fn(usize) -> ProgressBar,
) -> anyhow::Result<Vec<Row>> {
    let mut rows = judge(cases, seeds.div_ceil(FIRST_PART), &progress)?;
    let mut first = 0;
    let mut again = Vec::new();
    let mut places = Vec::new();
    for case in cases {
        let those = first..first + case.bars.len();
        first = those.end;
        if rows[those.clone()].iter().any(Row::is_wrong) {
            again.push(case.clone());
            places.extend(those);
        }
    }
    for (place, row) in places.into_iter().zip(judge(&again, seeds, progress)?) {
        rows[place] = row;
    }
    Ok(rows)
}

/// Runs the cases with seeds from 1 on and judges them.
pub fn judge(
    cases: &[Case],
    seeds: u64,
    progress: impl Fn(usize) -> ProgressBar,
) -> anyhow::Result<Vec<Row>> {
    // Many cases share a ceiling or a run without help: each is run once.
    let mut scenarios: Vec<(Scenario, Assist)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut indices = Vec::new();
    for case in cases {
        let mut index = |assist| {
            let arranged = arrange(&case.scenario, assist);
            let key = serde_json::to_string(&arranged).expect("a scenario has no odd values");
            *known.entry(key).or_insert_with(|| {
                scenarios.push((case.scenario.clone(), assist));
                scenarios.len() - 1
            })
        };
        let ceiling = case.bars.iter().any(|bar| bar.needs_ceiling());
        let lossless = ceiling.then(|| index(Assist::Lossless));
        indices.push((index(Assist::Off), index(Assist::On), lossless));
    }
    let jobs: Vec<_> = scenarios
        .iter()
        .flat_map(|(scenario, assist)| (1..=seeds).map(move |seed| (scenario, *assist, seed)))
        .collect();
    let bar = progress(jobs.len());
    let outcomes = run_all(&jobs, &bar)?;
    bar.finish_and_clear();
    let of = |index: usize| -> &[Outcome] {
        &outcomes[index * seeds as usize..(index + 1) * seeds as usize]
    };
    let mut rows = Vec::new();
    for (case, (off, on, lossless)) in cases.iter().zip(indices) {
        let lossless = lossless.map_or(&[][..], of);
        let runs = Runs { off: of(off), on: of(on), lossless };
        for bar in &case.bars {
            let (value, holds) = bar.judge(&runs);
            let name = format!("{}: {}", case.name, bar.name());
            let goodput_mbps = Some(runs.goodput());
            let nearly = holds || bar.nearly(value);
            let row = Row::new(name, value, holds, bar.text());
            rows.push(Row { goodput_mbps, seeds, nearly, ..row });
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Flow;

    #[test]
    fn only_what_is_wrong_with_few_seeds_is_run_with_all() {
        let flows = vec![Flow { bytes: 100_000, ..Flow::default() }];
        let scenario = Scenario { flows, ..Scenario::default() };
        let case = |name: &str, bars: &[Bar]| {
            let (name, scenario) = (name.to_owned(), scenario.clone());
            Case { name, scenario, bars: bars.to_vec() }
        };
        let cases = [
            case("right", &[Bar::OfLossless(0.1)]),
            case("wrong", &[Bar::OfLossless(0.1), Bar::OfLossless(2.0)]),
            case("right, too", &[Bar::TimesOff(0.1)]),
        ];
        let rows = judge_in_doubt(&cases, 6, |_| ProgressBar::hidden()).unwrap();
        let seeds: Vec<u64> = rows.iter().map(|row| row.seeds).collect();
        assert_eq!(seeds, [2, 6, 6, 2]);
        let wrong: Vec<_> = rows.iter().filter(|row| row.is_wrong()).collect();
        assert_eq!(wrong.len(), 1);
        assert!(wrong[0].name.starts_with("wrong: ") && wrong[0].bar.starts_with(">= 2"));
    }
}
