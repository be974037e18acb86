// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows about senders whose controllers are not quinn's own: a slow start that ends when round trips
//! become longer, BBRv3, CUBIC that takes cuts back, and first flights that are larger than others.

use super::grid::{case, percent};
use super::{Bar, Case};
use crate::scenario::{ClientKind, CongestionControl, Flow, Scenario, Wan, Wifi};

/// Packets in the first flight of a sender that heeds losses all the same.
const LARGE: u64 = 100;
/// A packet number is left out after so many on average (quiche: half of the window to two of them, and twenty
/// more; of one of 110 packets).
const SKIPS_EVERY: u64 = 160;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let clients = [("quinn", ClientKind::Quinn), ("quic-go", ClientKind::QuicGo)];
    for (name, client) in clients {
        let flow = Flow { client, cc: CongestionControl::Hystart, ..Flow::default() };
        let title = format!("clean hop, HyStart to {name}, 50 Mbit/s");
        let bars = [Bar::TimesOff(0.99), Bar::MeanTimesOff(0.99)];
        cases.push(case(title, scenario(flow, 50.0, 0.0), &bars));
    }
    let hystart = Flow { cc: CongestionControl::Hystart, ..Flow::default() };
    let bars = [Bar::OfLossless(0.95), Bar::OfLosslessP10(0.9)];
    cases.push(case("HyStart, 1 %".into(), scenario(hystart, 10.0, 1.0), &bars));
    for loss in [0.0, 1.0] {
        let flow = Flow { cc: CongestionControl::Bbr3, ..Flow::default() };
        let bars = [Bar::TimesOff(0.99), Bar::WanDrops(0.10)];
        cases.push(case(format!("bbr3, {loss} %"), scenario(flow, 10.0, loss), &bars));
    }
    for rate_mbit in [10.0, 50.0] {
        let title = format!("cuts taken back, {rate_mbit} Mbit/s 1 %");
        let bars = [Bar::TimesOff(0.98), Bar::MeanTimesOff(0.98)];
        cases.push(case(title, takes_back(rate_mbit), &bars));
    }
    for megabytes in [5, 20] {
        let bytes = megabytes * 1_000_000;
        let flow = Flow { bytes, first_flight: LARGE, ..Flow::default() };
        let title = format!("cubic, first flight of {LARGE}, {megabytes} MB 1 %");
        cases.push(case(title, scenario(flow, 10.0, 1.0), &[Bar::MeanTimesOff(1.3)]));
    }
    cases
}

/// quiche at both ends, and a hop that is a third of the path.
fn takes_back(rate_mbit: f64) -> Scenario {
    let flow = Flow {
        bytes: (rate_mbit * 400_000.0) as u64,
        client: ClientKind::Every1,
        cc: CongestionControl::Rollback,
        skips_every: SKIPS_EVERY,
        ..Flow::default()
    };
    let path = scenario(flow, rate_mbit, 1.0);
    Scenario {
        wifi: Wifi { delay_ms: 4.0, ..path.wifi },
        wan: Wan { delay_ms: 7.0, ..path.wan },
        ..path
    }
}

/// A WAN of this rate with a queue of one product of rate and round trip, and a hop twice as fast.
fn scenario(flow: Flow, rate_mbit: f64, loss: f64) -> Scenario {
    let (loss_down, loss_up) = (percent(loss), percent(loss));
    Scenario {
        wifi: Wifi { rate_mbit: 2.0 * rate_mbit, loss_down, loss_up, ..Wifi::default() },
        wan: Wan { rate_mbit, queue_bdp: 1.0, ..Wan::default() },
        flows: vec![flow],
        ..Scenario::default()
    }
}
