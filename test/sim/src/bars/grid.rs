// SPDX-License-Identifier: GPL-2.0-or-later
//! The scenarios of the rows.

use super::{
    Bar, Case, by_chance, far, fast, habits, imprecise, outages, radio, reported, senders, tails,
    traced,
};
use crate::scenario::{
    AppKind, ClientKind, CongestionControl, Directions, Flow, LossModel, Qdisc, Scenario, Wan, Wifi,
};

const MB: u64 = 1_000_000;
pub(super) const CONTROLS: [CongestionControl; 3] =
    [CongestionControl::Cubic, CongestionControl::Newreno, CongestionControl::Bbr];
const SIZES_MB: [u64; 3] = [1, 5, 20];

/// All cases, in the order in which they are reported.
pub fn cases() -> Vec<Case> {
    let groups = [
        downloads(),
        lossy(),
        clean(),
        by_chance::cases(),
        overflow(),
        bbr(),
        senders::cases(),
        fast_wan(),
        far::cases(),
        fast::cases(),
        bursts(),
        outages::cases(),
        round_trips(),
        kinder(),
        clients(),
        fairness(),
        calls(),
        uploads(),
        tails::cases(),
        radio::cases(),
        traced::cases(),
        reported::cases(),
        imprecise::cases(),
        habits::cases(),
    ];
    groups.into_iter().flatten().collect()
}

/// The train with a download, this loss on the hop in percent, both ways.
pub(super) fn train(cc: CongestionControl, megabytes: u64, loss: f64) -> Scenario {
    Scenario {
        wifi: Wifi { loss_down: percent(loss), loss_up: percent(loss), ..Wifi::default() },
        wan: Wan { queue_bdp: ROOMY, ..Wan::default() },
        flows: vec![Flow { bytes: megabytes * MB, cc, ..Flow::default() }],
        ..Scenario::default()
    }
}

/// A queue of the WAN as cellular networks have it, in products of rate and round
/// trip: slow start overflows it, congestion avoidance rarely.
pub(super) const ROOMY: f64 = 4.0;
/// A queue that nothing here overflows.
const ENDLESS: f64 = 100.0;

pub(super) fn percent(loss: f64) -> LossModel {
    if loss > 0.0 { LossModel::Percent(loss) } else { LossModel::None }
}

pub(super) fn name(cc: CongestionControl) -> &'static str {
    match cc {
        CongestionControl::Cubic => "cubic",
        CongestionControl::Newreno => "newreno",
        CongestionControl::Bbr => "bbr",
        CongestionControl::Bbr3 => "bbr3",
        CongestionControl::Hystart => "hystart",
        CongestionControl::QuicGo => "quic-go",
        CongestionControl::Rollback => "rollback",
    }
}

pub(super) fn case(name: String, scenario: Scenario, bars: &[Bar]) -> Case {
    Case { name, scenario, bars: bars.to_vec() }
}

fn downloads() -> Vec<Case> {
    let mut cases = Vec::new();
    for cc in CONTROLS {
        for megabytes in SIZES_MB {
            for loss in [0.5, 1.0, 2.0, 5.0] {
                let (of, p10) = match (loss, megabytes) {
                    (5.0, 1) => (0.88, None),
                    (5.0, _) => (0.93, None),
                    (_, 1) => (0.95, Some(0.90)),
                    _ => (0.97, Some(0.90)),
                };
                let mut bars = vec![Bar::OfLossless(of)];
                bars.extend(p10.map(Bar::OfLosslessP10));
                if loss == 1.0 && cc != CongestionControl::Bbr {
                    bars.extend([Bar::Unneeded(3.0), Bar::Recall(0.95)]);
                }
                let title = format!("{} {megabytes} MB {loss} %", name(cc));
                cases.push(case(title, train(cc, megabytes, loss), &bars));
            }
        }
    }
    cases
}

/// What is lost on very lossy hops is mostly acknowledged by something that is lost as well.
fn lossy() -> Vec<Case> {
    let quic_go =
        Flow { client: ClientKind::QuicGo, cc: CongestionControl::Newreno, ..Flow::default() };
    let mut cases = Vec::new();
    for (stack, flow) in [("quinn", Flow::default()), ("quic-go, newreno", quic_go)] {
        for loss in [3.0, 5.0] {
            let mut scenario = train(flow.cc, 5, loss);
            scenario.flows = vec![flow.clone()];
            let title = format!("lossy both ways, {stack} {loss} %");
            cases.push(case(title, scenario, &[Bar::OfLossless(0.85)]));
        }
    }
    cases
}

fn clean() -> Vec<Case> {
    let bars = [Bar::TimesOff(0.995), Bar::Unneeded(1.0), Bar::Held(1.0)];
    let sizes = SIZES_MB.into_iter();
    sizes
        .map(|megabytes| {
            let mut scenario = train(CongestionControl::Cubic, megabytes, 0.0);
            scenario.wan.queue_bdp = ENDLESS;
            case(format!("clean hop, endless queue, {megabytes} MB"), scenario, &bars)
        })
        .collect()
}

fn overflow() -> Vec<Case> {
    let bars = [Bar::TimesOff(0.99), Bar::Unneeded(2.0), Bar::CongestionEvents(0.10)];
    let sizes = SIZES_MB.into_iter();
    sizes
        .map(|megabytes| {
            let mut scenario = train(CongestionControl::Cubic, megabytes, 0.0);
            scenario.wan.queue_bdp = 1.0;
            case(format!("clean hop, 1 BDP queue, {megabytes} MB"), scenario, &bars)
        })
        .collect()
}

fn bbr() -> Vec<Case> {
    let mut cases = Vec::new();
    for queue_bdp in [1.0, ROOMY] {
        for megabytes in SIZES_MB {
            for loss in [0.0, 0.5, 1.0, 2.0] {
                let mut scenario = train(CongestionControl::Bbr, megabytes, loss);
                scenario.wan.queue_bdp = queue_bdp;
                let title = format!("bbr, {queue_bdp} BDP queue, {megabytes} MB {loss} %");
                let bars = [Bar::TimesOff(0.99), Bar::WanDrops(0.10), Bar::WanDropsWorst(0.10)];
                cases.push(case(title, scenario, &bars));
            }
        }
    }
    cases
}

fn fast_wan() -> Vec<Case> {
    let sizes = [5, 20].into_iter();
    sizes
        .map(|megabytes| {
            let mut scenario = train(CongestionControl::Cubic, megabytes, 1.0);
            scenario.wan.rate_mbit = 50.0;
            let title = format!("WAN 50 Mbit/s, {megabytes} MB 1 %");
            case(title, scenario, &[Bar::OfLossless(0.90)])
        })
        .collect()
}

fn bursts() -> Vec<Case> {
    let mut cases = Vec::new();
    for length in [3.0, 8.0] {
        for average in [1.0, 2.0] {
            let r = 100.0 / length;
            let p = r * average / (100.0 - average);
            let mut scenario = train(CongestionControl::Cubic, 5, 0.0);
            scenario.wifi.loss_down = LossModel::Gemodel([p, r, 100.0, 0.0]);
            scenario.wifi.loss_up = scenario.wifi.loss_down.clone();
            let title = format!("bursts of {length}, {average} % on average");
            cases.push(case(title, scenario, &[Bar::TimesOff(2.0), Bar::OfLossless(0.85)]));
        }
    }
    cases
}

fn round_trips() -> Vec<Case> {
    let rtts = [(2.0, 0.96), (5.0, 0.96), (10.0, 0.96), (20.0, 0.85)].into_iter();
    rtts.map(|(rtt_ms, of)| {
        let mut scenario = train(CongestionControl::Cubic, 5, 1.0);
        scenario.wifi.delay_ms = rtt_ms / 2.0;
        scenario.wifi.jitter_percent = 30.0;
        case(format!("Wi-Fi RTT {rtt_ms} ms, jitter 30 %"), scenario, &[Bar::OfLossless(of)])
    })
    .collect()
}

/// What is kinder than a hop and a host are: nothing is lost on the way to the router, or the
/// client reads what comes at once. Each for itself and both together.
fn kinder() -> Vec<Case> {
    let kinds = [("one way", true, false), ("prompt host", false, true), ("ideal", true, true)];
    let mut cases = Vec::new();
    for (kind, one_way, prompt) in kinds {
        for megabytes in SIZES_MB {
            let mut scenario = train(CongestionControl::Cubic, megabytes, 1.0);
            if one_way {
                scenario.wifi.loss_up = LossModel::None;
            }
            if prompt {
                scenario.flows[0].wake_ms = 0.0;
            }
            let title = format!("{kind}, {megabytes} MB 1 %");
            cases.push(case(title, scenario, &[Bar::OfLossless(0.95)]));
        }
    }
    cases
}

/// Behaviours of clients: `true` where there is a signal to go by.
fn clients() -> Vec<Case> {
    let model = |client| Flow { client, ..Flow::default() };
    let kinds = [
        ("every 2nd", model(ClientKind::Every2), true),
        ("every packet", model(ClientKind::Every1), true),
        ("every 10th", model(ClientKind::Every10), true),
        ("25 ms timer only", model(ClientKind::Delayed), false),
        ("Chromium", model(ClientKind::Chromium), true),
        ("quic-go", model(ClientKind::QuicGo), true),
        ("padded to one size", model(ClientKind::Padded), false),
        ("padded at random", model(ClientKind::RandomPadding), false),
        ("batches of 4 ms", Flow { batch_ms: 4.0, ..Flow::default() }, true),
        ("wakes up to 2 ms late", Flow { wake_ms: 2.0, ..Flow::default() }, true),
        ("Chromium, wakes up to 2 ms late", chromium_late(), true),
    ];
    let mut cases = Vec::new();
    for (title, flow, signal) in kinds {
        for loss in [0.0, 1.0] {
            let mut scenario = train(CongestionControl::Cubic, 5, loss);
            scenario.flows = vec![flow.clone()];
            cases.push(case(
                format!("client {title}, {loss} %"),
                scenario,
                behaviour(loss, signal),
            ));
        }
    }
    for loss in [0.0, 1.0] {
        let mut scenario = train(CongestionControl::Cubic, 5, loss);
        scenario.wifi.clump_ms = [5.0, 20.0];
        let title = format!("client power save 5-20 ms, {loss} %");
        cases.push(case(title, scenario, behaviour(loss, true)));
        let mut scenario = train(CongestionControl::Cubic, 5, loss);
        scenario.flows = vec![call(true)];
        let bars =
            if loss > 0.0 { vec![Bar::FrameDelay(20.0)] } else { vec![Bar::FrameDelay(1.0)] };
        cases.push(case(format!("client two-way call, {loss} %"), scenario, &bars));
    }
    cases
}

fn chromium_late() -> Flow {
    Flow { client: ClientKind::Chromium, wake_ms: 2.0, ..Flow::default() }
}

fn behaviour(loss: f64, signal: bool) -> &'static [Bar] {
    if loss > 0.0 && signal { &[Bar::TimesOff(1.5)] } else { &[Bar::TimesOff(0.98)] }
}

fn fairness() -> Vec<Case> {
    let losses = [0.0, 1.0].into_iter();
    losses
        .map(|loss| {
            let mut scenario = train(CongestionControl::Cubic, 1000, loss);
            scenario.wifi.rate_mbit = 8.0;
            scenario.wifi.qdisc = Qdisc::FqCodel;
            scenario.limit_s = 30;
            let helped = scenario.flows[0].clone();
            let unhelped = Flow { helped: false, client_id: 1, ..helped.clone() };
            let tcp = Flow { client: ClientKind::Tcp, client_id: 2, ..unhelped.clone() };
            scenario.flows = vec![helped, unhelped, tcp];
            let title = format!("Wi-Fi bottleneck 8 Mbit/s, {loss} %, helped + unhelped + TCP");
            case(title, scenario, &[Bar::Fairness(0.95), Bar::HopDelay(1.1)])
        })
        .collect()
}

pub(super) fn call(two_way: bool) -> Flow {
    Flow { app: AppKind::Call, seconds: 20.0, two_way, ..Flow::default() }
}

fn calls() -> Vec<Case> {
    let losses = [1.0, 3.6].into_iter();
    losses
        .map(|loss| {
            let mut scenario = train(CongestionControl::Cubic, 5, loss);
            scenario.flows = vec![call(false)];
            // Two round trips of the hop of 2 ms.
            case(format!("call 30 fps, {loss} %"), scenario, &[Bar::FrameDelay(4.0)])
        })
        .collect()
}

/// Losses beyond the router on the way up, with `direction both`.
fn uploads() -> Vec<Case> {
    let losses = [(0.0, 0.99), (0.5, 1.05), (1.0, 1.2), (2.0, 1.3)].into_iter();
    losses
        .map(|(loss, times)| {
            let mut scenario = train(CongestionControl::Cubic, 5, 0.0);
            scenario.flows[0].app = AppKind::Upload;
            scenario.engine.direction = Directions::Both;
            scenario.wan.loss_up = percent(loss);
            case(format!("upload, WAN {loss} % up"), scenario, &[Bar::TimesOff(times)])
        })
        .collect()
}
