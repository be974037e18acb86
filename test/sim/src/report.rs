// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs for people to read.

use crate::run::{Assist, Outcome};
use crate::truth::Inference;

/// Median, tenth percentile and least of some values.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread {
    /// The middle; of an even number the lower.
    pub median: f64,
    /// The tenth percentile, nearest rank.
    pub p10: f64,
    /// The least.
    pub min: f64,
}

/// The spread of values; zeros of nothing.
pub fn spread(values: impl IntoIterator<Item = f64>) -> Spread {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let rank = (values.len() * percent).div_ceil(100).max(1) - 1;
        values.get(rank).copied().unwrap_or(0.0)
    };
    Spread { median: at(50), p10: at(10), min: at(0) }
}

/// One paragraph about the runs of one assistance.
pub fn summary(assist: Assist, runs: &[&Outcome]) -> String {
    let mut text = format!("{assist:?}");
    let flows = runs.first().map_or(0, |run| run.flows.len());
    for flow in 0..flows {
        let of = |value: &dyn Fn(&crate::run::FlowResult) -> f64| {
            spread(runs.iter().map(|run| value(&run.flows[flow])))
        };
        let sum = |value: &dyn Fn(&crate::run::FlowResult) -> u64| {
            runs.iter().map(|run| value(&run.flows[flow])).sum::<u64>()
        };
        let goodput = of(&|flow| flow.goodput_mbps);
        let losses = sum(&|flow| flow.inference.losses);
        let copies = sum(&|flow| flow.inference.copies);
        let needless = copies - sum(&|flow| flow.inference.copies_needed);
        let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        text += &format!(
            "\n  flow {flow}: {:.2} Mbit/s (p10 {:.2}, min {:.2}), cuts {:.1}, WAN drops {:.0}",
            goodput.median,
            goodput.p10,
            goodput.min,
            sum(&|flow| flow.congestion_events) as f64 / runs.len() as f64,
            sum(&|flow| flow.wan_dropped) as f64 / runs.len() as f64,
        );
        text += &format!(
            ", lost {losses}, noticed {:.1} %, repaired {:.1} %, told {:.1} %, needless {:.2} %",
            share(sum(&|flow| flow.inference.noticed), losses),
            share(sum(&|flow| flow.inference.repaired), losses),
            share(sum(&|flow| flow.told), losses),
            share(needless, sum(&|flow| flow.inference.packets) + copies),
        );
        let up = |value: &dyn Fn(&Inference) -> u64| sum(&|flow| value(&flow.inference_up));
        if up(&|up| up.losses + up.copies) > 0 {
            let (losses, copies) = (up(&|up| up.losses), up(&|up| up.copies));
            text += &format!(
                "\n    up: lost {losses}, noticed {:.1} %, repaired {:.1} %, needless {:.2} %",
                share(up(&|up| up.noticed), losses),
                share(up(&|up| up.repaired), losses),
                share(copies - up(&|up| up.copies_needed), up(&|up| up.packets) + copies),
            );
        }
        if runs[0].flows[flow].frame_delay_ms.is_some() {
            let delay = |pick: &dyn Fn(&crate::run::Percentiles) -> f64| {
                of(&|flow| flow.frame_delay_ms.as_ref().map_or(0.0, pick)).median
            };
            text += &format!(
                ", frames p50/p90/p99 {:.1}/{:.1}/{:.1} ms",
                delay(&|p| p.p50),
                delay(&|p| p.p90),
                delay(&|p| p.p99)
            );
        }
    }
    let up: u64 = runs.iter().flat_map(|run| &run.flows).map(|flow| flow.up_packets).sum();
    let held: u64 = runs.iter().map(|run| run.held).sum();
    text += &format!("\n  held {:.2} % of {up}", 100.0 * held as f64 / up.max(1) as f64);
    text
}
