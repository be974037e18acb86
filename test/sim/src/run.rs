// SPDX-License-Identifier: GPL-2.0-or-later
//! One run of a scenario and what came out of it; many runs in parallel.

use anyhow::Context;
use indicatif::ProgressBar;
use linkem::Nanos;
use pemi_air::settings::Settings as Air;
use pemi_engine::{Config, Rule, Rules};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::endpoint::Progress;
use crate::scenario::{AppKind, Directions, Flow, LossModel, Scenario, ms};
use crate::truth::{Fate, Inference, Truth};
use crate::tunables;
use crate::world::{FlowOutcome, World};

/// How a scenario is run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Assist {
    /// As it is, without help.
    Off,
    /// With the engine.
    On,
    /// Without help and without losses on the Wi-Fi, or, where both directions are
    /// helped, on the WAN on the way up: the ceiling.
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
    /// Those that count, in the scenario's order.
    pub flows: Vec<FlowResult>,
    /// Packets that were held.
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
    /// Of those that the client sent in a two-way call.
    pub frame_delay_up_ms: Option<Percentiles>,
    /// The sender's congestion events.
    pub congestion_events: u64,
    /// Packets that the sender took for lost.
    pub lost_packets: u64,
    /// Of these, those beyond what was dropped before the router: losses of the hop that the
    /// sender was told of, and what it took for lost though it was not.
    pub told: u64,
    /// Packets dropped or lost before the router.
    pub wan_dropped: u64,
    /// Datagrams of the client.
    pub up_packets: u64,
    /// From the router's sending to the client, 95th percentile, ms.
    pub hop_delay_p95_ms: f64,
    /// The engine's work against the truth.
    pub inference: Inference,
    /// The same for the packets that the client sent, on the WAN.
    pub inference_up: Inference,
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
        tunables: tunables::read(&scenario.tunables)?,
        both_directions: scenario.engine.direction == Directions::Both,
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
        scenario.wifi.air = scenario.wifi.air.map(Air::without_loss);
        if scenario.engine.direction == Directions::Both {
            scenario.wan.loss_up = LossModel::None;
        }
    }
    scenario
}

/// One run.
pub fn run(scenario: &Scenario, assist: Assist, seed: u64) -> anyhow::Result<Outcome> {
    let scenario = arrange(scenario, assist);
    let mut world = World::new(&scenario, config(&scenario)?, seed)?;
    let end = world.run();
    let path = ms(2.0 * (scenario.wan.delay_ms + scenario.wifi.delay_ms));
    // The sender notices when the loss is back at its end, and repairs it from there.
    let path_up = ms(3.0 * scenario.wan.delay_ms + 2.0 * scenario.wifi.delay_ms);
    let paths = (path, path_up);
    let flows = world.outcomes().zip(&scenario.flows).filter(|(_, flow)| flow.counted);
    Ok(Outcome {
        seed,
        assist,
        end_s: end as f64 / 1e9,
        flows: flows.map(|(outcome, flow)| result(&outcome, flow, end, paths)).collect(),
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

fn result(
    outcome: &FlowOutcome<'_>,
    flow: &Flow,
    end: Nanos,
    (path, path_up): (Nanos, Nanos),
) -> FlowResult {
    let client = outcome.client.progress();
    let server = outcome.server.progress();
    let app = flow.app();
    let (sender, receiver) = if app.is_upload() { (&client, &server) } else { (&server, &client) };
    let finish = receiver.done_at.unwrap_or(end);
    let seconds = finish.saturating_sub(outcome.start) as f64 / 1e9;
    let bytes = receiver.bytes.min(app.bytes());
    FlowResult {
        goodput_mbps: if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 },
        fct_s: receiver.done_at.map(|_| seconds),
        frame_delay_ms: (flow.app == AppKind::Call).then(|| frames(&client, flow, end)),
        frame_delay_up_ms: (flow.app == AppKind::Call && flow.two_way)
            .then(|| frames(&server, flow, end)),
        congestion_events: sender.congestion_events,
        lost_packets: sender.lost_packets,
        told: sender.lost_packets.saturating_sub(outcome.wan_dropped),
        wan_dropped: outcome.wan_dropped,
        up_packets: outcome.up_packets,
        hop_delay_p95_ms: hop_delay(outcome.truth),
        inference: outcome.truth.score(path),
        inference_up: outcome.uplink.score(path_up),
    }
}

fn frames(receiver: &Progress, flow: &Flow, end: Nanos) -> Percentiles {
    let expected = (flow.seconds * flow.fps).round() as usize;
    let mut delays = receiver.frame_delays.clone();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix;

    fn upload(assist: Assist, seed: u64, loss: &str) -> FlowResult {
        let loss = format!("wan.loss_up.percent={loss}");
        let text = include_str!("../scenarios/upload.toml");
        let scenario = matrix::parse(text, &[loss, "flow.bytes=3000000".into()]).unwrap();
        run(&scenario, assist, seed).unwrap().flows.remove(0)
    }

    #[test]
    fn an_upload_is_repaired_beyond_the_router() {
        let (mut off, mut on) = (0.0, 0.0);
        // Eight are too few: their mean fell below the bound by a change that did not move the
        // median of forty.
        for seed in 1..=24 {
            off += upload(Assist::Off, seed, "1.0").goodput_mbps;
            let helped = upload(Assist::On, seed, "1.0");
            on += helped.goodput_mbps;
            assert!(helped.fct_s.is_some());
        }
        assert!(on > 1.15 * off, "{on} with, {off} without");
    }

    #[test]
    fn an_upload_that_loses_nothing_is_left_alone() {
        for seed in 1..=3 {
            let helped = upload(Assist::On, seed, "0.0");
            assert_eq!(helped.inference_up.copies, 0);
            let alone = upload(Assist::Off, seed, "0.0").goodput_mbps;
            assert!((helped.goodput_mbps - alone).abs() < 0.002 * alone);
        }
    }

    #[test]
    fn only_quinn_uploads() {
        let changes = ["flow.client=chromium".to_string()];
        let scenario = matrix::parse(include_str!("../scenarios/upload.toml"), &changes).unwrap();
        assert!(run(&scenario, Assist::Off, 1).unwrap_err().to_string().contains("upload"));
    }
}
