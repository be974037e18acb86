// SPDX-License-Identifier: GPL-2.0-or-later
//! What is asked of exact repair in `test/wifi`, where the access point is imprecise: counters are
//! 10 ms late, and of what arrived 2 % are called lost. It may cost 2 % of what is asked there.
//! TCP is not among them: its stack is in `test/wifi` only.

use pemi_air::settings::Settings;

use super::grid::case;
use super::reported::{self, COUNTED, one_percent, wrong};
use super::{Bar, Case};
use crate::scenario::{AppKind, ClientKind, Counts, Flow, Scenario};

/// Called lost of what arrived, percent.
const FALSE: f64 = 2.0;
/// Each of them is sent again for nothing, and hardly anything else.
const UNNEEDED: Bar = Bar::Unneeded(2.5);

/// All of them.
pub fn cases() -> Vec<Case> {
    [downloads(), calls(), fast(), at_most()].into_iter().flatten().collect()
}

fn scenario(air: &Settings, flow: Flow) -> Scenario {
    reported::scenario(air, Some(wrong(FALSE)), Some(COUNTED), flow)
}

fn preset(name: &str) -> Settings {
    Settings::preset(name).expect("a preset of test/air")
}

fn download(bytes: u64) -> Flow {
    Flow { bytes, ..Flow::default() }
}

/// A call; one of few frames leaves a client time to fall asleep.
fn call(fps: f64, kbps: f64) -> Flow {
    Flow { app: AppKind::Call, seconds: 5.0, fps, kbps, ..Flow::default() }
}

fn name(air: &str, what: &str) -> String {
    format!("late counts, {FALSE} % wrong, {air}, {what}")
}

fn downloads() -> Vec<Case> {
    let mut cases = Vec::new();
    for (air, bar) in [
        ("lossy3", Bar::OfLossless(0.95)),
        ("lossy5", Bar::OfLossless(0.95)),
        ("bursts", Bar::OfLossless(0.93)),
        ("poor-no-bar", Bar::MeanTimesOff(1.76)),
        ("clean", Bar::MeanTimesOff(0.98)),
        ("roam", Bar::MeanTimesOff(0.96)),
        ("sleepy", Bar::MeanTimesOff(0.96)),
        ("busy", Bar::MeanTimesOff(0.96)),
    ] {
        let scenario = scenario(&preset(air), download(3_000_000));
        cases.push(case(name(air, "quinn"), scenario, &[bar, UNNEEDED]));
    }
    cases
}

fn calls() -> Vec<Case> {
    let mut cases = Vec::new();
    for (air, flow) in
        [("roam", call(30.0, 3_000.0)), ("sleepy", call(4.0, 400.0)), ("busy", call(30.0, 3_000.0))]
    {
        let bars = [Bar::FrameDelayTimesOff(1.02)];
        cases.push(case(name(air, "call"), scenario(&preset(air), flow), &bars));
    }
    let scenario = scenario(&one_percent(), call(30.0, 3_000.0));
    cases.push(case(name("1 %", "call"), scenario, &[Bar::FrameDelay(5.1)]));
    cases
}

fn fast() -> Vec<Case> {
    let mut cases = Vec::new();
    for (wan_mbit, air_mbit, of_lossless) in [(50.0, 150.0, 0.95), (100.0, 300.0, 0.88)] {
        for (client, kind) in [("quinn", ClientKind::Quinn), ("quic-go", ClientKind::QuicGo)] {
            let mut air = one_percent();
            air.link.rate_mbit = air_mbit;
            let mut scenario = scenario(&air, Flow { client: kind, ..download(10_000_000) });
            scenario.wan.rate_mbit = wan_mbit;
            let name = name(&format!("1 %, {wan_mbit} Mbit/s"), client);
            cases.push(case(name, scenario, &[Bar::OfLossless(of_lossless), UNNEEDED]));
        }
    }
    cases
}

/// A driver that tells at most what was lost, and reports nothing (WED).
fn at_most() -> Vec<Case> {
    let mut cases = Vec::new();
    let counts = || Some(Counts { at_most: true, ..COUNTED });
    let counted = |air: &Settings, flow| reported::scenario(air, None, counts(), flow);
    let lossy = [Bar::MeanTimesOff(1.2), Bar::Unneeded(8.0)];
    let harmless = [Bar::MeanTimesOff(0.98), Bar::Unneeded(3.0)];
    for (air, settings, bars) in [
        ("1 %", one_percent(), lossy),
        ("poor", preset("poor"), harmless),
        ("roam", preset("roam"), harmless),
        ("far", preset("far"), harmless),
    ] {
        let scenario = counted(&settings, download(2_000_000));
        cases.push(case(format!("at most counted {air}, quinn"), scenario, &bars));
    }
    let scenario = counted(&one_percent(), call(30.0, 3_000.0));
    let bars = [Bar::FrameDelayTimesOff(1.02)];
    cases.push(case("at most counted 1 %, call".into(), scenario, &bars));
    cases
}
