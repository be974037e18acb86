// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows about the ends of bursts: where several downloads share the way each is sent in short
//! bursts, of which the odd last packet waits at the client for one more before it is replied to.

use super::grid::{case, train};
use super::{Bar, Case};
use crate::scenario::{ClientKind, CongestionControl, Flow, Scenario};

const MB: u64 = 1_000_000;

/// Three clients with a download each, and six downloads of one client.
pub fn cases() -> Vec<Case> {
    let three = (0..3).map(|client_id| Flow { bytes: 6 * MB, client_id, ..Flow::default() });
    let six = (0..6).map(|_| Flow { client: ClientKind::QuicGo, bytes: 3 * MB, ..Flow::default() });
    let shared = [("three clients", three.collect()), ("six connections", six.collect())];
    let bars = [Bar::OfLossless(0.95), Bar::Unneeded(3.0)];
    let mut cases: Vec<Case> = shared
        .map(|(title, flows)| {
            let scenario = Scenario { flows, ..train(CongestionControl::Cubic, 5, 1.0) };
            case(format!("tails, {title}, 1 %"), scenario, &bars)
        })
        .into();
    for case in &mut cases {
        // As where it was measured with real stacks.
        case.scenario.wan.queue_bdp = 1.0;
    }
    cases
}
