// SPDX-License-Identifier: GPL-2.0-or-later
//! The daemon's comparison of helped flows with those left alone, beside the truth, which only a
//! simulator knows: the same downloads, all of them helped and all of them left alone.

use std::sync::Mutex;

use linkem::Nanos;
use log::{Level, LevelFilter, Log, Metadata, Record};
use pemi::daemon::benefit::Benefit;
use pemi_engine::{Config, Outcome};
use pemi_sim::matrix;
use pemi_sim::run::config;
use pemi_sim::scenario::{Flow, Scenario};
use pemi_sim::world::World;

const SECOND: Nanos = 1_000_000_000;
/// Downloads, one after the other.
const FLOWS: usize = 60;
/// Enough of them are left alone for an interval of sixty (chosen).
const PERCENT: u32 = 25;
/// From one download's start to the next; each is over by then, which is known 3 s later.
const APART_MS: f64 = 4000.0;

/// Lines of the log.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
struct Lines;

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &Record<'_>) {
        if record.level() <= Level::Warn {
            LINES.lock().unwrap().push(record.args().to_string());
        }
    }
    fn flush(&self) {}
}

/// Downloads of a megabyte over a hop that loses so many percent in each direction.
fn scenario(percent: f64) -> Scenario {
    let loss = |way| format!("wifi.loss_{way}={{ percent = {percent} }}");
    let changes = [loss("down"), loss("up"), "flow.bytes=1000000".into()];
    let text = include_str!("../scenarios/train.toml");
    let mut scenario = matrix::parse(text, &changes).unwrap();
    let flow = |n| Flow { start_ms: n as f64 * APART_MS, ..scenario.flows[0].clone() };
    scenario.flows = (0..FLOWS).map(flow).collect();
    scenario
}

/// Runs it as a router would, where so many flows are left alone; gives what came of each download,
/// and what the comparison made of it.
fn compare(percent: f64, control: u32, harm_ms: u64, seed: u64) -> (Vec<Outcome>, Benefit) {
    let scenario = scenario(percent);
    let config = Config { control_percent: control, ..config(&scenario).unwrap() };
    let mut world = World::new(&scenario, config, seed).unwrap();
    world.delay_replies_of_helped(harm_ms * SECOND / 1000);
    let mut benefit = Benefit::new(&["br-lan".into()], control > 0, None);
    let mut all = Vec::new();
    let last = FLOWS as u64 * APART_MS as u64 / 1000 + 10;
    for second in 1..=last {
        // As the daemon does once a second.
        world.run_to(second * SECOND);
        let outcomes = world.router_mut().outcomes(second * SECOND);
        benefit.take(&outcomes);
        all.extend(outcomes);
        if let Some(networks) = benefit.turn() {
            world.router_mut().stand_back(second * SECOND, networks);
        }
    }
    (all, benefit)
}

/// How many times as fast downloads are with help: those that are all helped, those that are not.
/// Sixty of each differ from the next sixty by a third, so there are eight times as many.
fn truth(percent: f64) -> f64 {
    let rate = |control| {
        let all = (100..108).flat_map(|seed| compare(percent, control, 0, seed).0);
        let mut rates: Vec<f64> = all.map(|it| it.bytes as f64 / it.busy as f64).collect();
        assert_eq!(rates.len(), 8 * FLOWS);
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    rate(0) / rate(100)
}

/// The interval of the one network, and the verdict.
fn told(benefit: &Benefit) -> (f64, f64, String) {
    let answer = benefit.json();
    let network = &answer["networks"][0];
    println!("{}", network["sentence"]);
    let end = |at: usize| network["interval"][at].as_f64().unwrap();
    (end(0), end(1), network["verdict"].as_str().unwrap().to_owned())
}

#[test]
fn the_truth_is_in_the_interval_after_sixty_downloads_with_losses() {
    let truth = truth(1.0);
    println!("the truth: {truth:.2}");
    assert!(truth > 1.3, "{truth}");
    let (mut missed, mut helps) = (0, 0);
    for seed in 1..=4 {
        let (outcomes, benefit) = compare(1.0, PERCENT, 0, seed);
        assert_eq!(outcomes.len(), FLOWS);
        let (low, high, verdict) = told(&benefit);
        missed += usize::from(truth < low || truth > high);
        helps += usize::from(verdict == "helps");
        assert!(verdict == "helps" || verdict == "no difference", "{verdict}");
    }
    // One in twenty is to be missed, and where chance has left few alone sixty may be too few.
    assert!(missed <= 1 && helps >= 3, "{missed} missed, {helps} sure of 4");
}

#[test]
fn without_losses_there_is_no_difference() {
    for seed in 1..=2 {
        let (_, benefit) = compare(0.0, PERCENT, 0, seed);
        let (low, high, verdict) = told(&benefit);
        assert!(low <= 1.0 && 1.0 <= high, "{low} {high}");
        assert_eq!(verdict, "no difference");
    }
}

#[test]
fn help_that_harms_is_off_within_sixty_downloads_and_the_log_says_so() {
    log::set_logger(&Lines).unwrap();
    log::set_max_level(LevelFilter::Warn);
    for seed in 1..=3 {
        LINES.lock().unwrap().clear();
        let (outcomes, benefit) = compare(0.0, PERCENT, 40, seed);
        // Those that begin once help is off are of neither kind and tell nothing.
        println!("help was off after {} downloads", outcomes.len());
        assert!(outcomes.len() < FLOWS, "seed {seed}");
        let lines = LINES.lock().unwrap().join("\n");
        assert!(lines.starts_with("br-lan: Help is off: with it downloads were 0."), "{lines}");
        assert!(lines.contains("It is tried again in 24 h."), "{lines}");
        assert_eq!(lines.lines().count(), 1, "{lines}");
        let errors: Vec<String> = benefit.errors().collect();
        assert_eq!(errors.len(), 1, "status and LuCI say it as well: {errors:?}");
        assert_eq!(told(&benefit).2, "stands back");
    }
}
