// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows about clients with which the engine was not built: each has a habit of its own, of which
//! nobody tells the engine.

use super::grid::{ROOMY, case, percent};
use super::{Bar, Case};
use crate::scenario::{ClientKind, Flow, Scenario, Wan, Wifi};

/// What a client does that tells of a loss.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    /// Something, of nearly every loss.
    Most,
    /// Something of a part of them, and nothing of the others.
    Few,
    /// Nothing.
    None,
}

/// Each habit without losses and with 1 % in both directions, and the second download of a client.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (title, client, sign) in KINDS {
        for loss in [0.0, 1.0] {
            let name = format!("habit {title}, {loss} %");
            cases.push(case(name, scenario(client, loss), &bars(loss, sign)));
        }
    }
    for (title, client, sign) in KINDS {
        let name = format!("known habit {title}, 1 MB 1 %");
        cases.push(case(name, second(client), &known(sign)));
    }
    for (title, client) in ALIKE {
        let name = format!("known habit {title}, 5 MB 1 %");
        cases.push(case(name, second_long(client), &[Bar::OfLossless(0.93)]));
    }
    for (title, client) in SKIPPED {
        let name = format!("numbers left out, {title}, 1 %");
        cases.push(case(name, skipping(client), &bars(1.0, Sign::Most)));
    }
    cases
}

const KINDS: [(&str, ClientKind, Sign); 12] = [
    ("ngtcp2", ClientKind::Ngtcp2, Sign::Few),
    ("s2n-quic", ClientKind::S2n, Sign::Most),
    ("msquic", ClientKind::Msquic, Sign::Most),
    ("busy Firefox", ClientKind::Irregular, Sign::Most),
    ("every 4th, padded", ClientKind::Every4, Sign::Most),
    ("patient, sizes vary", ClientKind::Patient, Sign::Few),
    ("asked for every 16th", ClientKind::AckFrequency, Sign::Few),
    ("asked for every 16th or the third", ClientKind::AckFrequencyThird, Sign::Most),
    ("times of packets", ClientKind::Timestamps, Sign::None),
    ("sizes vary", ClientKind::Varying, Sign::Few),
    ("tquic", ClientKind::Tquic, Sign::Most),
    ("aioquic", ClientKind::Aioquic, Sign::Most),
];

/// Clients whose replies are all of one size, so that losses show while packets change places.
const ALIKE: [(&str, ClientKind); 2] =
    [("ngtcp2", ClientKind::Ngtcp2), ("every 4th, padded", ClientKind::Every4)];

/// Clients of a sender that leaves out packet numbers as often as s2n-quic's does: each looks like a loss.
const SKIPPED: [(&str, ClientKind); 4] = [
    ("every 2nd", ClientKind::Every2),
    ("quic-go", ClientKind::QuicGo),
    ("s2n-quic", ClientKind::S2n),
    ("Chromium", ClientKind::Chromium),
];
/// After so many packets on average (chosen: s2n-quic 0.83 sends 30 and half to twice its window before it leaves
/// one out, and a window is about 40 at 10 Mbit/s).
const SKIPS_EVERY: u64 = 80;

fn skipping(client: ClientKind) -> Scenario {
    let flows = vec![Flow { client, skips_every: SKIPS_EVERY, ..Flow::default() }];
    // A queue as long as the path's product, since it matters little how often a sender with a long one is told.
    let wan = Wan { queue_bdp: 1.0, ..Wan::default() };
    Scenario { flows, wan, ..scenario(client, 1.0) }
}

fn scenario(client: ClientKind, loss: f64) -> Scenario {
    Scenario {
        wifi: Wifi { loss_down: percent(loss), loss_up: percent(loss), ..Wifi::default() },
        wan: Wan { queue_bdp: ROOMY, ..Wan::default() },
        flows: vec![Flow { client, ..Flow::default() }],
        ..Scenario::default()
    }
}

fn bars(loss: f64, sign: Sign) -> Vec<Bar> {
    match sign {
        _ if loss == 0.0 => vec![Bar::TimesOff(0.99), Bar::Unneeded(1.5)],
        Sign::Most => vec![Bar::OfLossless(0.85), Bar::Unneeded(5.0)],
        Sign::Few => vec![Bar::MeanTimesOff(1.3), Bar::Unneeded(5.0)],
        Sign::None => vec![Bar::TimesOff(0.98), Bar::Unneeded(5.0)],
    }
}

/// Two downloads of a client, one after the other, of which the second counts: the first has to be
/// learned from, and is long enough to be.
fn second(client: ClientKind) -> Scenario {
    let first = Flow { client, bytes: 1_000_000, counted: false, ..Flow::default() };
    let second = Flow { start_ms: 15_000.0, counted: true, ..first.clone() };
    Scenario { flows: vec![first, second], ..scenario(client, 1.0) }
}

/// The same with longer ones, so that losses after slow start decide as well.
fn second_long(client: ClientKind) -> Scenario {
    let first = Flow { client, bytes: 3_000_000, counted: false, ..Flow::default() };
    let second = Flow { client, start_ms: 40_000.0, ..Flow::default() };
    let wan = Wan { queue_bdp: 1.0, ..Wan::default() };
    Scenario { flows: vec![first, second], wan, ..scenario(client, 1.0) }
}

/// Half of such downloads lose nothing in slow start, and are as fast without help.
fn known(sign: Sign) -> Vec<Bar> {
    match sign {
        Sign::Most => vec![Bar::MeanTimesOff(1.2)],
        Sign::Few => vec![Bar::MeanTimesOff(1.1)],
        Sign::None => vec![Bar::TimesOff(0.98)],
    }
}
