// SPDX-License-Identifier: GPL-2.0-or-later
//! What a run adds up to.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::Nanos;
use crate::pipe::Counts;

/// How late frames left, against when they were due.
#[derive(Debug)]
pub struct Lateness(Histogram<u64>);

impl Lateness {
    /// Nothing recorded.
    pub fn new() -> Lateness {
        // 1 us (finer is nobody's interest) to 100 s, three digits.
        let histogram = Histogram::new_with_bounds(1, 100_000_000, 3);
        Lateness(histogram.expect("constant bounds are valid"))
    }

    /// One frame.
    pub fn record(&mut self, late: Nanos) {
        self.0.saturating_record(late / 1000);
    }

    fn summary(&self) -> LatenessSummary {
        LatenessSummary {
            p50: self.0.value_at_quantile(0.5),
            p99: self.0.value_at_quantile(0.99),
            max: self.0.max(),
        }
    }
}

impl Default for Lateness {
    fn default() -> Lateness {
        Lateness::new()
    }
}

/// Percentiles in microseconds.
#[derive(Debug, Serialize)]
pub struct LatenessSummary {
    p50: u64,
    p99: u64,
    max: u64,
}

/// What became of the frames of one direction after the pipe.
#[derive(Debug, Default)]
pub struct Output {
    /// Handed to the other interface.
    pub delivered: u64,
    /// Refused by the other interface.
    pub send_errors: u64,
    /// Rows that are missing in the log.
    pub log_dropped: u64,
    /// Larger than the interface's MTU: put together by offloads.
    pub oversized: u64,
    /// How late they were handed over.
    pub lateness: Lateness,
}

/// One direction of `--totals`.
///
/// `packets` = `lost` + `queue_dropped` + `delivered` + `send_errors` + `in_flight`.
#[derive(Debug, Serialize)]
pub struct DirectionTotals {
    packets: u64,
    bytes: u64,
    exempt: u64,
    lost: u64,
    queue_dropped: u64,
    delivered: u64,
    in_flight: u64,
    max_queue_bytes: u64,
    lateness_us: LatenessSummary,
    send_errors: u64,
    oversized: u64,
    socket_dropped: u64,
    log_dropped: u64,
}

impl DirectionTotals {
    /// Puts one direction together. `in_flight` are the frames that were still
    /// under way at the end, `socket_dropped` those that the kernel had no room
    /// for before this program saw them.
    pub fn new(
        counts: Counts,
        max_queue_bytes: u64,
        output: &Output,
        in_flight: u64,
        socket_dropped: u64,
    ) -> DirectionTotals {
        DirectionTotals {
            packets: counts.packets,
            bytes: counts.bytes,
            exempt: counts.exempt,
            lost: counts.lost,
            queue_dropped: counts.queue_dropped,
            delivered: output.delivered,
            in_flight,
            max_queue_bytes,
            lateness_us: output.lateness.summary(),
            send_errors: output.send_errors,
            oversized: output.oversized,
            socket_dropped,
            log_dropped: output.log_dropped,
        }
    }
}

/// The file of `--totals`.
#[derive(Debug, Serialize)]
pub struct Totals {
    /// From the first interface to the second.
    pub ab: DirectionTotals,
    /// From the second interface to the first.
    pub ba: DirectionTotals,
}
