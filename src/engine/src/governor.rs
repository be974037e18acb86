//! Keeps the repair from doing harm where it does not work.
//!
//! Two rules that must not be mixed up (they were, and one poisoned the other):
//! the *governor* looks at what came of the last attempts and stops holding
//! while hardly any of them heals; the *storm* rule sees many losses in a row
//! that never heal, which is what a queue overflowing before the router looks
//! like, and steps aside at once and briefly.

use crate::gap::SignKind;
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
/// Worth of a sign, in 256ths, below which it gets a single try: two failures
/// in a row from the start, or a repair rate below about a third.
const WEAK: u16 = 80;
/// Hope below which signs are let pass, in 256ths: one in about ten, or some 27
/// failures in a row from the start ...
const HOPELESS: u16 = 24;
/// ... but for each so-manieth.
const TRIAL_EVERY: u32 = 8;
/// After this long such a sign is tried again.
const WEAK_FOR: Nanos = 2 * SEC;

#[derive(Clone, Debug)]
pub(crate) struct Governor {
    outcomes: Recent<(Time, bool), 8>,
    given_up: Recent<Time, STORM_LOSSES>,
    storm_until: Time,
    last_storm_step: Time,
    /// How often each kind of sign was followed by a repair, in 256ths.
    worth: [u16; SignKind::COUNT],
    last_tried: [Time; SignKind::COUNT],
    /// How often attempts healed over the last few dozen, in 256ths.
    hope: u16,
    /// Signs let pass since the last one tried without hope.
    passed: u32,
}

impl Governor {
    pub fn new() -> Governor {
        Governor {
            outcomes: Recent::new(),
            given_up: Recent::new(),
            storm_until: Time::ZERO,
            last_storm_step: Time::ZERO,
            worth: [128; SignKind::COUNT],
            last_tried: [Time::ZERO; SignKind::COUNT],
            hope: 128,
            passed: 0,
        }
    }

    pub fn healed(&mut self, now: Time, kind: SignKind) {
        let worth = &mut self.worth[kind as usize];
        *worth += (256 - *worth) / 4;
        self.last_tried[kind as usize] = now;
        self.hope += (256 - self.hope) / 4;
        self.outcomes.push((now, true));
    }

    pub fn given_up(&mut self, now: Time, kind: SignKind) {
        // A sign that mostly means nothing proves nothing against the others.
        let telling = kind == SignKind::Step || !self.weak(now, kind);
        let worth = &mut self.worth[kind as usize];
        *worth -= *worth / 4;
        self.last_tried[kind as usize] = now;
        if !telling || kind == SignKind::Skip {
            return;
        }
        self.hope -= self.hope.div_ceil(16);
        self.outcomes.push((now, false));
        self.upstream(now);
    }

    /// A packet was lost before the router, or beyond repair.
    pub fn upstream(&mut self, now: Time) {
        self.given_up.push(now);
        let recent = self.given_up.iter().filter(|t| now.since(*t) <= STORM_WINDOW).count();
        if recent == STORM_LOSSES {
            self.overflow(now);
        }
    }

    /// The network before the router is dropping.
    pub fn overflow(&mut self, now: Time) {
        self.storm_until = self.storm_until.max(now + STORM_SPAN);
        self.given_up.clear();
        // What failed in the storm must not count against the time after.
        self.outcomes.clear();
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

    /// Whether a sign of this kind has mostly meant nothing on this flow. A
    /// clean step of two bytes is always worth a try: where it fails it is a
    /// loss before the router, and the storm rule's business.
    pub fn weak(&self, now: Time, kind: SignKind) -> bool {
        kind != SignKind::Step
            && self.worth[kind as usize] < WEAK
            && now.since(self.last_tried[kind as usize]) < WEAK_FOR
    }

    /// Attempts that ended lately, and how many of them healed.
    fn recent_outcomes(&self, now: Time) -> (u32, u32) {
        self.outcomes
            .iter()
            .filter(|(at, _)| now.since(*at) <= OUTCOME_AGE)
            .fold((0, 0), |(tried, healed), (_, ok)| (tried + 1, healed + u32::from(ok)))
    }

    /// Whether anything was healed after `then`.
    pub fn healed_since(&self, then: Time) -> bool {
        self.outcomes.iter().any(|(at, ok)| ok && at >= then)
    }

    /// Whether a sign is to be let pass: hardly anything healed for long, so
    /// what looks like losses is none of this hop's, and only now and then one
    /// is tried.
    pub fn lets_pass(&mut self) -> bool {
        if self.hope >= HOPELESS {
            return false;
        }
        self.passed += 1;
        if self.passed < TRIAL_EVERY {
            return true;
        }
        self.passed = 0;
        false
    }

    /// Whether attempts work well enough to go on holding replies.
    pub fn armed(&self, now: Time) -> bool {
        if self.hope < HOPELESS {
            return false;
        }
        let (tried, healed) = self.recent_outcomes(now);
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
            g.given_up(at(n * 120), SignKind::Step);
        }
        assert!(!g.armed(at(600)));
        assert!(!g.in_storm(at(600)), "120 ms apart is no storm");
        g.healed(at(610), SignKind::Step);
        assert!(g.armed(at(620)));
        g.given_up(at(720), SignKind::Step);
        assert!(!g.armed(at(730)), "one of eight");
        assert!(g.armed(at(2000)));
    }

    #[test]
    fn signs_that_mean_nothing_are_learned() {
        let mut g = Governor::new();
        for n in 0..3 {
            g.given_up(at(n * 1000), SignKind::LongStep);
            g.given_up(at(n * 1000), SignKind::Step);
        }
        assert!(g.weak(at(2500), SignKind::LongStep));
        assert!(!g.weak(at(2500), SignKind::Step) && !g.weak(at(2500), SignKind::Floor));
        assert!(!g.weak(at(4100), SignKind::LongStep), "tried again after a while");
        g.healed(at(4000), SignKind::LongStep);
        assert!(!g.weak(at(4000), SignKind::LongStep));
    }

    #[test]
    fn without_hope_only_now_and_then_a_sign_is_tried() {
        let mut g = Governor::new();
        let mut tried = 0;
        for n in 0..400 {
            if !g.lets_pass() {
                tried += 1;
                g.given_up(at(n * 200), SignKind::Step);
            }
        }
        assert!((50..80).contains(&tried), "{tried}");
        assert!(!g.armed(at(400 * 200)));
        g.healed(at(400 * 200), SignKind::Step);
        assert!(!g.lets_pass() && g.armed(at(402 * 200)), "one repair brings it back");
    }

    #[test]
    fn a_storm_clears_the_outcomes() {
        let mut g = Governor::new();
        for n in 0..8 {
            g.given_up(at(n), SignKind::Step);
        }
        assert!(g.in_storm(at(40)));
        assert!(g.armed(at(40)));
        assert!(!g.in_storm(at(60)));
    }

    #[test]
    fn steps_prolong_a_storm_only_in_pairs() {
        let mut g = Governor::new();
        for n in 0..4 {
            g.given_up(at(n), SignKind::Step);
        }
        g.storm_step(at(30));
        assert!(!g.in_storm(at(50)));
        g.storm_step(at(40));
        assert!(g.in_storm(at(80)));
    }
}
