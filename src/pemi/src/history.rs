//! One sample a second of the last ten minutes.

use std::collections::VecDeque;

use pemi_engine::Stats;
use serde_json::{Value, json};

/// Samples kept.
pub const SAMPLES: usize = 600;

#[derive(Clone, Copy, Debug)]
struct Sample {
    t: u64,
    down_bps: u64,
    up_bps: u64,
    inferred: u64,
    repaired: u64,
    held: u64,
    flows: u64,
}

/// The samples, and the counters they are differences of.
#[derive(Debug)]
pub struct History {
    samples: VecDeque<Sample>,
    before: Stats,
}

impl History {
    /// Nothing yet.
    pub fn new() -> History {
        History { samples: VecDeque::with_capacity(SAMPLES), before: Stats::default() }
    }

    /// Takes a sample at second `t` (Unix time); the last one was a second ago.
    pub fn sample(&mut self, t: u64, stats: &Stats) {
        // A reset sets the counters back: the difference is then what came since.
        let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample {
            t,
            down_bps: since(stats.bytes_down, self.before.bytes_down) * 8,
            up_bps: since(stats.bytes_up, self.before.bytes_up) * 8,
            inferred: since(stats.losses_inferred, self.before.losses_inferred),
            repaired: since(stats.losses_repaired, self.before.losses_repaired),
            held: since(stats.concealed_held, self.before.concealed_held),
            flows: stats.flows_active,
        });
        self.before = *stats;
    }

    /// The last `seconds` samples, oldest first.
    pub fn json(&self, seconds: usize) -> Value {
        let skip = self.samples.len().saturating_sub(seconds);
        self.samples
            .iter()
            .skip(skip)
            .map(|s| {
                json!({"t": s.t, "down_bps": s.down_bps, "up_bps": s.up_bps, "inferred": s.inferred,
                    "repaired": s.repaired, "held": s.held, "flows": s.flows})
            })
            .collect()
    }
}

impl Default for History {
    fn default() -> Self {
        History::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_differences_and_the_oldest_go() {
        let mut history = History::new();
        for t in 0..1000 {
            history
                .sample(t, &Stats { bytes_down: t * 125, losses_repaired: t, ..Stats::default() });
        }
        let last = history.json(2);
        assert_eq!(last.as_array().unwrap().len(), 2);
        assert_eq!(
            (&last[1]["t"], &last[1]["down_bps"], &last[1]["repaired"]),
            (&json!(999), &json!(1000), &json!(1))
        );
        assert_eq!(history.json(9999).as_array().unwrap().len(), SAMPLES);
    }

    #[test]
    fn a_reset_is_no_negative_number() {
        let mut history = History::new();
        history.sample(1, &Stats { bytes_up: 1000, ..Stats::default() });
        history.sample(2, &Stats { bytes_up: 10, ..Stats::default() });
        assert_eq!(history.json(1)[0]["up_bps"], 80);
    }
}
