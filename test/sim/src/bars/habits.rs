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

/// Each habit without losses and with 1 % in both directions.
pub fn cases() -> Vec<Case> {
    let kinds = [
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
    ];
    let cases = kinds.into_iter().flat_map(|(title, client, sign)| {
        [0.0, 1.0].map(|loss| {
            let name = format!("habit {title}, {loss} %");
            case(name, scenario(client, loss), &bars(loss, sign))
        })
    });
    cases.collect()
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
