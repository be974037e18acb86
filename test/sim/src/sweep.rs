// SPDX-License-Identifier: GPL-2.0-or-later
//! The cartesian product of values of options: a scenario in many variants.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use crate::matrix;
use crate::report::{Spread, spread};
use crate::run::{Assist, FlowResult, Outcome, run_all};
use crate::scenario::Scenario;

/// What is run.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Changes that all cells share, as in `wifi.delay_ms=5`.
    pub changes: Vec<String>,
    /// Options with their values, as in `wifi.delay_ms=1,5,10`.
    pub vary: Vec<String>,
    /// How each cell is run.
    pub assists: Vec<Assist>,
    /// How many seeds, from 1 on.
    pub seeds: u64,
}

/// What came out for one combination of values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The combination, as in `wifi.delay_ms=5`.
    pub options: Vec<String>,
    /// Goodput of all flows together by the way it was run, Mbit/s.
    pub goodput_mbps: BTreeMap<Assist, Goodput>,
    /// Copies that were not needed, percent of the packets to the clients; of the
    /// runs with the engine, if there are any.
    pub unneeded_percent: Option<f64>,
    /// Losses that were repaired in time, percent of all flows' losses.
    pub repaired_percent: Option<f64>,
    /// Losses that the sender learned of, percent of the same.
    pub told_percent: Option<f64>,
}

/// Median and 10th percentile over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs)]
pub struct Goodput {
    pub median: f64,
    pub p10: f64,
}

/// All combinations of `OPTION=V1,V2`; the last option changes fastest.
pub fn expand(vary: &[String]) -> anyhow::Result<Vec<Vec<String>>> {
    let mut cells = vec![Vec::new()];
    for option in vary {
        let (name, values) = option.split_once('=').with_context(|| {
            format!("'{option}': wanted OPTION=VALUE,VALUE, as in wifi.delay_ms=1,5")
        })?;
        let values = split(values);
        ensure!(
            values.iter().all(|value| !value.is_empty()),
            "'{option}': a value of '{name}' is empty"
        );
        cells = cells
            .into_iter()
            .flat_map(|cell: Vec<String>| {
                let with = |value: &&str| {
                    let mut cell = cell.clone();
                    cell.push(format!("{name}={value}"));
                    cell
                };
                values.iter().map(with).collect::<Vec<_>>()
            })
            .collect();
    }
    Ok(cells)
}

/// At the commas that are not inside of brackets or quotes.
fn split(values: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut quoted, mut start) = (0, false, 0);
    for (at, character) in values.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(values[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(values[start..].trim());
    parts
}

/// Runs all cells on all cores; `progress` makes a bar for so many runs.
pub fn run(
    path: &Path,
    sweep: &Sweep,
    progress: impl Fn(usize) -> ProgressBar,
) -> anyhow::Result<Vec<Cell>> {
    ensure!(sweep.seeds > 0, "at least one seed is needed");
    let combinations = expand(&sweep.vary)?;
    let scenarios = combinations.iter().map(|options| {
        let changes: Vec<String> = sweep.changes.iter().chain(options).cloned().collect();
        matrix::read(path, &changes)
    });
    let scenarios = scenarios.collect::<anyhow::Result<Vec<Scenario>>>()?;
    let mut jobs = Vec::new();
    for scenario in &scenarios {
        for assist in &sweep.assists {
            jobs.extend((1..=sweep.seeds).map(|seed| (scenario, *assist, seed)));
        }
    }
    let bar = progress(jobs.len());
    let outcomes = run_all(&jobs, &bar)?;
    bar.finish_and_clear();
    let of_cell = outcomes.chunks(sweep.assists.len() * sweep.seeds as usize);
    Ok(combinations.into_iter().zip(of_cell).map(|(options, runs)| cell(options, runs)).collect())
}

fn cell(options: Vec<String>, runs: &[Outcome]) -> Cell {
    let mut goodputs: BTreeMap<Assist, Vec<f64>> = BTreeMap::new();
    for run in runs {
        let goodput = run.flows.iter().map(|flow| flow.goodput_mbps).sum();
        goodputs.entry(run.assist).or_default().push(goodput);
    }
    let helped: Vec<&FlowResult> =
        runs.iter().filter(|run| run.assist == Assist::On).flat_map(|run| &run.flows).collect();
    let sum = |value: fn(&FlowResult) -> u64| helped.iter().map(|flow| value(flow)).sum::<u64>();
    let percent = |part: u64, whole: u64| {
        (!helped.is_empty() && whole > 0).then(|| round(100.0 * part as f64 / whole as f64))
    };
    let copies = sum(|flow| flow.inference.copies);
    let needless = copies - sum(|flow| flow.inference.copies_needed);
    let repaired = sum(|flow| flow.inference.repaired);
    let goodput = |values| {
        let Spread { median, p10, .. } = spread(values);
        Goodput { median: round(median), p10: round(p10) }
    };
    Cell {
        options,
        goodput_mbps: goodputs.into_iter().map(|(how, all)| (how, goodput(all))).collect(),
        unneeded_percent: percent(needless, sum(|flow| flow.inference.packets) + copies),
        repaired_percent: percent(repaired, sum(|flow| flow.inference.losses)),
        told_percent: percent(sum(|flow| flow.told), sum(|flow| flow.inference.losses)),
    }
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

/// Cells that other machines have run, in the order of their files: what one sweep of all of them
/// would give.
pub fn read(files: &[PathBuf]) -> anyhow::Result<Vec<Cell>> {
    let mut cells: Vec<Cell> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        let more: Vec<Cell> = serde_json::from_str(&text)
            .with_context(|| format!("{}: not what --json prints", file.display()))?;
        cells.extend(more);
    }
    let names = |cell: &Cell| -> Vec<String> {
        cell.options.iter().map(|option| name_and_value(option).0.to_owned()).collect()
    };
    let same = cells.iter().all(|cell| names(cell) == names(&cells[0]));
    ensure!(same, "these are not of one sweep: other options are varied");
    Ok(cells)
}

/// The cells for people to read, one line each.
pub fn table(cells: &[Cell]) -> String {
    let Some(first) = cells.first() else { return String::new() };
    // Columns are as wide as their widest entry.
    let names = first.options.iter().map(|option| name_and_value(option).0.to_owned());
    let mut rows: Vec<Vec<String>> = vec![names.collect()];
    for assist in first.goodput_mbps.keys() {
        rows[0].push(format!("{assist:?} median").to_lowercase());
        rows[0].push("p10".into());
    }
    rows[0].extend(["unneeded %", "repaired %", "told %"].map(String::from));
    for cell in cells {
        let mut row: Vec<String> =
            cell.options.iter().map(|option| name_and_value(option).1.to_owned()).collect();
        for goodput in cell.goodput_mbps.values() {
            row.extend([goodput.median, goodput.p10].map(|value| format!("{value:.2}")));
        }
        let percents = [cell.unneeded_percent, cell.repaired_percent, cell.told_percent];
        row.extend(percents.map(|p| p.map_or("-".into(), |p| format!("{p:.2}"))));
        rows.push(row);
    }
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        for (column, (entry, width)) in row.iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            let _ = write!(text, "{gap}{entry:>width$}");
        }
        text.push('\n');
    }
    text
}

fn name_and_value(option: &str) -> (&str, &str) {
    option.split_once('=').unwrap_or((option, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(vary: &[&str]) -> Vec<Vec<String>> {
        expand(&vary.iter().map(|option| (*option).into()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn options_are_combined_each_with_each() {
        let cells = expanded(&["wifi.delay_ms=1,5", "flow.cc=cubic, bbr"]);
        let expected = [
            ["wifi.delay_ms=1", "flow.cc=cubic"],
            ["wifi.delay_ms=1", "flow.cc=bbr"],
            ["wifi.delay_ms=5", "flow.cc=cubic"],
            ["wifi.delay_ms=5", "flow.cc=bbr"],
        ];
        assert_eq!(cells, expected);
        assert_eq!(expanded(&[]), [Vec::<String>::new()]);
    }

    #[test]
    fn commas_in_values_stay() {
        let option = r#"wifi.loss_down={ percent = 1 },{ gemodel = [1, 2, 3, 4] },"a,b""#;
        let values: Vec<String> =
            expanded(&[option]).into_iter().map(|cell| cell[0].clone()).collect();
        let expected = [
            "wifi.loss_down={ percent = 1 }",
            "wifi.loss_down={ gemodel = [1, 2, 3, 4] }",
            "wifi.loss_down=\"a,b\"",
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn what_is_missing_is_an_error() {
        let error = |option: &str| expand(&[option.into()]).unwrap_err().to_string();
        assert!(error("wifi.delay_ms").contains("wanted OPTION=VALUE,VALUE"));
        assert!(error("wifi.delay_ms=1,,2").contains("a value of 'wifi.delay_ms' is empty"));
    }

    #[test]
    fn cells_become_lines() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/train.toml");
        let sweep = Sweep {
            changes: vec!["flow.bytes=200000".into()],
            vary: vec!["wifi.delay_ms=1,5".into(), "wan.rate_mbit=10,20".into()],
            assists: vec![Assist::On, Assist::Lossless],
            seeds: 3,
        };
        let cells = run(&path, &sweep, |_| ProgressBar::hidden()).unwrap();
        assert_eq!(cells.len(), 4);
        assert!(cells.iter().all(|cell| cell.goodput_mbps[&Assist::Lossless].median > 0.5));
        let table = table(&cells);
        let words = |line: usize| -> Vec<&str> {
            table.lines().nth(line).unwrap().split_whitespace().collect()
        };
        assert_eq!(words(0)[..4], ["wifi.delay_ms", "wan.rate_mbit", "on", "median"]);
        assert_eq!(words(3)[..2], ["5", "10"]);
        assert_eq!(table.lines().count(), 5);
    }
}
