//! Keeps the repair from doing harm where it does not work.
//!
//! Two rules that must not be mixed up (they were, and one poisoned the other):
//! the *governor* looks at what came of the last attempts and stops holding
//! while hardly any of them heals; the *storm* rule sees many losses in a row
//! that never heal, which is what a queue overflowing before the router looks
//! like, and steps aside at once and briefly.

use crate::recent::Recent;
use crate::time::{MS, Nanos, SEC, Time};

/// Outcomes older than this say nothing about the next attempt.
const OUTCOME_AGE: Nanos = SEC;
/// This many losses given up within [`STORM_WINDOW`] make a storm.
const STORM_LOSSES: usize = 4;
const STORM_WINDOW: Nanos = 100 * MS;
/// A storm lasts this long after its last sign.
const STORM_SPAN: Nanos = 40 * MS;
/// Two size steps this close together are a sign that it goes on.
const STORM_STEP_GAP: Nanos = 15 * MS;
const STORM_PROLONGED: Nanos = 50 * MS;

#[derive(Clone, Debug)]
pub(crate) struct Governor {
    outcomes: Recent<(Time, bool), 8>,
    given_up: Recent<Time, STORM_LOSSES>,
    storm_until: Time,
    last_storm_step: Time,
}

impl Governor {
    pub fn new() -> Governor {
        Governor {
            outcomes: Recent::new(),
            given_up: Recent::new(),
            storm_until: Time::ZERO,
            last_storm_step: Time::ZERO,
        }
    }

    pub fn healed(&mut self, now: Time) {
        self.outcomes.push((now, true));
    }

    pub fn given_up(&mut self, now: Time) {
        self.outcomes.push((now, false));
        self.given_up.push(now);
        let recent = self.given_up.iter().filter(|t| now.since(*t) <= STORM_WINDOW).count();
        if recent == STORM_LOSSES {
            self.storm_until = self.storm_until.max(now + STORM_SPAN);
            self.given_up.clear();
            // What failed in the storm must not count against the time after.
            self.outcomes.clear();
        }
    }

    pub fn in_storm(&self, now: Time) -> bool {
        now < self.storm_until
    }

    /// A reply during the storm that is longer than the one before.
    pub fn storm_step(&mut self, now: Time) {
        if now.since(self.last_storm_step) < STORM_STEP_GAP {
            self.storm_until = self.storm_until.max(now + STORM_PROLONGED);
        }
        self.last_storm_step = now;
    }

    /// Whether attempts work well enough to go on holding replies.
    pub fn armed(&self, now: Time) -> bool {
        let (mut tried, mut healed) = (0, 0);
        for (at, ok) in self.outcomes.iter() {
            if now.since(at) <= OUTCOME_AGE {
                tried += 1;
                healed += u32::from(ok);
            }
        }
        tried < 6 || healed >= 2 || (tried < 8 && healed >= 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn disarms_when_nothing_heals_and_recovers_with_time() {
        let mut g = Governor::new();
        for n in 0..6 {
            assert!(g.armed(at(n * 120)));
            g.given_up(at(n * 120));
        }
        assert!(!g.armed(at(600)));
        assert!(!g.in_storm(at(600)), "120 ms apart is no storm");
        g.healed(at(610));
        assert!(g.armed(at(620)));
        g.given_up(at(720));
        assert!(!g.armed(at(730)), "one of eight");
        assert!(g.armed(at(2000)));
    }

    #[test]
    fn a_storm_clears_the_outcomes() {
        let mut g = Governor::new();
        for n in 0..8 {
            g.given_up(at(n));
        }
        assert!(g.in_storm(at(40)));
        assert!(g.armed(at(40)));
        assert!(!g.in_storm(at(60)));
    }

    #[test]
    fn steps_prolong_a_storm_only_in_pairs() {
        let mut g = Governor::new();
        for n in 0..4 {
            g.given_up(at(n));
        }
        g.storm_step(at(30));
        assert!(!g.in_storm(at(50)));
        g.storm_step(at(40));
        assert!(g.in_storm(at(80)));
    }
}
