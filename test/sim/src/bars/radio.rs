// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows on the presets of `test/air`: what a hop with block ack, retries, sleep and
//! roaming does, where help must at least do no harm.

use pemi_air::settings::Settings;

use super::grid::{CONTROLS, ROOMY, case, name};
use super::{Bar, Case};
use crate::scenario::{AppKind, ClientKind, CongestionControl, Flow, Scenario, Wan, Wifi};

/// Help that costs more than this is harm.
const NO_HARM: f64 = 0.98;

/// Every preset with every sender, quic-go's client, and a call.
pub fn cases() -> Vec<Case> {
    let presets = Settings::presets().into_iter().chain([one_percent()]);
    presets
        .flat_map(|(preset, air)| cases_of(&preset, &air))
        .chain(held_up())
        .chain(retried())
        .collect()
}

/// Downloads over a hop that loses 1 % after four attempts, behind which all that follows waits: what
/// can be inferred of that.
fn held_up() -> Vec<Case> {
    let (_, mut air) = one_percent();
    air.radio.bar = true;
    let mut cases = Vec::new();
    let often = Bar::OfLossless(0.85);
    // Of two in five of their losses senders learn, so that some downloads are helped and others hardly.
    let rarely = Bar::MeanTimesOff(1.5);
    for (client, kind, bar) in [
        ("quinn", ClientKind::Quinn, often),
        ("quic-go", ClientKind::QuicGo, often),
        ("every packet", ClientKind::Every1, often),
        ("every 10th", ClientKind::Every10, rarely),
        ("Chromium", ClientKind::Chromium, rarely),
    ] {
        for (wan_mbit, air_mbit, bar) in [(10.0, 65.0, bar), (20.0, 150.0, Bar::MeanTimesOff(2.0))]
        {
            air.link.rate_mbit = air_mbit;
            let wifi = Wifi { air: Some(air.clone()), ..Wifi::default() };
            let wan = Wan { rate_mbit: wan_mbit, queue_bdp: ROOMY, ..Wan::default() };
            let flow = Flow { bytes: 5_000_000, client: kind, ..Flow::default() };
            let scenario = Scenario { wifi, wan, flows: vec![flow], ..Scenario::default() };
            let name = format!("held up 1 %, {wan_mbit} Mbit/s, {client}");
            cases.push(case(name, scenario, &[bar, Bar::Unneeded(8.0)]));
        }
    }
    cases
}

/// Downloads over a hop that loses nothing, as it tries again what fails: replies of one size come late
/// for that, and nothing else about them tells of losses.
fn retried() -> Vec<Case> {
    let mut air = Settings::default();
    air.radio.attempts = 8;
    air.link.errors.good = 0.1;
    air.link.rate_mbit = 65.0;
    let case_of = |(client, kind)| {
        let wifi = Wifi { air: Some(air.clone()), ..Wifi::default() };
        let wan = Wan { queue_bdp: ROOMY, ..Wan::default() };
        let flow = Flow { bytes: 5_000_000, client: kind, ..Flow::default() };
        let scenario = Scenario { wifi, wan, flows: vec![flow], ..Scenario::default() };
        let bars = [Bar::MeanTimesOff(0.995), Bar::Unneeded(4.0)];
        case(format!("10 % tried again, nothing lost, {client}"), scenario, &bars)
    };
    let clients = [
        ("padded", ClientKind::Padded),
        ("every 4th", ClientKind::Every4),
        ("s2n-quic", ClientKind::S2n),
    ];
    clients.map(case_of).into()
}

/// A hop that loses 1 % after four attempts at random and sends no requests, as no radio
/// does: on it the daemon once made downloads slower by a third.
fn one_percent() -> (String, Settings) {
    let mut air = Settings::default();
    air.radio.attempts = 4;
    air.radio.bar = false;
    air.link.errors.good = 0.32;
    ("1 %, no BAR".to_owned(), air)
}

fn cases_of(preset: &str, air: &Settings) -> Vec<Case> {
    let scenario = |flow| Scenario {
        wifi: Wifi { air: Some(air.clone()), ..Wifi::default() },
        wan: Wan { queue_bdp: ROOMY, ..Wan::default() },
        flows: vec![flow],
        ..Scenario::default()
    };
    let download = |cc| Flow {
        bytes: if preset == "clean" { 5_000_000 } else { 2_000_000 },
        cc,
        ..Flow::default()
    };
    // A download keeps a client awake: beyond one of them only the call tells of sleep.
    let sleeps = air.sleep.is_some();
    let mut cases = Vec::new();
    for cc in &CONTROLS[..if sleeps { 1 } else { CONTROLS.len() }] {
        let mut bars = vec![Bar::MeanTimesOff(NO_HARM)];
        if preset == "clean" {
            bars = vec![Bar::MeanTimesOff(0.995), Bar::Unneeded(1.0)];
        }
        cases.push(case(format!("air {preset}, {}", name(*cc)), scenario(download(*cc)), &bars));
    }
    if !sleeps {
        let client = ClientKind::QuicGo;
        let flow = Flow { client, ..download(CongestionControl::Cubic) };
        let bars = [Bar::MeanTimesOff(NO_HARM)];
        cases.push(case(format!("air {preset}, quic-go"), scenario(flow), &bars));
    }
    // Four frames a second leave a client time to fall asleep.
    let (fps, kbps) = if sleeps { (4.0, 400.0) } else { (30.0, 3_000.0) };
    let flow = Flow { app: AppKind::Call, seconds: 5.0, fps, kbps, ..Flow::default() };
    let bars = [Bar::FrameDelayTimesOff(1.02)];
    cases.push(case(format!("air {preset}, call"), scenario(flow), &bars));
    cases
}
