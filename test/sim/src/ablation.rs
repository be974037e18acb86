// SPDX-License-Identifier: GPL-2.0-or-later
//! What each of the engine's rules is worth: the goodput and the needless copies
//! of a few telling scenarios, with one rule switched off at a time.

use indicatif::ProgressBar;
use pemi_air::settings::Settings;
use pemi_engine::Rule;
use serde::Serialize;

use crate::report::spread;
use crate::run::{Assist, Outcome, run_all};
use crate::scenario::{
    AppKind, ClientKind, CongestionControl, Flow, LossModel, Scenario, Wan, Wifi,
};

/// What came out of one scenario with one rule switched off.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The scenario.
    pub scenario: &'static str,
    /// The rule that is off; none in the first row.
    pub without: Option<&'static str>,
    /// Goodput, Mbit/s: median and 10th percentile. Of a call its frame delay's
    /// p99 in ms: median and 90th percentile.
    pub value: [f64; 2],
    /// Copies that were not needed, percent of packets to the client.
    pub unneeded_percent: f64,
    /// Drops before the router, a run.
    pub wan_dropped: f64,
}

/// The scenarios, by the names of the columns.
pub fn scenarios() -> Vec<(&'static str, Scenario)> {
    let train = |loss: f64, flow: Flow| Scenario {
        wifi: Wifi {
            loss_down: LossModel::Percent(loss),
            loss_up: LossModel::Percent(loss),
            ..Wifi::default()
        },
        wan: Wan { queue_bdp: 4.0, ..Wan::default() },
        flows: vec![flow],
        ..Scenario::default()
    };
    let megabytes = |bytes: u64| Flow { bytes: bytes * 1_000_000, ..Flow::default() };
    let newreno = Flow { cc: CongestionControl::Newreno, ..megabytes(5) };
    let mut slow = train(1.0, megabytes(5));
    slow.wifi.delay_ms = 5.0;
    let mut bursts = train(0.0, megabytes(5));
    bursts.wifi.loss_down = LossModel::Gemodel([0.68, 100.0 / 3.0, 100.0, 0.0]);
    bursts.wifi.loss_up = bursts.wifi.loss_down.clone();
    let chromium = Flow { client: ClientKind::Chromium, ..megabytes(5) };
    let radio = |preset, flow: Flow| {
        let mut scenario = train(0.0, Flow { bytes: 2_000_000, ..flow });
        scenario.wifi.air = Some(Settings::preset(preset).expect("it is one of the presets"));
        scenario
    };
    let bbr = Flow { cc: CongestionControl::Bbr, ..megabytes(5) };
    let quic_go = Flow { client: ClientKind::QuicGo, ..Flow::default() };
    let call = |two_way| Flow { app: AppKind::Call, seconds: 20.0, two_way, ..Flow::default() };
    vec![
        ("clean 1 MB", train(0.0, megabytes(1))),
        ("1 MB 1 %", train(1.0, megabytes(1))),
        ("5 MB 1 %", train(1.0, newreno.clone())),
        ("5 MB 5 %", train(5.0, newreno)),
        ("RTT 10 ms", slow),
        ("bursts", bursts),
        ("Chromium", train(2.0, chromium)),
        ("BBR 0 %", train(0.0, bbr)),
        ("call 1 %", train(1.0, call(false))),
        ("two-way call", train(1.0, call(true))),
        ("air crowded", radio("crowded", quic_go)),
        ("air poor, call", radio("poor", Flow { seconds: 5.0, ..call(false) })),
    ]
}

/// Runs them all.
pub fn run(seeds: u64, progress: impl Fn(usize) -> ProgressBar) -> anyhow::Result<Vec<Cell>> {
    let mut cells = Vec::new();
    let rules = Rule::ALL.iter().map(|(_, name)| Some(*name));
    for without in std::iter::once(None).chain(rules) {
        for (name, mut scenario) in scenarios() {
            scenario.engine.without = without.iter().map(|rule| rule.to_string()).collect();
            cells.push((name, without, scenario));
        }
    }
    let jobs: Vec<_> = cells
        .iter()
        .flat_map(|(_, _, scenario)| (1..=seeds).map(move |seed| (scenario, Assist::On, seed)))
        .collect();
    let bar = progress(jobs.len());
    let outcomes = run_all(&jobs, &bar)?;
    bar.finish_and_clear();
    let runs = outcomes.chunks(seeds as usize);
    Ok(cells
        .iter()
        .zip(runs)
        .map(|((name, without, _), runs)| cell(name, *without, runs))
        .collect())
}

fn cell(scenario: &'static str, without: Option<&'static str>, runs: &[Outcome]) -> Cell {
    let flows = || runs.iter().map(|run| &run.flows[0]);
    let sum = |value: fn(&crate::truth::Inference) -> u64| {
        flows().map(|flow| value(&flow.inference)).sum::<u64>() as f64
    };
    let goodput = spread(flows().map(|flow| flow.goodput_mbps));
    // The worst tenth of delays are the long ones.
    let delays = spread(flows().filter_map(|flow| Some(-flow.frame_delay_ms?.p99)));
    let call = flows().any(|flow| flow.frame_delay_ms.is_some());
    let copies = sum(|inference| inference.copies);
    let needless = copies - sum(|inference| inference.copies_needed);
    let packets = sum(|inference| inference.packets);
    let value = if call { [-delays.median, -delays.p10] } else { [goodput.median, goodput.p10] };
    Cell {
        scenario,
        without,
        value: value.map(|value| (value * 100.0).round() / 100.0),
        unneeded_percent: (10_000.0 * needless / (packets + copies).max(1.0)).round() / 100.0,
        wan_dropped: flows().map(|flow| flow.wan_dropped as f64).sum::<f64>() / runs.len() as f64,
    }
}

/// The cells as a Markdown table: median / 10th percentile, needless percent.
pub fn table(cells: &[Cell]) -> String {
    let columns: Vec<_> = scenarios().into_iter().map(|(name, _)| name).collect();
    let mut text =
        format!("| without | {} |\n|---|{}\n", columns.join(" | "), "---|".repeat(columns.len()));
    for row in cells.chunks(columns.len()) {
        text += &format!("| {} |", row[0].without.unwrap_or("(all rules on)"));
        for cell in row {
            let [median, p10] = cell.value;
            text += &match cell.scenario {
                "BBR 0 %" => format!(" {median:.2}, {:.0} drops |", cell.wan_dropped),
                "clean 1 MB" => format!(" {median:.2}, {:.1} % |", cell.unneeded_percent),
                _ => format!(" {median:.2} / {p10:.2}, {:.1} % |", cell.unneeded_percent),
            };
        }
        text += "\n";
    }
    text
}
