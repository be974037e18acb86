// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows on fast paths, and on paths whose two links are equally fast: packets come closer together
//! than a host or a rule in milliseconds keeps time.

use super::grid::{case, percent};
use super::{Bar, Case};
use crate::scenario::{ClientKind, Flow, Scenario, Wan, Wifi};

const BYTES: u64 = 20_000_000;
/// A download that ends in slow start, where one loss that is told decides it.
const SHORT: u64 = 1_000_000;
const CLIENTS: [(&str, ClientKind); 2] =
    [("quinn", ClientKind::Quinn), ("quic-go", ClientKind::QuicGo)];

/// What real handshakes take, from the server's first flight to the client's next: `QUINN_HOST` and `QUIC_GO_HOST`
/// of `real`. It is longer than the hop takes, and all that tells of the round trip before probes do.
const HANDSHAKES_MS: [f64; 2] = [0.5, 1.0];

/// Both clients at 50 and 100 Mbit/s with hosts as they are, with prompt ones and with such whose handshakes take
/// as long as real ones, prompt ones at 300, short downloads at 100, links that are equally fast, and a hop that is
/// the slower one, later hosts, and clients that count.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (rate, share) in [(50.0, 0.8), (100.0, 0.5)] {
        for (name, client) in CLIENTS {
            let scenario = path(rate, 2.0, 1.0, Flow { client, ..Flow::default() });
            let title = format!("fast, {rate} Mbit/s, {name} 1 %");
            cases.push(case(title, scenario, &[Bar::OfLossless(share)]));
        }
    }
    let prompt = [
        (50.0, CLIENTS[0], 1.0, 0.95, 6.0),
        (50.0, CLIENTS[1], 1.0, 0.85, 10.0),
        (100.0, CLIENTS[0], 1.0, 0.95, 9.0),
        (100.0, CLIENTS[1], 1.0, 0.85, 15.0),
        (100.0, CLIENTS[0], 2.0, 0.7, 11.0),
        (300.0, CLIENTS[0], 1.0, 0.4, 9.0),
        (300.0, CLIENTS[1], 1.0, 0.2, 18.0),
        (300.0, CLIENTS[0], 0.1, 0.9, 40.0),
    ];
    for (rate, (name, client), loss, share, told) in prompt {
        let flow = Flow { client, wake_ms: 0.0, ..Flow::default() };
        let title = format!("fast, prompt host, {rate} Mbit/s, {name} {loss} %");
        let bars = [Bar::OfLossless(share), Bar::Told(told)];
        cases.push(case(title, path(rate, 2.0, loss, flow), &bars));
    }
    for (rate, share) in [(50.0, 0.8), (100.0, 0.5)] {
        for ((name, client), handshake_ms) in CLIENTS.into_iter().zip(HANDSHAKES_MS) {
            let flow = Flow { client, wake_ms: 0.0, handshake_ms, ..Flow::default() };
            let title = format!("long handshake, {rate} Mbit/s, {name} 1 %");
            cases.push(case(title, path(rate, 2.0, 1.0, flow), &[Bar::OfLossless(share)]));
        }
    }
    for ((name, client), told) in CLIENTS.into_iter().zip([5.0, 7.5]) {
        let flow = Flow { client, wake_ms: 0.3, handshake_ms: 1.0, ..Flow::default() };
        let mut scenario = path(100.0, 3.0, 1.0, flow);
        scenario.wan.delay_ms = 25.0;
        scenario.flows[0].bytes = SHORT;
        let title = format!("fast, 1 MB, 100 Mbit/s, {name} 1 %");
        cases.push(case(title, scenario, &[Bar::OfLossless(0.9), Bar::Told(told)]));
    }
    for rate in [10.0, 20.0, 50.0] {
        let title = format!("equal links, {rate} Mbit/s, quinn 1 %");
        let scenario = path(rate, 1.0, 1.0, Flow::default());
        cases.push(case(title, scenario, &[Bar::OfLossless(0.93)]));
    }
    for (rate, times) in [(10.0, 1.8), (20.0, 2.5), (50.0, 4.0)] {
        for (name, client) in CLIENTS {
            let mut scenario = path(2.0 * rate, 0.5, 1.0, Flow { client, ..Flow::default() });
            scenario.wan.delay_ms = 20.0;
            let title = format!("hop half as fast as the WAN, {rate} Mbit/s, {name} 1 %");
            let bars = [Bar::OfLossless(0.93), Bar::MeanTimesOff(times), Bar::Unneeded(5.0)];
            cases.push(case(title, scenario, &bars));
        }
    }
    cases.extend(late());
    cases.extend(counting());
    cases
}

/// Hosts that are four packets late: what they reply to is all that has come since they last did.
fn late() -> impl Iterator<Item = Case> {
    CLIENTS.into_iter().zip([5.2, 3.9]).map(|((name, client), times)| {
        let flow = Flow { client, wake_ms: 1.0, ..Flow::default() };
        let title = format!("fast, late host, 50 Mbit/s, {name} 1 %");
        case(title, path(50.0, 2.0, 1.0, flow), &[Bar::MeanTimesOff(times)])
    })
}

/// Clients that reply to every tenth packet, and before that where one is missing: that one is named no better
/// than by clients that reply to each, as packets are closer than the host keeps time.
fn counting() -> impl Iterator<Item = Case> {
    let clients = [
        (50.0, ("Chromium", ClientKind::Chromium), 2.4),
        (100.0, ("Chromium", ClientKind::Chromium), 2.5),
        (100.0, ("every 10th", ClientKind::Every10), 5.0),
    ];
    clients.into_iter().map(|(rate, (name, client), times)| {
        let flow = Flow { client, wake_ms: 0.3, ..Flow::default() };
        let title = format!("fast, counting, {rate} Mbit/s, {name} 1 %");
        case(title, path(rate, 2.0, 1.0, flow), &[Bar::MeanTimesOff(times)])
    })
}

/// A WAN of this rate and 10 ms, a hop so many times as fast, and losses both ways.
fn path(rate_mbit: f64, times: f64, loss: f64, flow: Flow) -> Scenario {
    Scenario {
        wifi: Wifi {
            rate_mbit: times * rate_mbit,
            loss_down: percent(loss),
            loss_up: percent(loss),
            ..Wifi::default()
        },
        wan: Wan { rate_mbit, delay_ms: 10.0, ..Wan::default() },
        flows: vec![Flow { bytes: BYTES, ..flow }],
        ..Scenario::default()
    }
}
