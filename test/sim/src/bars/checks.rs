// SPDX-License-Identifier: GPL-2.0-or-later
//! What can be asked of the engine, and how it is measured.

use super::Goodput;
use crate::report::spread;
use crate::run::{FlowResult, Outcome};

/// The runs of a case, by seed.
pub struct Runs<'a> {
    /// Without help.
    pub off: &'a [Outcome],
    /// With the engine.
    pub on: &'a [Outcome],
    /// Without losses on the Wi-Fi; none if no bar needs them.
    pub lossless: &'a [Outcome],
}

/// What is asked. Ratios are of runs of the same seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bar {
    /// The median goodput is at least this share of the lossless one.
    OfLossless(f64),
    /// The 10th percentile of the same.
    OfLosslessP10(f64),
    /// The median goodput is at least this many times that without help.
    TimesOff(f64),
    /// The mean goodput is at least this many times that without help: where single
    /// losses decide how a run goes, ratios of runs scatter more than their means.
    MeanTimesOff(f64),
    /// Copies that were not needed, percent of packets to the clients.
    Unneeded(f64),
    /// Share of the losses that were repaired in time.
    Recall(f64),
    /// Losses that the sender learned of, percent of them.
    Told(f64),
    /// Client packets that were held, percent.
    Held(f64),
    /// The sender's congestion events differ from those without help by no more
    /// than this share (plus one event in ten runs).
    CongestionEvents(f64),
    /// Drops before the router exceed those without help by no more than this
    /// share (plus one packet a run).
    WanDrops(f64),
    /// The same of the runs of all seeds, the 95th percentile with help against that without: what
    /// help does to few runs, the mean of many hides.
    WanDropsWorst(f64),
    /// The 99th percentile of frame delays exceeds the lossless one by so many ms.
    FrameDelay(f64),
    /// It is at most so many times that without help, as the mean over the runs.
    FrameDelayTimesOff(f64),
    /// Jain's index of the flows' goodputs is at least this share of that without help.
    Fairness(f64),
    /// The 95th percentile of the delay on the hop is at most so many times that
    /// without help.
    HopDelay(f64),
}

impl Bar {
    /// A word for the row's name.
    pub fn name(self) -> &'static str {
        match self {
            Bar::OfLossless(_) => "of lossless",
            Bar::OfLosslessP10(_) => "of lossless, 10th percentile",
            Bar::TimesOff(_) => "times off",
            Bar::MeanTimesOff(_) => "mean times off",
            Bar::Unneeded(_) => "unneeded resends",
            Bar::Recall(_) => "recall",
            Bar::Told(_) => "told",
            Bar::Held(_) => "held",
            Bar::CongestionEvents(_) => "congestion events",
            Bar::WanDrops(_) => "WAN drops",
            Bar::WanDropsWorst(_) => "WAN drops, 95th percentile",
            Bar::FrameDelay(_) => "frame delay p99",
            Bar::FrameDelayTimesOff(_) => "frame delay p99 times off",
            Bar::Fairness(_) => "Jain's index",
            Bar::HopDelay(_) => "hop delay p95",
        }
    }

    /// Whether it compares with runs without losses on the Wi-Fi.
    pub fn needs_ceiling(self) -> bool {
        matches!(self, Bar::OfLossless(_) | Bar::OfLosslessP10(_) | Bar::FrameDelay(_))
    }

    /// The bar for people.
    pub fn text(self) -> String {
        match self {
            Bar::OfLossless(share) | Bar::OfLosslessP10(share) => {
                format!(">= {share} of lossless")
            }
            Bar::TimesOff(times) | Bar::MeanTimesOff(times) => format!(">= {times} x off"),
            Bar::Unneeded(percent) => format!("<= {percent} % of packets"),
            Bar::Recall(share) => format!(">= {share}"),
            Bar::Told(percent) => format!("<= {percent} % of the losses"),
            Bar::Held(percent) => format!("<= {percent} % of client packets"),
            Bar::CongestionEvents(share) => format!("within {share} of off"),
            Bar::WanDrops(share) | Bar::WanDropsWorst(share) => format!("<= {} x off", 1.0 + share),
            Bar::FrameDelay(ms) => format!("<= lossless + {ms} ms"),
            Bar::Fairness(share) => format!(">= {share} x off"),
            Bar::HopDelay(times) | Bar::FrameDelayTimesOff(times) => format!("<= {times} x off"),
        }
    }

    /// Whether a value of fewer runs leaves hope that it is as asked: within 5 %
    /// of what is asked of at least, and 15 % of what is asked of at most.
    pub fn nearly(self, value: f64) -> bool {
        match self {
            Bar::OfLossless(limit)
            | Bar::OfLosslessP10(limit)
            | Bar::TimesOff(limit)
            | Bar::MeanTimesOff(limit)
            | Bar::Recall(limit)
            | Bar::Fairness(limit) => value >= 0.95 * limit,
            Bar::Unneeded(limit)
            | Bar::Told(limit)
            | Bar::Held(limit)
            | Bar::CongestionEvents(limit)
            | Bar::FrameDelay(limit)
            | Bar::FrameDelayTimesOff(limit)
            | Bar::HopDelay(limit) => value <= 1.15 * limit,
            Bar::WanDrops(share) | Bar::WanDropsWorst(share) => value <= 1.15 * (1.0 + share),
        }
    }

    /// The value, and whether it is as asked.
    pub fn judge(self, runs: &Runs<'_>) -> (f64, bool) {
        match self {
            Bar::OfLossless(share) => {
                let value = ratios(runs.on, runs.lossless, goodput).median;
                at_least(value, share)
            }
            Bar::OfLosslessP10(share) => {
                at_least(ratios(runs.on, runs.lossless, goodput).p10, share)
            }
            Bar::TimesOff(times) => at_least(ratios(runs.on, runs.off, goodput).median, times),
            Bar::MeanTimesOff(times) => {
                let total = |runs: &[Outcome]| runs.iter().map(goodput).sum::<f64>();
                at_least(total(runs.on) / total(runs.off), times)
            }
            Bar::Unneeded(percent) => {
                let copies = sum(runs.on, |flow| flow.inference.copies);
                let needed = sum(runs.on, |flow| flow.inference.copies_needed);
                let packets = sum(runs.on, |flow| flow.inference.packets);
                at_most(100.0 * (copies - needed) / (packets + copies).max(1.0), percent)
            }
            Bar::Recall(share) => {
                let losses = runs.losses();
                let repaired = sum(runs.on, |flow| flow.inference.repaired);
                at_least(if losses > 0.0 { repaired / losses } else { 1.0 }, share)
            }
            Bar::Told(percent) => {
                let [told, losses] = [sum(runs.on, |f| f.told), runs.losses()];
                at_most(100.0 * told / losses.max(1.0), percent)
            }
            Bar::Held(percent) => {
                let held: u64 = runs.on.iter().map(|run| run.held).sum();
                let up = sum(runs.on, |flow| flow.up_packets);
                at_most(100.0 * held as f64 / up.max(1.0), percent)
            }
            Bar::CongestionEvents(share) => {
                let [on, off] = [runs.on, runs.off].map(|runs| sum(runs, |f| f.congestion_events));
                let value = (on - off).abs() / off.max(1.0);
                (round(value), (on - off).abs() <= share * off + 0.1 * runs.on.len() as f64)
            }
            Bar::WanDrops(share) => {
                let [on, off] = [runs.on, runs.off].map(|runs| sum(runs, |f| f.wan_dropped));
                (round(on / off.max(1.0)), on <= (1.0 + share) * off + runs.on.len() as f64)
            }
            Bar::WanDropsWorst(share) => {
                let [on, off] = [runs.on, runs.off].map(worst_drops);
                (round(on / off.max(1.0)), on <= (1.0 + share) * off + 1.0)
            }
            Bar::FrameDelay(ms) => {
                let p99 = |runs: &[Outcome]| {
                    let delays = runs.iter().flat_map(|run| &run.flows);
                    spread(delays.filter_map(|flow| Some(flow.frame_delay_ms?.p99))).median
                };
                at_most(p99(runs.on) - p99(runs.lossless), ms)
            }
            Bar::FrameDelayTimesOff(times) => {
                let total = |runs: &[Outcome]| -> f64 {
                    let delays = runs.iter().flat_map(|run| &run.flows);
                    delays.filter_map(|flow| Some(flow.frame_delay_ms?.p99)).sum()
                };
                at_most(total(runs.on) / total(runs.off), times)
            }
            Bar::Fairness(share) => at_least(ratios(runs.on, runs.off, jain).median, share),
            Bar::HopDelay(times) => at_most(ratios(runs.on, runs.off, hop_delay).median, times),
        }
    }
}

impl Runs<'_> {
    /// Packets that the hop lost in the runs with the engine.
    fn losses(&self) -> f64 {
        sum(self.on, |flow| flow.inference.losses)
    }

    /// Medians for orientation.
    pub fn goodput(&self) -> Goodput {
        let median = |runs: &[Outcome]| round(spread(runs.iter().map(goodput)).median);
        let lossless = (!self.lossless.is_empty()).then(|| median(self.lossless));
        Goodput { off: median(self.off), on: median(self.on), lossless }
    }
}

fn goodput(run: &Outcome) -> f64 {
    run.flows.iter().map(|flow| flow.goodput_mbps).sum()
}

/// Packets dropped before the router, the 95th percentile of the runs.
fn worst_drops(runs: &[Outcome]) -> f64 {
    let mut drops: Vec<u64> =
        runs.iter().map(|run| run.flows.iter().map(|flow| flow.wan_dropped).sum()).collect();
    drops.sort_unstable();
    drops.get(drops.len() * 95 / 100).copied().unwrap_or(0) as f64
}

fn hop_delay(run: &Outcome) -> f64 {
    run.flows.iter().map(|flow| flow.hop_delay_p95_ms).fold(0.0, f64::max)
}

/// Jain, Chiu, Hawe 1984.
fn jain(run: &Outcome) -> f64 {
    let sum: f64 = run.flows.iter().map(|flow| flow.goodput_mbps).sum();
    let squares: f64 = run.flows.iter().map(|flow| flow.goodput_mbps.powi(2)).sum();
    if squares > 0.0 { sum * sum / squares / run.flows.len() as f64 } else { 0.0 }
}

fn ratios(
    runs: &[Outcome],
    others: &[Outcome],
    value: fn(&Outcome) -> f64,
) -> crate::report::Spread {
    spread(runs.iter().zip(others).map(|(run, other)| {
        let other = value(other);
        if other > 0.0 { value(run) / other } else { 1.0 }
    }))
}

fn sum(runs: &[Outcome], value: fn(&FlowResult) -> u64) -> f64 {
    runs.iter().flat_map(|run| &run.flows).map(value).sum::<u64>() as f64
}

fn at_least(value: f64, bar: f64) -> (f64, bool) {
    (round(value), value >= bar)
}

fn at_most(value: f64, bar: f64) -> (f64, bool) {
    (round(value), value <= bar)
}

fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
