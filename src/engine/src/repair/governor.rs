// SPDX-License-Identifier: GPL-2.0-or-later
//! Keeps the repair from doing harm where it does not work.
//!
//! Two rules stand side by side and must not share what they learn:
//! the *governor* looks at what came of the last attempts and stops holding
//! while hardly any of them closes a gap; the *storm* rule sees many losses in a row
//! that no copy repairs, which is what a queue overflowing before the router looks
//! like, and steps aside at once and briefly.

use crate::infer::sign::SignKind;
use crate::store::recent::Recent;
use crate::time::{MS, Nanos, SEC, Time};
use crate::tunables::Tunables;

/// Outcomes older than this say nothing about the next attempt (chosen: the hop has changed by
/// then).
const OUTCOME_AGE: Nanos = SEC;
/// Outcomes that are looked at (chosen: those of one bad second).
const OUTCOMES: usize = 8;
/// With this many outcomes it takes one repair to go on holding, with all of them two (chosen:
/// what one failure costs is a quarter of what a repair gains).
const OUTCOMES_TELL: u32 = 6;
/// Abandoned gaps that make a storm (chosen: as many as RFC 9002's packet threshold, and one).
const STORM_LOSSES: usize = 4;
/// Two size steps within so many packets are a sign that a storm goes on (chosen: a full queue
/// drops several packets in a row) ...
const STORM_STEP_PACKETS: u64 = 12;
/// ... for this long (chosen: about a round trip).
const STORM_PROLONGED: Nanos = 50 * MS;
/// No sign of a storm makes it last longer than this share of the sender's round trip, in percent
/// (chosen: the sender has reacted after one, and what it had sent before is through by then).
const STORM_PERCENT: Nanos = 150;
/// A reply this much above the usual size shows one more gap: two fields of one byte each (RFC
/// 9000, section 19.3.1).
const ONE_MORE_RANGE: i32 = 2;
/// Certainty, in the 256ths in which worth is counted.
const CERTAIN: u16 = 256;
/// A repair takes worth nearer to certainty by one part in this many, and a failure to nothing
/// (chosen: two failures from the start make a sign weak).
const OUTCOME_PART: u16 = 4;

#[derive(Clone, Debug)]
pub(crate) struct Governor {
    tunables: Tunables,
    outcomes: Recent<(Time, bool), OUTCOMES>,
    /// How many packets were sent on when gaps were abandoned.
    abandoned: Recent<u64, STORM_LOSSES>,
    storm_until: Time,
    last_storm_step: u64,
    /// Packets sent on so far.
    packets: u64,
    /// The sender's.
    round_trip: Nanos,
    /// How often each kind of sign was followed by a repair, in 256ths.
    worth: [u16; SignKind::COUNT],
    last_tried: [Time; SignKind::COUNT],
}

impl Governor {
    pub fn new(tunables: Tunables) -> Governor {
        Governor {
            tunables,
            outcomes: Recent::new(),
            abandoned: Recent::new(),
            storm_until: Time::ZERO,
            last_storm_step: 0,
            packets: 0,
            round_trip: Nanos::MAX / 4,
            worth: [CERTAIN / 2; SignKind::COUNT],
            last_tried: [Time::ZERO; SignKind::COUNT],
        }
    }

    /// A packet was sent on, and was one of so many; this is the sender's round trip.
    pub fn forwarded(&mut self, packets: u64, round_trip: Nanos) {
        self.packets = packets;
        self.round_trip = round_trip;
    }

    /// The sender's, without queues, and very long where it is not known.
    pub fn round_trip(&self) -> Nanos {
        self.round_trip
    }

    /// What begins or prolongs a storm lets it last for `span`, or until the sender has reacted.
    // Inlined it takes 450 bytes more on MIPS.
    #[inline(never)]
    fn storm_for(&self, span: Nanos) -> Nanos {
        span.min(self.round_trip / 100 * STORM_PERCENT)
    }

    pub fn closed(&mut self, now: Time, kind: SignKind) {
        let worth = &mut self.worth[kind as usize];
        *worth += (CERTAIN - *worth) / OUTCOME_PART;
        self.last_tried[kind as usize] = now;
        self.outcomes.push((now, true));
    }

    pub fn abandoned(&mut self, now: Time, kind: SignKind) {
        // A sign that mostly means nothing proves nothing against the others.
        let telling = kind == SignKind::Step || !self.weak(now, kind);
        self.meant_nothing(now, kind);
        if !telling || kind == SignKind::Skip {
            return;
        }
        self.outcomes.push((now, false));
        self.upstream(now);
    }

    /// A sign of this kind was no loss of the hop's.
    #[inline(never)]
    pub fn meant_nothing(&mut self, now: Time, kind: SignKind) {
        let worth = &mut self.worth[kind as usize];
        *worth -= *worth / OUTCOME_PART;
        self.last_tried[kind as usize] = now;
    }

    /// A packet was lost before the router, or beyond repair.
    pub fn upstream(&mut self, now: Time) {
        self.abandoned.push(self.packets);
        let window = self.tunables.storm_packets();
        let recent = self.abandoned.iter().filter(|at| at.saturating_add(window) > self.packets);
        if recent.count() == STORM_LOSSES {
            self.begin_storm(now);
        }
    }

    /// The network before the router is dropping.
    pub fn begin_storm(&mut self, now: Time) {
        self.storm_until = self.storm_until.max(now + self.storm_for(self.tunables.storm_span()));
        self.abandoned.clear();
        // What failed in the storm must not count against the time after.
        self.outcomes.clear();
    }

    pub fn in_storm(&self, now: Time) -> bool {
        now < self.storm_until
    }

    /// Whether a storm is on, and takes note of a reply that is this many bytes
    /// above the usual or out of step with the client's rhythm and may prolong it.
    pub fn storms(&mut self, now: Time, excess: i32, out_of_step: bool) -> bool {
        let storm = self.in_storm(now);
        if storm && (excess >= ONE_MORE_RANGE || out_of_step) {
            self.storm_step(now);
        }
        storm
    }

    fn storm_step(&mut self, now: Time) {
        if self.packets < self.last_storm_step.saturating_add(STORM_STEP_PACKETS) {
            self.storm_until = self.storm_until.max(now + self.storm_for(STORM_PROLONGED));
        }
        self.last_storm_step = self.packets;
    }

    /// Whether this many open gaps are a storm: since the oldest of them was `opened` none has
    /// closed.
    pub fn storm_begins(&self, open: usize, opened: Time) -> bool {
        open >= self.tunables.storm_gaps() && !self.closed_since(opened)
    }

    /// Whether a sign of this kind has mostly meant nothing on this flow. A
    /// clean step of two bytes is always worth a try: where it fails it is a
    /// loss before the router, and the storm rule's business.
    // Inlined it takes 336 bytes more on MIPS.
    #[inline(never)]
    pub fn weak(&self, now: Time, kind: SignKind) -> bool {
        kind != SignKind::Step
            && self.worth[kind as usize] < self.tunables.weak_worth()
            && now.since(self.last_tried[kind as usize]) < self.tunables.weak_for()
    }

    /// Attempts that ended lately, and how many of them closed their gap.
    fn recent_outcomes(&self, now: Time) -> (u32, u32) {
        self.outcomes
            .iter()
            .filter(|(at, _)| now.since(*at) <= OUTCOME_AGE)
            .fold((0, 0), |(tried, closed), (_, ok)| (tried + 1, closed + u32::from(ok)))
    }

    /// Whether any gap has closed since `then`.
    fn closed_since(&self, then: Time) -> bool {
        self.outcomes.iter().any(|(at, ok)| ok && at >= then)
    }

    /// Whether attempts work well enough to go on holding replies.
    pub fn armed(&self, now: Time) -> bool {
        let (tried, closed) = self.recent_outcomes(now);
        tried < OUTCOMES_TELL || closed >= 2 || (tried < OUTCOMES as u32 && closed >= 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn disarms_when_nothing_closes_and_recovers_with_time() {
        let mut g = Governor::new(Tunables::DEFAULT);
        for n in 0..6 {
            assert!(g.armed(at(n * 120)));
            g.forwarded(n * 100, 50 * MS);
            g.abandoned(at(n * 120), SignKind::Step);
        }
        assert!(!g.armed(at(600)));
        assert!(!g.in_storm(at(600)), "100 packets apart is no storm");
        g.closed(at(610), SignKind::Step);
        assert!(g.armed(at(620)));
        g.abandoned(at(720), SignKind::Step);
        assert!(!g.armed(at(730)), "one of eight");
        assert!(g.armed(at(2000)));
    }

    #[test]
    fn signs_that_mean_nothing_are_learned() {
        let mut g = Governor::new(Tunables::DEFAULT);
        for n in 0..3 {
            g.abandoned(at(n * 1000), SignKind::LongStep);
            g.abandoned(at(n * 1000), SignKind::Step);
        }
        assert!(g.weak(at(2500), SignKind::LongStep));
        assert!(!g.weak(at(2500), SignKind::Step) && !g.weak(at(2500), SignKind::Floor));
        assert!(!g.weak(at(4100), SignKind::LongStep), "tried again after a while");
        g.closed(at(4000), SignKind::LongStep);
        assert!(!g.weak(at(4000), SignKind::LongStep));
    }

    #[test]
    fn what_passed_by_itself_tells_of_its_kind_of_sign_and_of_nothing_else() {
        let mut g = Governor::new(Tunables::DEFAULT);
        for n in 0..8 {
            assert_eq!(g.weak(at(n), SignKind::Floor), n >= 2);
            g.meant_nothing(at(n), SignKind::Floor);
        }
        assert!(!g.weak(at(9), SignKind::LongStep));
        assert!(g.armed(at(9)) && !g.in_storm(at(9)), "nothing was lost before the router");
    }

    #[test]
    fn a_storm_clears_the_outcomes() {
        let mut g = Governor::new(Tunables::DEFAULT);
        for n in 0..8 {
            g.abandoned(at(n), SignKind::Step);
        }
        assert!(g.in_storm(at(40)));
        assert!(g.armed(at(40)));
        assert!(!g.in_storm(at(60)));
    }

    #[test]
    fn many_open_gaps_are_a_storm_unless_one_closed() {
        let mut g = Governor::new(Tunables::DEFAULT);
        assert!(!g.storm_begins(2, at(10)) && g.storm_begins(3, at(10)));
        g.closed(at(9), SignKind::Step);
        assert!(g.storm_begins(3, at(10)), "that was before the first of them");
        g.closed(at(10), SignKind::Step);
        assert!(!g.storm_begins(3, at(10)));
    }

    #[test]
    fn steps_prolong_a_storm_only_in_pairs() {
        let mut g = Governor::new(Tunables::DEFAULT);
        for n in 0..4 {
            g.abandoned(at(n), SignKind::Step);
        }
        g.forwarded(20, 50 * MS);
        assert!(g.storms(at(30), 2, false) && g.storms(at(35), 1, false));
        assert!(!g.in_storm(at(50)));
        g.forwarded(31, 50 * MS);
        assert!(g.storms(at(40), 1, true));
        assert!(g.in_storm(at(80)));
    }

    #[test]
    fn a_storm_is_over_when_the_sender_has_reacted() {
        let mut g = Governor::new(Tunables::DEFAULT);
        g.forwarded(1, 10 * MS);
        g.begin_storm(at(0));
        assert!(g.in_storm(at(14)) && !g.in_storm(at(15)));
    }
}
