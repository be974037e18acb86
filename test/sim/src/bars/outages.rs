// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows about a hop that is away for a time and loses everything meanwhile, copies too.

use super::grid::{call, case};
use super::{Bar, Case};
use crate::scenario::{ClientKind, CongestionControl, Flow, LossModel, Scenario, Wifi};

/// Gilbert-Elliott of the experiment pemi-cellular, percent: 12.5 packets in a row, one in a hundred.
const BURSTS: [f64; 4] = [0.08, 8.0, 100.0, 0.0];
/// From one outage to the next and how long one lasts, ms, and how many times the goodput without
/// help is asked for: a hop that is away for a second carries nothing in it, whoever helps.
const OUTAGES: [(f64, f64, f64); 4] =
    [(1000.0, 50.0, 1.15), (3000.0, 200.0, 1.02), (5000.0, 500.0, 1.02), (10_000.0, 1000.0, 1.02)];
/// Losses that a sender may be told of, percent; without help it is told of all.
const TOLD: f64 = 50.0;
/// The 99th percentile of a call's frame delays as a part of that without help.
const CALL: f64 = 0.83;

/// Downloads and calls over each kind of outage.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (stack, client, cc) in [
        ("quinn", ClientKind::Quinn, CongestionControl::Cubic),
        ("quic-go", ClientKind::QuicGo, CongestionControl::Newreno),
    ] {
        let download = Flow { bytes: 20_000_000, client, cc, ..Flow::default() };
        let talk = Flow { client, cc, seconds: 30.0, ..call(false) };
        let bursts = LossModel::Gemodel(BURSTS);
        let mut one_way = scenario(bursts.clone(), &download);
        one_way.wifi.loss_up = LossModel::None;
        let bars = [Bar::OfLossless(0.9), Bar::Told(TOLD)];
        cases.push(case(format!("outages of 12.5 packets one way, {stack}"), one_way, &bars));
        let both = scenario(bursts, &download);
        let bars = [Bar::MeanTimesOff(0.98)];
        cases.push(case(format!("outages of 12.5 packets, {stack}"), both, &bars));
        for (gap, length, times) in OUTAGES {
            let outages = LossModel::Outages([gap, length]);
            let title = format!("outages of {length} ms, {stack}");
            let bars = [Bar::TimesOff(times), Bar::Told(TOLD)];
            cases.push(case(title.clone(), scenario(outages.clone(), &download), &bars));
            let bars = [Bar::FrameDelayTimesOff(CALL)];
            cases.push(case(format!("{title}, call"), scenario(outages, &talk), &bars));
        }
    }
    cases
}

fn scenario(loss: LossModel, flow: &Flow) -> Scenario {
    Scenario {
        wifi: Wifi { loss_down: loss.clone(), loss_up: loss, ..Wifi::default() },
        flows: vec![flow.clone()],
        ..Scenario::default()
    }
}
