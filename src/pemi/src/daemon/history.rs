// SPDX-License-Identifier: GPL-2.0-or-later
//! One sample a second of the last ten minutes, and the losses of the last hour.

use std::collections::VecDeque;

use pemi_engine::Stats;
use serde_json::Value;

use crate::daemon::object::numbers;

/// Samples kept.
pub const SAMPLES: usize = 600;
const MINUTES: usize = 60;

/// What came in a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Its Unix time.
    pub t: u64,
    /// Bits to the clients.
    pub down_bps: u64,
    /// Bits from them.
    pub up_bps: u64,
    /// Losses noticed on the hop.
    pub inferred: u64,
    /// Losses repaired.
    pub repaired: u64,
    /// Losses before the router.
    pub upstream: u64,
    /// Losses that congestion made.
    pub congestion: u64,
    /// Acknowledgements held.
    pub held: u64,
    /// The median round trip between router and clients.
    pub local_rtt_us: u64,
    /// Flows known.
    pub flows: u64,
}

/// The losses of one minute, or of several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Seconds that this is about.
    pub seconds: u64,
    /// Noticed on the hop.
    pub inferred: u64,
    /// Of these: a copy arrived.
    pub repaired: u64,
    /// Lost before the router, or to congestion: not to be repaired.
    pub beyond: u64,
}

impl Losses {
    fn add(&mut self, other: &Losses) {
        self.seconds += other.seconds;
        self.inferred += other.inferred;
        self.repaired += other.repaired;
        self.beyond += other.beyond;
    }
}

/// The samples, and the counters they are differences of.
#[derive(Debug)]
pub struct History {
    samples: VecDeque<Sample>,
    /// The newest is not over yet.
    minutes: VecDeque<Losses>,
    before: Stats,
}

impl History {
    /// Nothing yet.
    pub fn new() -> History {
        History {
            samples: VecDeque::with_capacity(SAMPLES),
            minutes: VecDeque::with_capacity(MINUTES),
            before: Stats::default(),
        }
    }

    /// Takes a sample at second `t` (Unix time), and gives it; the last one was a second ago.
    pub fn sample(&mut self, t: u64, stats: &Stats) -> Sample {
        // A reset sets the counters back: the difference is then what came since.
        let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        let sample = Sample {
            t,
            down_bps: since(stats.bytes_down, self.before.bytes_down) * 8,
            up_bps: since(stats.bytes_up, self.before.bytes_up) * 8,
            inferred: since(stats.losses_inferred, self.before.losses_inferred),
            repaired: since(stats.losses_repaired, self.before.losses_repaired),
            upstream: since(stats.losses_upstream, self.before.losses_upstream),
            congestion: since(stats.losses_congestion, self.before.losses_congestion),
            held: since(stats.concealed_held, self.before.concealed_held),
            local_rtt_us: stats.local_rtt_us_p50,
            flows: stats.flows_active,
        };
        self.samples.push_back(sample);
        self.before = *stats;
        self.count(&sample);
        sample
    }

    fn count(&mut self, sample: &Sample) {
        if self.minutes.back().is_none_or(|minute| minute.seconds == 60) {
            if self.minutes.len() == MINUTES {
                self.minutes.pop_front();
            }
            self.minutes.push_back(Losses::default());
        }
        if let Some(minute) = self.minutes.back_mut() {
            minute.add(&Losses {
                seconds: 1,
                inferred: sample.inferred,
                repaired: sample.repaired,
                beyond: sample.upstream + sample.congestion,
            });
        }
    }

    /// The last hour, or what there is of it; it goes on by minutes.
    pub fn hour(&self) -> Losses {
        let mut sum = Losses::default();
        self.minutes.iter().for_each(|minute| sum.add(minute));
        sum
    }

    /// Counts the hour anew; the samples stay.
    pub fn reset(&mut self) {
        self.minutes.clear();
    }

    /// The last `seconds` samples before the newest `skip`, oldest first.
    pub fn json(&self, seconds: usize, skip: usize) -> Value {
        let end = self.samples.len().saturating_sub(skip);
        self.samples
            .range(end.saturating_sub(seconds)..end)
            .map(|s| {
                numbers(&[
                    ("t", s.t),
                    ("down_bps", s.down_bps),
                    ("up_bps", s.up_bps),
                    ("inferred", s.inferred),
                    ("repaired", s.repaired),
                    ("upstream", s.upstream),
                    ("congestion", s.congestion),
                    ("held", s.held),
                    ("local_rtt_us", s.local_rtt_us),
                    ("flows", s.flows),
                ])
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
    use serde_json::json;

    #[test]
    fn samples_are_differences_and_the_oldest_go() {
        let mut history = History::new();
        for t in 0..1000 {
            history
                .sample(t, &Stats { bytes_down: t * 125, losses_repaired: t, ..Stats::default() });
        }
        let last = history.json(2, 0);
        assert_eq!(last.as_array().unwrap().len(), 2);
        assert_eq!(
            (&last[1]["t"], &last[1]["down_bps"], &last[1]["repaired"]),
            (&json!(999), &json!(1000), &json!(1))
        );
        assert_eq!(history.json(9999, 0).as_array().unwrap().len(), SAMPLES);
    }

    #[test]
    fn the_newest_can_be_skipped() {
        let mut history = History::new();
        (1..=5).for_each(|t| {
            history.sample(t, &Stats { local_rtt_us_p50: t, ..Stats::default() });
        });
        let times = |seconds, skip| -> Vec<u64> {
            let answer = history.json(seconds, skip);
            answer.as_array().unwrap().iter().map(|s| s["t"].as_u64().unwrap()).collect()
        };
        assert_eq!(times(2, 1), [3, 4]);
        assert_eq!(times(9, 3), [1, 2]);
        assert!(times(9, 5).is_empty() && times(9, 600).is_empty());
        assert_eq!(history.json(1, 1)[0]["local_rtt_us"], 4);
    }

    #[test]
    fn losses_out_of_reach_are_differences_too() {
        let mut history = History::new();
        for (upstream, congestion) in [(3, 1), (4, 5)] {
            history.sample(
                1,
                &Stats {
                    losses_upstream: upstream,
                    losses_congestion: congestion,
                    ..Stats::default()
                },
            );
        }
        let last = &history.json(1, 0)[0];
        assert_eq!((&last["upstream"], &last["congestion"]), (&json!(1), &json!(4)));
    }

    #[test]
    fn the_hour_forgets_by_minutes_and_at_a_reset() {
        let mut history = History::new();
        let at = |t: u64| Stats {
            losses_inferred: 3 * t,
            losses_repaired: 2 * t,
            losses_congestion: t,
            ..Stats::default()
        };
        (1..=90).for_each(|t| {
            history.sample(t, &at(t));
        });
        let expected = Losses { seconds: 90, inferred: 270, repaired: 180, beyond: 90 };
        assert_eq!(history.hour(), expected);
        (91..=10_000).for_each(|t| {
            history.sample(t, &at(t));
        });
        let hour = history.hour();
        assert!((3541..=3600).contains(&hour.seconds), "{hour:?}");
        assert_eq!((hour.inferred, hour.repaired), (3 * hour.seconds, 2 * hour.seconds));
        history.reset();
        assert_eq!(history.hour(), Losses::default());
        history.sample(10_001, &at(10_001));
        assert_eq!(history.hour().inferred, 3);
    }

    #[test]
    fn a_reset_is_no_negative_number() {
        let mut history = History::new();
        history.sample(1, &Stats { bytes_up: 1000, ..Stats::default() });
        history.sample(2, &Stats { bytes_up: 10, ..Stats::default() });
        assert_eq!(history.json(1, 0)[0]["up_bps"], 80);
    }
}
