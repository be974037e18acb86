// SPDX-License-Identifier: GPL-2.0-or-later
//! What the daemon reports of itself: the answers of the control socket.

use std::fs;

use pemi_engine::{FlowInfo, SEC, Stats};
use serde_json::Value;

use crate::daemon::history::Losses;
use crate::daemon::object::{decimal, numbers, object};
use crate::datapath::nfqueue::{KERNEL_TABLE, KernelCounters, kernel_counters};
use crate::datapath::worker::Snapshot;

/// Everything that `status` is made of.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Seconds since the counters were zero: the start, or a reset.
    pub counted_s: u64,
    /// The last hour, or as much of it as there is.
    pub hour: Losses,
    /// "routed" or "bridged".
    pub mode: &'static str,
    /// One for each queue.
    pub paths: &'a [Snapshot],
    /// The kernel's counters of the same queues.
    pub kernel: &'a [KernelCounters],
    /// Log lines and events dropped.
    pub log_dropped: u32,
    /// What the user should know.
    pub errors: Vec<String>,
}

/// Sums the counters of several engines; of the gauges that cannot be summed,
/// the largest.
pub fn total<'a>(paths: impl IntoIterator<Item = &'a Snapshot>) -> Stats {
    paths.into_iter().map(|path| &path.stats).sum()
}

/// The kernel's counters of the queues of these workers.
pub fn kernel(workers: &[Snapshot]) -> Vec<KernelCounters> {
    let table = fs::read_to_string(KERNEL_TABLE).unwrap_or_default();
    workers.iter().map(|worker| kernel_counters(&table, worker.id).unwrap_or_default()).collect()
}

/// The answer to `status`, but for what helpers say of themselves.
pub fn status(facts: &Facts<'_>) -> Value {
    let s = total(facts.paths);
    let queues: Vec<Value> = facts
        .paths
        .iter()
        .zip(facts.kernel)
        .map(|(path, kernel)| {
            object(vec![
                ("id", path.id.into()),
                ("capture", path.capture_name.into()),
                ("packets", path.packets().into()),
                ("missed", path.capture.missed.into()),
                ("verdict_errors", path.capture.verdict_errors.into()),
                ("kernel_dropped", kernel.kernel_dropped.into()),
                ("user_dropped", kernel.user_dropped.into()),
            ])
        })
        .collect();
    let unseen: u64 = facts.paths.iter().map(|path| path.unseen).sum();
    let sum = |of: fn(&Snapshot) -> u32| facts.paths.iter().map(of).fold(0u32, u32::saturating_add);
    let sum = |of| u64::from(sum(of));
    object(vec![
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("uptime_s", facts.uptime_s.into()),
        ("counted_s", facts.counted_s.into()),
        (
            "hour",
            numbers(&[
                ("seconds", facts.hour.seconds),
                ("inferred", facts.hour.inferred),
                ("repaired", facts.hour.repaired),
                ("beyond", facts.hour.beyond),
            ]),
        ),
        ("mode", facts.mode.into()),
        ("queues", queues.into()),
        (
            "packets",
            numbers(&[
                ("down", s.packets_down),
                ("up", s.packets_up),
                ("quic", s.packets_quic),
                ("other", s.packets_other + unseen),
                ("malformed", s.packets_malformed),
            ]),
        ),
        ("bytes", numbers(&[("down", s.bytes_down), ("up", s.bytes_up)])),
        (
            "flows",
            numbers(&[
                ("active", s.flows_active),
                ("protected", s.flows_protected),
                ("bypassed", s.flows_bypassed),
                ("evicted", s.flows_evicted),
            ]),
        ),
        (
            "losses",
            numbers(&[
                ("inferred", s.losses_inferred),
                ("repaired", s.losses_repaired),
                ("upstream", s.losses_upstream),
                ("congestion", s.losses_congestion),
            ]),
        ),
        (
            "resent",
            numbers(&[
                ("packets", s.resent_packets),
                ("bytes", s.resent_bytes),
                ("limited", s.resent_limited),
                ("errors", sum(|p| p.outlet.copy_errors)),
            ]),
        ),
        (
            "reports",
            numbers(&[
                ("asked", s.reports_asked),
                ("missing", s.reports_missing),
                ("doubted", s.reports_doubted),
                ("losses", s.losses_reported),
                ("clients", s.clients_reported),
                ("unreported", s.clients_unreported),
            ]),
        ),
        (
            "concealed",
            numbers(&[
                ("gaps", s.concealed_gaps),
                ("held", s.concealed_held),
                ("late", s.concealed_late),
                ("now", s.held_now),
            ]),
        ),
        ("local_rtt_us", numbers(&[("p50", s.local_rtt_us_p50), ("p99", s.local_rtt_us_p99)])),
        (
            "probes",
            numbers(&[
                ("sent", sum(|p| p.outlet.probes.sent)),
                ("answered", sum(|p| p.outlet.probes.answered)),
                ("errors", sum(|p| p.outlet.probes.errors)),
            ]),
        ),
        ("cache", numbers(&[("bytes", s.cache_bytes), ("limit", s.cache_limit)])),
        ("log", numbers(&[("dropped", facts.log_dropped.into())])),
        ("errors", facts.errors.clone().into()),
    ])
}

/// One of the answers to `flows`.
pub fn flow(flow: &FlowInfo) -> Value {
    let loss = decimal(flow.repaired.saturating_mul(100), flow.packets_down, 100);
    object(vec![
        ("client", flow.client.to_string().into()),
        ("server", flow.server.to_string().into()),
        ("age_s", (flow.age / SEC).into()),
        ("bytes_down", flow.bytes_down.into()),
        ("packets_down", flow.packets_down.into()),
        ("local_rtt_us", (flow.local_rtt / 1000).into()),
        ("loss_percent", loss.into()),
        ("inferred", flow.inferred.into()),
        ("repaired", flow.repaired.into()),
        ("resent", flow.resent.into()),
        ("protocol", flow.protocol.name().into()),
        ("state", flow.state.name().into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::{capture, outlet};
    use serde_json::json;

    #[test]
    fn several_queues_are_summed() {
        let path = |id, down| Snapshot {
            id,
            capture_name: "queue",
            stats: Stats { packets_down: down, local_rtt_us_p50: down, ..Stats::default() },
            outlet: outlet::Counters { copy_errors: 1, ..outlet::Counters::default() },
            capture: capture::Counters { missed: 2, ..capture::Counters::default() },
            ..Snapshot::default()
        };
        let facts = Facts {
            uptime_s: 7,
            counted_s: 3,
            hour: Losses { seconds: 3, inferred: 2, repaired: 1, beyond: 0 },
            mode: "routed",
            paths: &[path(5, 10), path(6, 20)],
            kernel: &[
                KernelCounters { kernel_dropped: 3, ..KernelCounters::default() },
                KernelCounters::default(),
            ],
            log_dropped: 0,
            errors: vec!["something".into()],
        };
        let status = status(&facts);
        assert_eq!((&status["uptime_s"], &status["counted_s"]), (&json!(7), &json!(3)));
        assert_eq!(
            (&status["hour"]["seconds"], &status["hour"]["repaired"]),
            (&json!(3), &json!(1))
        );
        assert_eq!(status["packets"]["down"], 30);
        assert_eq!(status["local_rtt_us"]["p50"], 20);
        assert_eq!(status["resent"]["errors"], 2);
        assert_eq!(status["queues"][0]["kernel_dropped"], 3);
        assert_eq!(status["queues"][1]["missed"], 2);
        assert_eq!(status["queues"][1]["id"], 6);
        assert_eq!(status["queues"][1]["capture"], "queue");
        assert_eq!(status["errors"][0], "something");
    }
}
