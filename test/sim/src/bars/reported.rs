// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows on hops of which the access point reports what was lost: well, badly, or not at all.

use pemi_air::settings::Settings;

use super::grid::{ROOMY, case};
use super::{Bar, Case};
use crate::scenario::{ClientKind, CongestionControl, Flow, Reports, Scenario, Wan, Wifi};

/// From the air to the daemon, in the Wi-Fi guest about 0.2 ms.
const SOON: Reports = Reports { lag_ms: 0.2, false_percent: 0.0, missing_percent: 0.0 };
/// Later than the client's replies.
const LATE: Reports = Reports { lag_ms: 1.0, false_percent: 0.0, missing_percent: 0.0 };
/// Later than some packets are apart, and in 4 % of them wrong or not there.
const BAD: Reports = Reports { lag_ms: 1.0, false_percent: 2.0, missing_percent: 2.0 };
/// A driver that does not tell.
const NONE: Reports = Reports { lag_ms: 0.0, false_percent: 0.0, missing_percent: 100.0 };

/// A hop that loses 1 % of frames after four attempts, and says so to the client.
fn one_percent() -> Settings {
    let mut air = Settings::default();
    air.radio.attempts = 4;
    air.link.errors.good = 0.32;
    air
}

/// Each kind of report with each client.
pub fn cases() -> Vec<Case> {
    let clients = [
        ("quinn", ClientKind::Quinn, CongestionControl::Cubic),
        ("quinn, newreno", ClientKind::Quinn, CongestionControl::Newreno),
        ("quic-go", ClientKind::QuicGo, CongestionControl::Cubic),
    ];
    let kinds = [
        ("reported 1 %", SOON, [Bar::OfLossless(0.97), Bar::Unneeded(0.2)]),
        ("badly reported 1 %", BAD, [Bar::OfLossless(0.95), Bar::Unneeded(3.0)]),
        ("unreported 1 %", NONE, [Bar::MeanTimesOff(1.2), Bar::Unneeded(12.0)]),
    ];
    let mut cases = Vec::new();
    for (client, kind, cc) in clients {
        for (name, reports, bars) in &kinds {
            let flow = Flow { bytes: 2_000_000, client: kind, cc, ..Flow::default() };
            let wifi = Wifi {
                air: Some(one_percent()),
                reports: Some(reports.clone()),
                ..Wifi::default()
            };
            let wan = Wan { queue_bdp: ROOMY, ..Wan::default() };
            let scenario = Scenario { wifi, wan, flows: vec![flow], ..Scenario::default() };
            cases.push(case(format!("{name}, {client}"), scenario, bars));
        }
    }
    cases.extend(fast());
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
