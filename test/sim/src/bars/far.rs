// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows on hops that are a large part of the path, and on paths whose windows are sent in bursts: a copy's reply
//! takes long as the sender counts it, and what the sender is told of early stays with it for seconds.

use super::grid::{case, percent};
use super::{Bar, Case};
use crate::scenario::{ClientKind, Flow, Scenario, Wan, Wifi};

const BYTES: u64 = 5_000_000;
const HOST_MS: f64 = 0.2;
const CLIENTS: [(&str, ClientKind); 3] = [
    ("quinn", ClientKind::Quinn),
    ("quic-go", ClientKind::QuicGo),
    ("every packet", ClientKind::Every1),
];

/// Three clients, a hop of 10 ms of round trip and one of 20, at two rates; and one that acknowledges every packet of
/// a server beyond an ocean.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (delay_ms, rate, times) in [(5.0, 20.0, 4.8), (5.0, 50.0, 7.5), (10.0, 50.0, 4.8)] {
        for (name, client) in CLIENTS {
            let flow = Flow { client, wake_ms: HOST_MS, ..Flow::default() };
            let title = format!("hop of {} ms, {rate} Mbit/s, {name} 1 %", 2.0 * delay_ms);
            let scenario = path(rate, 25.0, delay_ms, flow);
            cases.push(case(title, scenario, &[Bar::MeanTimesOff(times)]));
        }
    }
    let prompt = Flow { client: ClientKind::Every1, wake_ms: 0.0, ..Flow::default() };
    let title = "beyond an ocean, 75 Mbit/s, every packet 1 %".into();
    cases.push(case(title, path(75.0, 150.0, 10.0, prompt), &[Bar::MeanTimesOff(8.0)]));
    cases
}

fn path(rate_mbit: f64, wan_ms: f64, hop_ms: f64, flow: Flow) -> Scenario {
    Scenario {
        wifi: Wifi {
            rate_mbit: 3.0 * rate_mbit,
            delay_ms: hop_ms,
            loss_down: percent(1.0),
            loss_up: percent(1.0),
            ..Wifi::default()
        },
        wan: Wan { rate_mbit, delay_ms: wan_ms, ..Wan::default() },
        flows: vec![Flow { bytes: BYTES, ..flow }],
        ..Scenario::default()
    }
}
