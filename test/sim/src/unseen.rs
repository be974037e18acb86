// SPDX-License-Identifier: GPL-2.0-or-later
//! Paths and clients that nobody has chosen: whether help does harm where no row was made for it.
//!
//! A case is drawn at random from what access networks, hops, stacks and controllers are like, and
//! is the same on every machine: its number is its seed. It is one download, or several flows beside and
//! after each other. What comes out is the goodput with the engine as a multiple of that without, over the
//! same seeds, and of a call how much sooner its frames are there.

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::run::{Assist, Outcome, run_all};
use crate::scenario::{ClientKind, Scenario};
use draw::Drawn;

mod clients;
mod draw;

/// Below this a case counts as harmed: means over a few seeds scatter by some percent.
pub const HARMED: f64 = 0.9;
/// Of the cases no more may be harmed than this share.
const MOST_HARMED: f64 = 0.05;
/// ... and none so much.
const LEAST: f64 = 0.6;

/// Where there are several flows, each has the others' chances as well, and no more may be harmed than this
/// share, and none so much (chosen: beside each other's losses two downloads that are the same differ as much).
const MOST_HARMED_OF_SEVERAL: f64 = 0.1;
const LEAST_OF_SEVERAL: f64 = 0.3;

/// What was measured of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Of a download the goodput, Mbit/s.
    Goodput,
    /// Of a call the 99th percentile of its frames' delay, ms.
    FrameDelay,
}

/// A flow of a case and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The number of the case.
    pub number: u64,
    /// Which of its flows this is.
    pub flow: usize,
    /// What the case consists of, as `sim run --set` takes it.
    pub options: Vec<String>,
    /// What the flow consists of, if there are several.
    pub of_flow: Option<String>,
    /// The hop loses packets.
    pub lossy: bool,
    /// How the client receives.
    pub client: String,
    /// What was measured.
    pub measure: Measure,
    /// Without help and with it: means of the seeds.
    pub results: [f64; 2],
    /// The same if the hop lost nothing, if that was asked for.
    pub lossless: Option<f64>,
    /// Packets of all seeds that the hop lost, with help, and those that the sender was told of.
    pub losses: u64,
    #[expect(missing_docs)]
    pub told: u64,
    /// Copies that were not needed, percent of the packets.
    pub unneeded_percent: f64,
}

impl Case {
    /// What help is worth: above 1 it is better than none.
    pub fn times_off(&self) -> f64 {
        let [off, on] = self.results;
        match self.measure {
            Measure::Goodput => on / off,
            Measure::FrameDelay => off / on,
        }
    }
}

/// What is run.
#[derive(Args, Clone, Debug)]
pub struct Plan {
    /// How many.
    #[arg(long, default_value_t = 200)]
    cases: u64,
    /// The number of the first of them.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// How many seeds each.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// No hop loses anything: what help costs where there is nothing to repair.
    #[arg(long)]
    clean: bool,
    /// Several flows each: downloads, calls and TCP, beside and after each other.
    #[arg(long)]
    several: bool,
    /// Also run each on a hop that loses nothing: how far help could come.
    #[arg(long)]
    ceiling: bool,
    /// Options changed in all of them, as with `run`.
    #[arg(long = "set", value_name = "OPTION=VALUE")]
    changes: Vec<String>,
}

/// Runs the cases of a plan; gives what came of each flow.
pub fn run(plan: &Plan, progress: impl Fn(usize) -> ProgressBar) -> anyhow::Result<Vec<Case>> {
    let Plan { cases, first, seeds, clean, several, ceiling, ref changes } = *plan;
    let draw = if several { draw::several } else { draw::one };
    let numbers = first..first.saturating_add(cases);
    let drawn: Vec<Drawn> = numbers.map(|number| draw(number, clean)).collect();
    let scenarios = drawn.iter().map(|drawn| drawn.scenario(changes));
    let scenarios: Vec<Scenario> = scenarios.collect::<anyhow::Result<_>>()?;
    let assists = &[Assist::Off, Assist::On, Assist::Lossless][..if ceiling { 3 } else { 2 }];
    let jobs: Vec<_> = scenarios
        .iter()
        .flat_map(|scenario| {
            let seeds = move |&assist| (1..=seeds).map(move |seed| (scenario, assist, seed));
            assists.iter().flat_map(seeds)
        })
        .collect();
    let bar = progress(jobs.len());
    let outcomes = run_all(&jobs, &bar)?;
    bar.finish_and_clear();
    let seeds = seeds as usize;
    let runs = outcomes.chunks(assists.len() * seeds);
    let cases = drawn.iter().zip(&scenarios).zip(runs);
    Ok(cases.flat_map(|((drawn, scenario), runs)| judge(drawn, scenario, runs, seeds)).collect())
}

/// What came of a case: its runs without help, as many with it, and perhaps those of its ceiling.
fn judge<'a>(
    drawn: &'a Drawn,
    scenario: &'a Scenario,
    runs: &'a [Outcome],
    seeds: usize,
) -> impl Iterator<Item = Case> + 'a {
    let (off, rest) = runs.split_at(seeds);
    let (on, lossless) = rest.split_at(seeds);
    let flows = off.first().map_or(0, |run| run.flows.len());
    (0..flows).map(move |flow| {
        let inference = on.iter().map(|run| &run.flows[flow].inference);
        let [packets, copies, needed] =
            inference.fold([0, 0, 0], |[packets, copies, needed], it| {
                [packets + it.packets, copies + it.copies, needed + it.copies_needed]
            });
        let losses = on.iter().map(|run| run.flows[flow].inference.losses).sum();
        let told = on.iter().map(|run| run.flows[flow].told).sum();
        let is_call = off.iter().any(|run| run.flows[flow].frame_delay_ms.is_some());
        let measure = if is_call { Measure::FrameDelay } else { Measure::Goodput };
        Case {
            number: drawn.number,
            flow,
            options: drawn.options.clone(),
            of_flow: drawn.flows.get(flow).map(|lines| lines.replace('\n', " ")),
            lossy: drawn.lossy,
            client: name(scenario.flows[flow].client),
            measure,
            results: [off, on].map(|runs| mean(runs, flow, measure)),
            lossless: (!lossless.is_empty()).then(|| mean(lossless, flow, measure)),
            losses,
            told,
            unneeded_percent: 100.0 * (copies - needed) as f64 / packets.max(1) as f64,
        }
    })
}

/// As scenarios have it.
fn name(client: ClientKind) -> String {
    serde_json::to_value(client)
        .ok()
        .and_then(|name| name.as_str().map(String::from))
        .unwrap_or_default()
}

fn mean(runs: &[Outcome], flow: usize, measure: Measure) -> f64 {
    let of = |run: &Outcome| match measure {
        Measure::Goodput => run.flows[flow].goodput_mbps,
        Measure::FrameDelay => run.flows[flow].frame_delay_ms.as_ref().map_or(0.0, |it| it.p99),
    };
    runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
}

/// What is bounded, of those cases.
fn harmed(cases: &[Case]) -> (usize, f64) {
    let least = cases.iter().map(Case::times_off).fold(f64::INFINITY, f64::min);
    (cases.iter().filter(|case| case.times_off() < HARMED).count(), least)
}

/// The worst cases, a line for each kind of hop, and one for each client.
pub fn show(cases: &[Case], worst: usize) -> String {
    let mut text = String::new();
    let mut order: Vec<&Case> = cases.iter().collect();
    order.sort_by(|a, b| a.times_off().total_cmp(&b.times_off()));
    for case in order.iter().take(worst) {
        let [off, on] = case.results;
        let unit = if case.measure == Measure::Goodput { "Mbit/s" } else { "ms" };
        text += &format!("{:.3} x off ({off:.2}, {on:.2} {unit}), ", case.times_off());
        text += &format!("{:.1} % unneeded: case {}", case.unneeded_percent, case.number);
        text += &format!("\n      {}\n", case.options.join(" "));
        if let Some(of_flow) = &case.of_flow {
            text += &format!("      flow {}: {of_flow}\n", case.flow);
        }
    }
    let kinds = [
        ("without losses", false, Measure::Goodput),
        ("without losses, calls", false, Measure::FrameDelay),
        ("with losses", true, Measure::Goodput),
        ("with losses, calls", true, Measure::FrameDelay),
    ];
    for (name, lossy, measure) in kinds {
        let is = |case: &&Case| case.lossy == lossy && case.measure == measure;
        let those: Vec<Case> = cases.iter().filter(is).cloned().collect();
        if those.is_empty() {
            continue;
        }
        let logs: f64 = those.iter().map(|case| case.times_off().ln()).sum();
        let (harmed, least) = harmed(&those);
        let (all, mean) = (those.len(), (logs / those.len() as f64).exp());
        text += &format!(
            "{name}: {mean:.3} x off in the geometric mean of {all} cases, {harmed} below {HARMED}, \
             the worst {least:.2}\n"
        );
    }
    text + &clients::table(cases, true) + &clients::table(cases, false)
}

/// An error where help harms more cases than it may.
pub fn check(cases: &[Case]) -> anyhow::Result<()> {
    let (harmed, least) = harmed(cases);
    let several = cases.iter().any(|case| case.of_flow.is_some());
    let (share, lowest) =
        if several { (MOST_HARMED_OF_SEVERAL, LEAST_OF_SEVERAL) } else { (MOST_HARMED, LEAST) };
    let most = share * cases.len() as f64;
    anyhow::ensure!(
        harmed as f64 <= most && least >= lowest,
        "{harmed} cases of {} are below {HARMED} of what they are without help, the worst is {least:.2}; \
         allowed are {most:.0}, none below {lowest}",
        cases.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn case(on: f64) -> Case {
        Case {
            number: 0,
            flow: 0,
            options: Vec::new(),
            of_flow: None,
            lossy: true,
            client: "quinn".into(),
            measure: Measure::Goodput,
            results: [10.0, on],
            lossless: None,
            losses: 0,
            told: 0,
            unneeded_percent: 0.0,
        }
    }

    #[test]
    fn harm_is_counted() {
        let mut cases = vec![case(9.5); 20];
        assert!(check(&cases).is_ok());
        cases[0] = case(8.0);
        assert!(check(&cases).is_ok(), "one of twenty");
        cases[1] = case(8.0);
        assert!(check(&cases).is_err());
        cases[1] = case(9.5);
        cases[0] = case(5.0);
        assert!(check(&cases).is_err());
        assert!(show(&cases, 1).starts_with("0.500 x off"));
    }

    #[test]
    fn a_call_that_is_late_is_harmed() {
        let call = |on| Case { measure: Measure::FrameDelay, ..case(on) };
        assert_eq!(call(5.0).times_off(), 2.0);
        let mut cases = vec![call(10.0); 20];
        assert!(check(&cases).is_ok());
        cases[0] = call(30.0);
        assert!(check(&cases).is_err());
        assert!(show(&cases, 0).starts_with("with losses, calls: "));
    }

    #[test]
    fn flows_beside_each_other_have_each_others_chances() {
        let beside = |on| Case { of_flow: Some("bytes = 1".into()), ..case(on) };
        let mut cases = vec![beside(10.0); 20];
        (cases[0], cases[1]) = (beside(8.0), beside(5.0));
        assert!(check(&cases).is_ok());
        cases[2] = beside(8.0);
        assert!(check(&cases).is_err());
        assert!(show(&cases, 1).contains("flow 0: bytes = 1"));
    }
}
