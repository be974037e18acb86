// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows about senders whose controllers are not quinn's own: a slow start that ends when round trips
//! become longer, BBRv3, and first flights that are larger than others.

use super::grid::{case, percent};
use super::{Bar, Case};
use crate::scenario::{ClientKind, CongestionControl, Flow, Scenario, Wan, Wifi};

/// Packets in the first flight of a sender that heeds losses all the same.
const LARGE: u64 = 100;

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
    for megabytes in [5, 20] {
        let bytes = megabytes * 1_000_000;
        let flow = Flow { bytes, first_flight: LARGE, ..Flow::default() };
        let title = format!("cubic, first flight of {LARGE}, {megabytes} MB 1 %");
        cases.push(case(title, scenario(flow, 10.0, 1.0), &[Bar::MeanTimesOff(1.3)]));
    }
    cases
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
