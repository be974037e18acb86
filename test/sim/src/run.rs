//! One run of a scenario and what came out of it; many runs in parallel.

use anyhow::Context;
use indicatif::ProgressBar;
use linkem::Nanos;
use pemi_engine::{Config, Rule, Rules};
use rayon::prelude::*;
use serde::Serialize;

use crate::endpoint::Progress;
use crate::scenario::{AppKind, Flow, LossModel, Scenario, ms};
use crate::truth::{Fate, Inference, Truth};
use crate::world::{FlowOutcome, World};

/// How a scenario is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Assist {
    /// As it is, without help.
    Off,
    /// With the engine.
    On,
    /// Without help and without losses on the Wi-Fi: the ceiling.
    Lossless,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The run's seed.
    pub seed: u64,
    /// How it was run.
    pub assist: Assist,
    /// Virtual time at the end, seconds.
    pub end_s: f64,
    /// In the scenario's order.
    pub flows: Vec<FlowResult>,
    /// Client packets that were held.
    pub held: u64,
    /// Episodes of holding that a deadline ended.
    pub held_late: u64,
}

/// What a flow came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowResult {
    /// From the client's first packet to the last byte, or to the end of the run.
    pub goodput_mbps: f64,
    /// Seconds for it, if it came to an end.
    pub fct_s: Option<f64>,
    /// Delays of a call's frames, ms.
    pub frame_delay_ms: Option<Percentiles>,
    /// The sender's congestion events.
    pub congestion_events: u64,
    /// Packets that the sender took for lost.
    pub lost_packets: u64,
    /// Packets dropped or lost before the router.
    pub wan_dropped: u64,
    /// Datagrams of the client.
    pub up_packets: u64,
    /// From the router's sending to the client, 95th percentile, ms.
    pub hop_delay_p95_ms: f64,
    /// The engine's work against the truth.
    pub inference: Inference,
}

/// Percentiles; a frame that never came counts as the longest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[expect(missing_docs)]
pub struct Percentiles {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    /// Frames that never came.
    pub missing: u64,
}

/// The engine's settings in a scenario.
pub fn config(scenario: &Scenario) -> anyhow::Result<Config> {
    let mut without = Rules::default();
    for name in &scenario.engine.without {
        let known = Rule::ALL.iter().find(|(_, known)| known == name);
        let (rule, _) = known.with_context(|| {
            let names: Vec<_> = Rule::ALL.iter().map(|(_, name)| *name).collect();
            format!("engine.without: '{name}' is none of {}", names.join(", "))
        })?;
        without = without.with(*rule);
    }
    Ok(Config {
        resend_percent: scenario.engine.resend_percent,
        conceal: scenario.engine.conceal,
        without,
        ..Config::default()
    })
}

/// The scenario as it is run with this assistance.
pub fn arrange(scenario: &Scenario, assist: Assist) -> Scenario {
    let mut scenario = scenario.clone();
    if assist != Assist::On {
        scenario.flows.iter_mut().for_each(|flow| flow.helped = false);
    }
    if assist == Assist::Lossless {
        scenario.wifi.loss_down = LossModel::None;
        scenario.wifi.loss_up = LossModel::None;
    }
    scenario
}

/// One run.
pub fn run(scenario: &Scenario, assist: Assist, seed: u64) -> anyhow::Result<Outcome> {
    let scenario = arrange(scenario, assist);
    let mut world = World::new(&scenario, config(&scenario)?, seed)?;
    let end = world.run();
    let path = ms(2.0 * (scenario.wan.delay_ms + scenario.wifi.delay_ms));
    let flows = world.outcomes().zip(&scenario.flows);
    Ok(Outcome {
        seed,
        assist,
        end_s: end as f64 / 1e9,
        flows: flows.map(|(outcome, flow)| result(&outcome, flow, end, path)).collect(),
        held: world.router().held_total,
        held_late: world.router().stats(end).concealed_late,
    })
}

/// All runs of several scenarios, on all cores; the results are in order.
pub fn run_all(
    jobs: &[(&Scenario, Assist, u64)],
    progress: &ProgressBar,
) -> anyhow::Result<Vec<Outcome>> {
    jobs.par_iter()
        .map(|(scenario, assist, seed)| {
            let outcome = run(scenario, *assist, *seed)
                .with_context(|| format!("run of seed {seed} with assistance {assist:?}"));
            progress.inc(1);
            outcome
        })
        .collect()
}

fn result(outcome: &FlowOutcome<'_>, flow: &Flow, end: Nanos, path: Nanos) -> FlowResult {
    let client = outcome.client.progress();
    let server = outcome.server.progress();
    let finish = client.done_at.unwrap_or(end);
    let seconds = finish.saturating_sub(outcome.start) as f64 / 1e9;
    let bytes = client.bytes.min(flow.app().bytes());
    FlowResult {
        goodput_mbps: if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 },
        fct_s: client.done_at.map(|_| seconds),
        frame_delay_ms: (flow.app == AppKind::Call).then(|| frames(&client, flow, end)),
        congestion_events: server.congestion_events,
        lost_packets: server.lost_packets,
        wan_dropped: outcome.wan_dropped,
        up_packets: outcome.up_packets,
        hop_delay_p95_ms: hop_delay(outcome.truth),
        inference: outcome.truth.score(path),
    }
}

fn frames(client: &Progress, flow: &Flow, end: Nanos) -> Percentiles {
    let expected = (flow.seconds * flow.fps).round() as usize;
    let mut delays = client.frame_delays.clone();
    let missing = expected.saturating_sub(delays.len());
    delays.resize(delays.len() + missing, end);
    let at = |percent| percentile(&mut delays.clone(), percent) as f64 / 1e6;
    Percentiles { p50: at(50), p90: at(90), p99: at(99), missing: missing as u64 }
}

fn hop_delay(truth: &Truth) -> f64 {
    let mut delays: Vec<Nanos> = truth
        .packets
        .iter()
        .flatten()
        .filter_map(|transmission| match transmission.fate {
            Fate::Arrived(at) => Some(at - transmission.at),
            _ => None,
        })
        .collect();
    percentile(&mut delays, 95) as f64 / 1e6
}

/// The nearest rank; 0 of nothing.
fn percentile(values: &mut [Nanos], percent: usize) -> Nanos {
    let Some(rank) = (values.len() * percent).div_ceil(100).checked_sub(1) else { return 0 };
    *values.select_nth_unstable(rank).1
}
