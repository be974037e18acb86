// SPDX-License-Identifier: GPL-2.0-or-later
//! What a stream of packets meets on a hop: the figures by which the model is held
//! against the kernel's own 802.11 stack, which is probed in the same way.

use serde::{Deserialize, Serialize};

use crate::hop::{Hop, Way};
use crate::settings::Settings;
use crate::{MS, Nanos};

/// Bytes of a packet with its IP header.
const BYTES: u32 = 1_250;
/// Packets that set out at once, as a sender's bursts come from a fast network.
const BURST: u32 = 8;
/// Between two packets of a burst: what a router of 500 MIPS takes for one, 37,000
/// instructions.
const SPACING: Nanos = 75_000;
/// Packets a second, as `test/wifi/measured.py` sends them where the air carries so many.
pub const RATE: u32 = 800;
/// Packets that arrive closer than this are a clump.
const CLUMP: Nanos = MS / 2;

/// What came of a probe.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Probe {
    /// The preset.
    pub preset: String,
    /// The seed of the air.
    pub seed: u64,
    /// How long packets set out.
    pub seconds: u32,
    /// Packets that set out.
    pub sent: u64,
    /// Those that never arrived.
    pub lost: u64,
    /// How many losses had so many packets in a row: of one, of two, ...
    pub runs: Vec<u64>,
    /// One way.
    pub delay_ms: Delays,
    /// Packets that arrived at once.
    pub clumps: Clumps,
}

/// Percentiles of the delay of what arrived.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[expect(missing_docs)]
pub struct Delays {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

/// Sizes of clumps.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[expect(missing_docs)]
pub struct Clumps {
    pub mean: f64,
    pub max: u64,
}

impl Probe {
    /// Packets a second.
    pub fn rate(&self) -> u32 {
        (self.sent / u64::from(self.seconds.max(1))) as u32
    }

    /// How many packets were lost in a row, on average; 0: none was.
    pub fn mean_run(&self) -> f64 {
        let runs: u64 = self.runs.iter().sum();
        if runs > 0 { self.lost as f64 / runs as f64 } else { 0.0 }
    }
}

/// Sends so many packets a second to a client for so many seconds.
pub fn run(preset: &str, settings: &Settings, seed: u64, seconds: u32, rate: u32) -> Probe {
    let mut hop = Hop::new(settings, 1, seed, 0);
    let sent = seconds * rate;
    let gap = Nanos::from(BURST) * 1_000 * MS / Nanos::from(rate);
    let sets_out = |number: u32| {
        let (burst, place) = (Nanos::from(number / BURST), Nanos::from(number % BURST));
        200 * MS + burst * gap + place * SPACING
    };
    let mut arrivals: Vec<Option<Nanos>> = vec![None; sent as usize];
    for number in 0..sent {
        hop.push(sets_out(number), 0, Way::Down, BYTES, number);
    }
    while let Some(at) = hop.next_event() {
        hop.advance(at);
    }
    while let Some(outcome) = hop.pop_outcome() {
        if outcome.arrived {
            arrivals[outcome.item as usize] = Some(outcome.at);
        }
    }
    let came = arrivals.iter().zip(0..).filter_map(|(at, number)| Some((*at)? - sets_out(number)));
    let mut delays: Vec<Nanos> = came.collect();
    delays.sort_unstable();
    Probe {
        preset: preset.to_owned(),
        seed,
        seconds,
        sent: u64::from(sent),
        lost: u64::from(sent) - delays.len() as u64,
        runs: runs(&arrivals),
        delay_ms: percentiles(&delays),
        clumps: clumps(arrivals.into_iter().flatten().collect()),
    }
}

fn runs(arrivals: &[Option<Nanos>]) -> Vec<u64> {
    let mut counts = Vec::new();
    let runs = arrivals.chunk_by(|a, b| a.is_none() == b.is_none());
    for length in runs.filter(|run| run[0].is_none()).map(<[_]>::len) {
        if counts.len() < length {
            counts.resize(length, 0);
        }
        counts[length - 1] += 1;
    }
    counts
}

fn percentiles(sorted: &[Nanos]) -> Delays {
    let at = |percent: usize| {
        let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(rank).map_or(0.0, |delay| *delay as f64 / MS as f64)
    };
    Delays { p50: at(50), p90: at(90), p99: at(99), max: at(100) }
}

fn clumps(mut arrivals: Vec<Nanos>) -> Clumps {
    arrivals.sort_unstable();
    let sizes = arrivals.chunk_by(|a, b| b - a < CLUMP).map(<[_]>::len);
    let (count, largest) = sizes.fold((0, 0), |(count, most), size| (count + 1, most.max(size)));
    let mean = if count > 0 { arrivals.len() as f64 / f64::from(count) } else { 0.0 };
    Clumps { mean, max: largest as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds_up() {
        let settings = Settings::preset("poor").unwrap();
        let probe = run("poor", &settings, 1, 20, RATE);
        assert_eq!((probe.sent, probe.rate()), (16_000, RATE));
        let in_runs = probe.runs.iter().zip(1..).map(|(count, length)| count * length);
        assert_eq!(in_runs.sum::<u64>(), probe.lost);
        assert!(probe.mean_run() >= 1.0 && probe.mean_run() <= probe.runs.len() as f64);
        let Delays { p50, p90, p99, max } = probe.delay_ms;
        assert!(p50 <= p90 && p90 <= p99 && p99 <= max);
        assert_eq!(probe, run("poor", &settings, 1, 20, RATE));
    }

    #[test]
    fn a_run_is_what_is_lost_in_a_row() {
        let at = |lost: bool| if lost { None } else { Some(0) };
        let arrivals: Vec<_> = [true, false, true, true, false, true].map(at).into();
        assert_eq!(runs(&arrivals), [2, 1]);
    }
}
