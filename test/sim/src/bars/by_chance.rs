// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows about hops that lose nothing and yet delay replies so that chance looks like repairs: the hop is the
//! bottleneck and has a queue for each flow, so that probes do not wait where packets do; and a call of which
//! the WAN loses packets.

use super::grid::{case, percent};
use super::{Bar, Case};
use crate::scenario::{AppKind, ClientKind, Flow, Qdisc, Scenario, Wan, Wifi};

pub fn cases() -> Vec<Case> {
    let downloads = [
        ("quinn", ClientKind::Quinn, 10.0, 0.93),
        ("quic-go", ClientKind::QuicGo, 10.0, 0.93),
        ("Chromium", ClientKind::Chromium, 1.0, 0.94),
    ];
    let mut cases: Vec<Case> = Vec::new();
    for (name, client, delay_ms, least) in downloads {
        let title = format!("nothing lost, a queue for each flow, {delay_ms} ms, {name}");
        let bars = [Bar::MeanTimesOff(least), Bar::Unneeded(5.5)];
        cases.push(case(title, own_queue(client, delay_ms), &bars));
    }
    let title = "nothing lost on the hop, 0.3 % before it, call by Chromium";
    cases.push(case(title.into(), call(), &[Bar::FrameDelayTimesOff(1.7)]));
    cases
}

/// A hop half as fast as the WAN with FQ-CoDel, as Linux has it for Wi-Fi.
fn own_queue(client: ClientKind, delay_ms: f64) -> Scenario {
    Scenario {
        wifi: Wifi { rate_mbit: 10.0, delay_ms, qdisc: Qdisc::FqCodel, ..Wifi::default() },
        wan: Wan { rate_mbit: 20.0, delay_ms: 15.0, ..Wan::default() },
        flows: vec![Flow { bytes: 3_000_000, client, ..Flow::default() }],
        ..Scenario::default()
    }
}

/// A call whose server is near: what the WAN loses is soon there again if the sender hears of it.
fn call() -> Scenario {
    let flow = Flow {
        app: AppKind::Call,
        fps: 25.0,
        client: ClientKind::Chromium,
        wake_ms: 0.2,
        ..Flow::default()
    };
    Scenario {
        wifi: Wifi { rate_mbit: 70.0, delay_ms: 0.5, ..Wifi::default() },
        wan: Wan { rate_mbit: 35.0, delay_ms: 3.0, loss_down: percent(0.3), ..Wan::default() },
        flows: vec![flow],
        ..Scenario::default()
    }
}
