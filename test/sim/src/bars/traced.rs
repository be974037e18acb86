// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows on the traces of the experiments `wifi-rate` and `wifi-delay`: a hop that is
//! slower than the WAN, whose rate changes from second to second, and a hop on which
//! packets wait. Help must do no harm there. The hop is those experiments'; downloads and
//! calls are shorter, as each seed begins elsewhere in the trace.

use super::grid::{case, percent};
use super::{Bar, Case};
use crate::scenario::{AppKind, ClientKind, CongestionControl, Flow, Scenario, Wan, Wifi};

/// Help that costs more than this is harm.
const NO_HARM: f64 = 0.98;
/// A call's late frames may be so many times later.
const LATER: f64 = 1.02;
const BYTES: u64 = 10_000_000;
const CALL_S: f64 = 10.0;
/// `run.py --queue1`.
const QUEUE_BYTES: u64 = 256 * 1024;

/// Downloads of two clients and a call, on each trace.
pub fn cases() -> Vec<Case> {
    let rates = ["wifi-cafe", "wifi-campus", "wifi-office"];
    let delays = ["wifi-sleep", "wifi-spikes"];
    let on_rates = rates.iter().flat_map(|trace| of(trace, 100.0, [0.0, 1.0]));
    // The losses that echoes met over Wi-Fi of a home.
    let on_delays = delays.iter().flat_map(|trace| of(trace, 10.0, [0.0, 0.12]));
    on_rates.chain(on_delays).collect()
}

fn of(trace: &str, wan_mbit: f64, losses: [f64; 2]) -> Vec<Case> {
    let scenario = |loss, flow| Scenario {
        wifi: Wifi {
            trace: Some(trace.to_owned()),
            queue_bytes: QUEUE_BYTES,
            loss_down: percent(loss),
            loss_up: percent(loss),
            ..Wifi::default()
        },
        wan: Wan { rate_mbit: wan_mbit, ..Wan::default() },
        flows: vec![flow],
        ..Scenario::default()
    };
    let mut cases = Vec::new();
    let clients = [
        ("quinn", ClientKind::Quinn, CongestionControl::Cubic),
        ("quic-go", ClientKind::QuicGo, CongestionControl::Newreno),
    ];
    for (name, client, cc) in clients {
        for loss in losses {
            let flow = Flow { bytes: BYTES, client, cc, ..Flow::default() };
            let mut bars = vec![Bar::MeanTimesOff(NO_HARM)];
            if loss == 0.0 {
                bars.push(Bar::Unneeded(2.0));
            }
            let title = format!("trace {trace}, {name} {loss} %");
            cases.push(case(title, scenario(loss, flow), &bars));
        }
    }
    let call = Flow { app: AppKind::Call, seconds: CALL_S, ..Flow::default() };
    let bars = [Bar::FrameDelayTimesOff(LATER)];
    cases.push(case(format!("trace {trace}, call"), scenario(0.0, call), &bars));
    cases
}
