// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows on hops of which the access point reports what was lost, or counts it: well, badly, or not
//! at all.

use pemi_air::settings::Settings;

use super::grid::{ROOMY, case};
use super::{Bar, Case};
use crate::scenario::{
    AppKind, ClientKind, CongestionControl, Counts, Flow, Reports, Scenario, Wan, Wifi,
};

/// From the air to the daemon, in the Wi-Fi guest about 0.2 ms.
const SOON: Reports =
    Reports { lag_ms: 0.2, false_percent: 0.0, missing_percent: 0.0, queue: false };
/// Later than the client's replies.
const LATE: Reports = Reports { lag_ms: 1.0, ..SOON };
/// Later than some packets are apart, and in 4 % of them wrong or not there.
const BAD: Reports = Reports { lag_ms: 1.0, false_percent: 2.0, missing_percent: 2.0, ..SOON };
/// A driver that does not tell.
const NONE: Reports = Reports { missing_percent: 100.0, ..SOON };
/// Packets that arrived are called lost, so many percent ...
pub(super) const fn wrong(percent: f64) -> Reports {
    Reports { false_percent: percent, ..SOON }
}
/// ... and so are those that the queue drops, as under mac80211_hwsim.
const QUEUE: Reports = Reports { queue: true, ..SOON };

/// As often as the daemon looks, at counters of which drivers do not say how late they are.
pub(super) const COUNTED: Counts =
    Counts { period_ms: 100.0, lag_ms: 10.0, at_most: false, queue: false };

/// A hop that loses 1 % of frames after four attempts, and says so to the client.
pub(super) fn one_percent() -> Settings {
    let mut air = Settings::default();
    air.radio.attempts = 4;
    air.link.errors.good = 0.32;
    air
}

pub(super) fn scenario(
    air: &Settings,
    reports: Option<Reports>,
    counts: Option<Counts>,
    flow: Flow,
) -> Scenario {
    Scenario {
        wifi: Wifi { air: Some(air.clone()), reports, counts, ..Wifi::default() },
        wan: Wan { queue_bdp: ROOMY, ..Wan::default() },
        flows: vec![flow],
        ..Scenario::default()
    }
}

fn downloads() -> [(&'static str, Flow); 3] {
    let flow = |client, cc| Flow { bytes: 2_000_000, client, cc, ..Flow::default() };
    [
        ("quinn", flow(ClientKind::Quinn, CongestionControl::Cubic)),
        ("quinn, newreno", flow(ClientKind::Quinn, CongestionControl::Newreno)),
        ("quic-go", flow(ClientKind::QuicGo, CongestionControl::Cubic)),
    ]
}

/// Each kind of report and count with each client.
pub fn cases() -> Vec<Case> {
    let counted = || Some(COUNTED);
    let kinds = [
        ("reported 1 %", SOON, None, [Bar::OfLossless(0.97), Bar::Unneeded(0.2)]),
        ("badly reported 1 %", BAD, None, [Bar::OfLossless(0.95), Bar::Unneeded(3.0)]),
        ("unreported 1 %", NONE, None, [Bar::MeanTimesOff(1.2), Bar::Unneeded(12.0)]),
        // Within 2 % of what is asked where reports are true.
        (
            "2 % wrong, counted 1 %",
            wrong(2.0),
            counted(),
            [Bar::OfLossless(0.95), Bar::Unneeded(2.5)],
        ),
        (
            "5 % wrong, counted 1 %",
            wrong(5.0),
            counted(),
            [Bar::OfLossless(0.95), Bar::Unneeded(6.0)],
        ),
    ];
    let mut cases = Vec::new();
    for (client, flow) in downloads() {
        for (name, reports, counts, bars) in &kinds {
            let scenario =
                scenario(&one_percent(), Some(reports.clone()), counts.clone(), flow.clone());
            cases.push(case(format!("{name}, {client}"), scenario, bars));
        }
    }
    cases.extend(fast());
    cases.extend(congested());
    cases.extend(only_counted());
    cases
}

/// Where packets are so close together that replies overtake the reports.
fn fast() -> Vec<Case> {
    let mut cases = Vec::new();
    for (wan_mbit, air_mbit) in [(50.0, 150.0), (100.0, 300.0)] {
        for (client, kind) in [("quinn", ClientKind::Quinn), ("quic-go", ClientKind::QuicGo)] {
            let flow = Flow { bytes: 10_000_000, client: kind, ..Flow::default() };
            let mut air = one_percent();
            air.link.rate_mbit = air_mbit;
            let wifi = Wifi { air: Some(air), reports: Some(LATE), ..Wifi::default() };
            let wan = Wan { rate_mbit: wan_mbit, queue_bdp: ROOMY, ..Wan::default() };
            let scenario = Scenario { wifi, wan, flows: vec![flow], ..Scenario::default() };
            let name = format!("reported late 1 %, {wan_mbit} Mbit/s, {client}");
            cases.push(case(name, scenario, &[Bar::OfLossless(0.9), Bar::Unneeded(0.2)]));
        }
    }
    cases
}

/// Queues in front of the radio whose drops are reported as if the air had lost them.
fn congested() -> Vec<Case> {
    let far = Settings::preset("far").expect("a preset of test/air");
    let mut cases = Vec::new();
    for (client, flow) in downloads() {
        let scenario = scenario(&far, Some(QUEUE), Some(COUNTED), flow);
        // Of cuts there are so few that 40 seeds scatter by as much (120 of them: 0.07 at most).
        let bars = [Bar::MeanTimesOff(0.98), Bar::HopDelay(1.05), Bar::CongestionEvents(0.2)];
        cases.push(case(format!("queue reported, far, {client}"), scenario, &bars));
    }
    cases
}

/// Nothing is reported, but what was lost is counted: no harm on any preset, few needless copies;
/// and as much help as without counts where losses are many.
fn only_counted() -> Vec<Case> {
    let harmless = [Bar::MeanTimesOff(0.98), Bar::Unneeded(3.0)];
    let presets = Settings::presets().into_iter().map(|(name, air)| (name, air, harmless));
    let as_inferred = [Bar::MeanTimesOff(1.2), Bar::Unneeded(8.0)];
    let lossy = ("1 %".to_owned(), one_percent(), as_inferred);
    let mut cases = Vec::new();
    for (preset, air, bars) in presets.chain([lossy]) {
        for (client, flow) in downloads() {
            let scenario = scenario(&air, None, Some(COUNTED), flow);
            cases.push(case(format!("counted {preset}, {client}"), scenario, &bars));
        }
        let flow =
            Flow { app: AppKind::Call, seconds: 5.0, fps: 30.0, kbps: 3_000.0, ..Flow::default() };
        let scenario = scenario(&air, None, Some(COUNTED), flow);
        let bars = [Bar::FrameDelayTimesOff(1.02)];
        cases.push(case(format!("counted {preset}, call"), scenario, &bars));
    }
    cases
}
