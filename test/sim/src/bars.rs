//! The rows of `make sim`: scenarios, what is asked of the engine in each, and
//! what came out.

mod checks;
mod grid;

use std::collections::HashMap;

use indicatif::ProgressBar;
use serde::Serialize;

use crate::run::{Assist, Outcome, arrange, run_all};
use crate::scenario::Scenario;
pub use checks::{Bar, Runs};
pub use grid::cases;

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
    /// Medians of the goodput, Mbit/s.
    pub goodput_mbps: Goodput,
    /// Runs of each kind.
    pub seeds: u64,
}

/// Medians of a case, Mbit/s; all flows together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs)]
pub struct Goodput {
    pub off: f64,
    pub on: f64,
    pub lossless: f64,
}

const ASSISTS: [Assist; 3] = [Assist::Off, Assist::On, Assist::Lossless];

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
        let index = ASSISTS.map(|assist| {
            let arranged = arrange(&case.scenario, assist);
            let key = serde_json::to_string(&arranged).expect("a scenario has no odd values");
            *known.entry(key).or_insert_with(|| {
                scenarios.push((case.scenario.clone(), assist));
                scenarios.len() - 1
            })
        });
        indices.push(index);
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
    for (case, [off, on, lossless]) in cases.iter().zip(indices) {
        let runs = Runs { off: of(off), on: of(on), lossless: of(lossless) };
        for bar in &case.bars {
            let (value, holds) = bar.judge(&runs);
            rows.push(Row {
                name: format!("{}: {}", case.name, bar.name()),
                holds,
                bar: bar.text(),
                value,
                goodput_mbps: runs.goodput(),
                seeds,
            });
        }
    }
    Ok(rows)
}
