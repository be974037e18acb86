// SPDX-License-Identifier: GPL-2.0-or-later
//! Paths and clients that nobody has chosen: whether help does harm where no row was made for it.
//!
//! A case is drawn at random from what access networks, hops, stacks and controllers are like, and
//! is the same on every machine: its number is its seed. What comes out is the goodput with the
//! engine as a multiple of that without, over the same seeds.

use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;

use crate::matrix;
use crate::random::Random;
use crate::run::{Assist, Outcome, run_all};
use crate::scenario::Scenario;

/// Below this a case counts as harmed: means over a few seeds scatter by some percent.
pub const HARMED: f64 = 0.9;
/// Of the cases no more may be harmed than this share.
const MOST_HARMED: f64 = 0.05;
/// ... and none so much.
const LEAST: f64 = 0.6;

const CLIENTS: [&str; 19] = [
    "quinn",
    "every2",
    "every1",
    "every10",
    "delayed",
    "chromium",
    "quic_go",
    "padded",
    "random_padding",
    "ngtcp2",
    "s2n",
    "msquic",
    "irregular",
    "every4",
    "patient",
    "ack_frequency",
    "ack_frequency_third",
    "timestamps",
    "varying",
];
const CONTROLLERS: [&str; 7] = ["cubic", "cubic", "newreno", "bbr", "bbr3", "quic_go", "hystart"];

/// A case and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// Its number.
    pub number: u64,
    /// What it consists of, as `sim run --set` takes it.
    pub options: Vec<String>,
    /// The hop loses packets.
    pub lossy: bool,
    /// Mbit/s without help and with it: means of the seeds.
    pub goodput_mbps: [f64; 2],
    /// Copies that were not needed, percent of the packets.
    pub unneeded_percent: f64,
}

impl Case {
    /// What help is worth.
    pub fn times_off(&self) -> f64 {
        self.goodput_mbps[1] / self.goodput_mbps[0]
    }
}

/// Draws one after the other.
struct Dice(Random);

impl Dice {
    fn of<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.0.below(among.len() as u64) as usize]
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }
}

/// The options of a case, and whether its hop loses packets: never if all are to be `clean`.
fn draw(number: u64, clean: bool) -> (Vec<String>, bool) {
    let mut dice = Dice(Random::new(number));
    let mut options = Vec::new();
    let mut set = |name: &str, value: String| options.push(format!("{name}={value}"));
    let rate: f64 = dice.of(&[2.0, 5.0, 10.0, 10.0, 20.0, 35.0, 50.0, 75.0, 100.0, 200.0]);
    set("wan.rate_mbit", format!("{rate:?}"));
    set("wan.delay_ms", format!("{:?}", dice.of(&[3.0, 8.0, 15.0, 25.0, 50.0, 100.0, 150.0])));
    set("wan.queue_bdp", format!("{:?}", dice.of(&[0.3, 1.0, 1.0, 2.0, 4.0])));
    set("wan.qdisc", format!("{:?}", dice.of(&["droptail", "droptail", "codel", "fq_codel"])));
    let times = dice.of(&[0.7, 1.0, 1.2, 2.0, 2.0, 3.0, 5.0]);
    set("wifi.rate_mbit", format!("{:?}", rate * times));
    set("wifi.delay_ms", format!("{:?}", dice.of(&[0.5, 1.0, 2.0, 5.0, 10.0])));
    set("wifi.jitter_percent", format!("{:?}", dice.of(&[0.0, 0.0, 10.0, 30.0, 60.0])));
    let down: f64 = dice.of(&[0.0, 0.0, 0.1, 0.5, 1.0, 1.0, 2.0, 4.0, 8.0]);
    let down = if clean { 0.0 } else { down };
    let up = dice.of(&[0.0, down, down]);
    set("wifi.loss_down", format!("{{ percent = {down:?} }}"));
    set("wifi.loss_up", format!("{{ percent = {up:?} }}"));
    if dice.percent(15) {
        let clump = [dice.of(&[0.5, 2.0, 5.0]), dice.of(&[6.0, 10.0, 20.0])];
        set("wifi.clump_ms", format!("{clump:?}"));
    }
    if dice.percent(10) {
        set("wifi.reorder_percent", format!("{:?}", dice.of(&[0.2, 2.0])));
        set("wifi.reorder_ms", format!("{:?}", dice.of(&[0.5, 3.0])));
    }
    let sizes: &[u64] = if rate < 35.0 { &[300, 1000, 2000, 5000] } else { &[2000, 5000, 10_000] };
    set("flow.bytes", format!("{}", dice.of(sizes) * 1000));
    set("flow.client", format!("{:?}", dice.of(&CLIENTS)));
    set("flow.cc", format!("{:?}", dice.of(&CONTROLLERS)));
    set("flow.wake_ms", format!("{:?}", dice.of(&[0.0, 0.2, 0.5, 1.0, 3.0])));
    set("flow.batch_ms", format!("{:?}", dice.of(&[0.0, 0.0, 0.0, 0.3, 2.0])));
    set("flow.handshake_ms", format!("{:?}", dice.of(&[0.0, 1.0, 5.0])));
    (options, down > 0.0)
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
    /// Options changed in all of them, as with `run`.
    #[arg(long = "set", value_name = "OPTION=VALUE")]
    changes: Vec<String>,
}

/// Runs the cases of a plan.
pub fn run(plan: &Plan, progress: impl Fn(usize) -> ProgressBar) -> anyhow::Result<Vec<Case>> {
    let Plan { cases, first, seeds, clean, ref changes } = *plan;
    let numbers = first..first.saturating_add(cases);
    let drawn: Vec<_> = numbers.map(|number| (number, draw(number, clean))).collect();
    let scenarios = drawn.iter().map(|(_, (options, _))| {
        let options: Vec<String> = options.iter().chain(changes).cloned().collect();
        matrix::parse("", &options)
    });
    let scenarios: Vec<Scenario> = scenarios.collect::<anyhow::Result<_>>()?;
    let jobs: Vec<_> = scenarios
        .iter()
        .flat_map(|scenario| {
            let seeds = move |assist| (1..=seeds).map(move |seed| (scenario, assist, seed));
            seeds(Assist::Off).chain(seeds(Assist::On))
        })
        .collect();
    let bar = progress(jobs.len());
    let outcomes = run_all(&jobs, &bar)?;
    bar.finish_and_clear();
    let runs = outcomes.chunks(2 * seeds as usize);
    Ok(drawn.into_iter().zip(runs).map(|(drawn, runs)| judge(drawn, runs)).collect())
}

/// What came of a case: its runs without help, then as many with it.
fn judge((number, (options, lossy)): (u64, (Vec<String>, bool)), runs: &[Outcome]) -> Case {
    let (off, on) = runs.split_at(runs.len() / 2);
    let inference = on.iter().map(|run| &run.flows[0].inference);
    let [packets, copies, needed] = inference.fold([0, 0, 0], |[packets, copies, needed], it| {
        [packets + it.packets, copies + it.copies, needed + it.copies_needed]
    });
    let unneeded_percent = 100.0 * (copies - needed) as f64 / packets.max(1) as f64;
    Case { number, options, lossy, goodput_mbps: [mean(off), mean(on)], unneeded_percent }
}

fn mean(runs: &[Outcome]) -> f64 {
    runs.iter().map(|run| run.flows[0].goodput_mbps).sum::<f64>() / runs.len().max(1) as f64
}

/// What is bounded, of those cases.
fn harmed(cases: &[Case]) -> (usize, f64) {
    let least = cases.iter().map(Case::times_off).fold(f64::INFINITY, f64::min);
    (cases.iter().filter(|case| case.times_off() < HARMED).count(), least)
}

/// The worst cases, and a line for each kind of hop.
pub fn show(cases: &[Case], worst: usize) -> String {
    let mut text = String::new();
    let mut order: Vec<&Case> = cases.iter().collect();
    order.sort_by(|a, b| a.times_off().total_cmp(&b.times_off()));
    for case in order.iter().take(worst) {
        let [off, on] = case.goodput_mbps;
        text += &format!("{:.3} x off ({off:.2}, {on:.2} Mbit/s), ", case.times_off());
        text += &format!("{:.1} % unneeded: case {}", case.unneeded_percent, case.number);
        text += &format!("\n      {}\n", case.options.join(" "));
    }
    for (name, lossy) in [("without losses", false), ("with losses", true)] {
        let those: Vec<Case> = cases.iter().filter(|case| case.lossy == lossy).cloned().collect();
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
    text
}

/// An error where help harms more cases than it may.
pub fn check(cases: &[Case]) -> anyhow::Result<()> {
    let (harmed, least) = harmed(cases);
    let most = MOST_HARMED * cases.len() as f64;
    anyhow::ensure!(
        harmed as f64 <= most && least >= LEAST,
        "{harmed} cases of {} are below {HARMED} of what they are without help, the worst is {least:.2}; \
         allowed are {most:.0}, none below {LEAST}",
        cases.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::LossModel;

    #[test]
    fn a_number_is_a_case() {
        assert_eq!(draw(7, false), draw(7, false));
        assert_ne!(draw(7, false), draw(8, false));
        for number in 0..300 {
            matrix::parse("", &draw(number, false).0).unwrap();
        }
    }

    #[test]
    fn a_clean_case_is_the_same_but_for_its_losses() {
        for number in 0..100 {
            let (lossy, clean) = (draw(number, false), draw(number, true));
            assert!(!clean.1);
            let without_losses = |options: &[String]| -> Vec<String> {
                options.iter().filter(|it| !it.starts_with("wifi.loss_")).cloned().collect()
            };
            assert_eq!(without_losses(&lossy.0), without_losses(&clean.0));
            let scenario = matrix::parse("", &clean.0).unwrap();
            let none = LossModel::Percent(0.0);
            assert_eq!((&scenario.wifi.loss_down, &scenario.wifi.loss_up), (&none, &none));
        }
    }

    #[test]
    fn harm_is_counted() {
        let case = |on: f64| Case {
            number: 0,
            options: Vec::new(),
            lossy: true,
            goodput_mbps: [10.0, on],
            unneeded_percent: 0.0,
        };
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
}
