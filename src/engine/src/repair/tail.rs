// SPDX-License-Identifier: GPL-2.0-or-later
//! Losses at the end of a burst: no later packet's reply can reveal them.

use crate::measure::margin::Margin;
use crate::measure::rtt::LocalRtt;
use crate::time::{MS, Nanos, SEC, Time};

/// The default max_ack_delay (RFC 9000, section 18.2).
const MAX_ACK_DELAY: Nanos = 25 * MS;
/// What timers of client and kernel add to it (chosen: two ticks of a kernel with 1,000 Hz).
const TIMER_SLACK: Nanos = 2 * MS;
/// A packet is lost when its reply is late by this many times the margin (chosen: no later packet
/// confirms it).
const MARGINS: Nanos = 2;
/// While a client stays silent its hop may be away, and its newest packet goes again after this part
/// of the silence (chosen: when the hop is back, that shows a quarter later than it could at most,
/// and a second takes fifteen copies) ...
const SILENCE_PART: Nanos = 4;
/// ... but no sooner than this (chosen: a busy radio keeps packets back for longer than the time for
/// which an acknowledgement may be delayed, and a sender goes on for longer by itself) ...
const AWAY_SOONEST: Nanos = 50 * MS;
/// ... and doubled as often as it was in vain, up to this often (chosen: nearly a second) ...
const MOST_VAIN: u32 = 5;
/// ... and for no longer than this (chosen: a third of the time after which connections usually die).
const AWAY_LONGEST: Nanos = 10 * SEC;

/// A packet shorter than the longest ones by less than this is as long as they may be (chosen: fields
/// of headers that grow).
const NEARLY_FULL: u16 = 16;

/// How sure it is that the newest packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Its time is over, but the client may be delaying its acknowledgement: nothing tells
    /// one from the other.
    Open,
    /// Enough packets for a reply are unacknowledged, and their time is over.
    Overdue,
    /// Even the delayed acknowledgement of a single packet is overdue.
    Sure,
}

/// A copy that may be sent for the newest packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copy {
    /// On mere suspicion, which has a share of its own.
    Suspected,
    /// In place of one that a repair has earned.
    Earned,
}

impl Step {
    /// Which copy goes, if any; `first` if none has gone so far, and whether the budget
    /// has one of either kind left. Only when the loss is sure the packet goes again and
    /// again.
    pub fn copy(self, first: bool, speculative: bool, earned: bool) -> Option<Copy> {
        match self {
            Step::Open => (first && speculative).then_some(Copy::Suspected),
            Step::Overdue => (first && earned).then_some(Copy::Earned),
            Step::Sure => earned.then_some(Copy::Earned),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Tail {
    deadline: Option<Time>,
    last_sent: Time,
    waited: bool,
    /// Even the delayed acknowledgement did not come.
    away: bool,
    /// Silences in a row after which the client had missed nothing, as far as that is known.
    vain: u32,
    acknowledged: u64,
    /// Length of the longest packets of late.
    full: u16,
    /// The newest packet is shorter: the sender has no more to send for now.
    ended: bool,
}

impl Tail {
    pub fn new() -> Tail {
        Tail {
            deadline: None,
            last_sent: Time::ZERO,
            waited: false,
            away: false,
            vain: 0,
            acknowledged: 0,
            full: 0,
            ended: false,
        }
    }

    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Whether a client has been silent for so long that its hop is away rather than busy.
    pub fn gone(&self, silence: Nanos) -> bool {
        self.away && silence >= AWAY_SOONEST
    }

    /// Whether the hop seems to be away.
    pub fn away(&self) -> bool {
        self.away
    }

    /// A packet of `len` bytes is sent on.
    pub fn sent(&mut self, now: Time, len: usize, rtt: &LocalRtt) {
        self.measure(u16::try_from(len).unwrap_or(u16::MAX));
        self.last_sent = now;
        self.waited = false;
        self.deadline = Some(now + rtt.get() + MARGINS * rtt.within(Margin::Overdue));
    }

    /// The packet in question asked for an acknowledgement, and nothing has come for this long: asks
    /// again later whether the hop is still away.
    pub fn ask_again(&mut self, now: Time, silence: Nanos) {
        if self.away && silence < AWAY_LONGEST {
            let soonest = AWAY_SOONEST << self.vain;
            self.deadline = Some(now + (silence / SILENCE_PART).max(soonest));
        }
    }

    /// What the hop missed while it was away is being sent again: it was worth asking.
    pub fn missed(&mut self) {
        self.vain = 0;
    }

    /// A reply triggered by packet number `trigger`; `copy_due` if a copy of an earlier packet may
    /// as well have triggered it.
    pub fn replied(&mut self, now: Time, trigger: u64, copy_due: bool, rtt: &LocalRtt) {
        if core::mem::take(&mut self.away) {
            self.deadline = None;
            self.vain = (self.vain + 1).min(MOST_VAIN);
        }
        if copy_due {
            return;
        }
        self.acknowledged = self.acknowledged.max(trigger);
        if now >= self.last_sent + rtt.get() - rtt.within(Margin::Overdue) {
            self.deadline = None;
        }
    }

    /// What a sender has been told not to send yet follows, and shows whether this one was lost:
    /// it ends with as long a packet as fits. A probe for longer ones that did not fit is forgotten.
    fn measure(&mut self, len: u16) {
        if len > self.full / 2 {
            self.full = self.full.saturating_sub(1);
        }
        self.full = self.full.max(len);
        self.ended = len.saturating_add(NEARLY_FULL) < self.full;
    }

    /// Whether the newest packet is the last one that the sender had.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// If the deadline has passed, what that means. `sent` packets were sent;
    /// the client acknowledges every `usual` of them.
    pub fn timeout(&mut self, now: Time, sent: u64, usual: u64, rtt: &LocalRtt) -> Option<Step> {
        if self.deadline.is_none_or(|at| at > now) {
            return None;
        }
        if self.waited {
            self.deadline = None;
            self.away = true;
            return Some(Step::Sure);
        }
        self.waited = true;
        self.deadline = Some(
            self.last_sent
                + rtt.get()
                + MARGINS * rtt.within(Margin::Overdue)
                + MAX_ACK_DELAY
                + TIMER_SLACK,
        );
        Some(if sent.saturating_sub(self.acknowledged) >= usual {
            Step::Overdue
        } else {
            Step::Open
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunables::Tunables;
    use alloc::vec::Vec;

    const FULL: usize = 1228;

    fn rtt() -> LocalRtt {
        let mut rtt = LocalRtt::new(Tunables::DEFAULT);
        rtt.sent(Time::ZERO, None, None);
        rtt.handshake_reply(Time::ZERO + 2 * MS);
        rtt
    }

    #[test]
    fn two_unacknowledged_packets_are_overdue_one_waits_for_the_delayed_ack() {
        let (mut tail, rtt) = (Tail::new(), rtt());
        tail.sent(Time::ZERO, FULL, &rtt);
        let first = tail.deadline().unwrap();
        assert!(first > Time::ZERO + rtt.get() && first < Time::ZERO + 5 * MS);
        assert_eq!(tail.timeout(first, 10, 2, &rtt), Some(Step::Overdue));

        tail.sent(Time::ZERO, FULL, &rtt);
        tail.replied(Time::ZERO + MS / 2, 9, false, &rtt);
        assert_eq!(tail.timeout(first, 10, 2, &rtt), Some(Step::Open));
        let second = tail.deadline().unwrap();
        assert!(second > Time::ZERO + 29 * MS);
        assert_eq!(tail.timeout(second, 10, 2, &rtt), Some(Step::Sure));
        assert_eq!(tail.deadline(), None);
    }

    #[test]
    fn the_surer_the_loss_the_more_may_go() {
        assert_eq!(Step::Open.copy(true, true, false), Some(Copy::Suspected));
        assert_eq!(Step::Open.copy(true, false, true), None);
        assert_eq!(Step::Overdue.copy(true, false, true), Some(Copy::Earned));
        assert_eq!(Step::Overdue.copy(false, true, true), None, "it went already");
        assert_eq!(Step::Sure.copy(false, false, true), Some(Copy::Earned));
        assert_eq!(Step::Sure.copy(true, true, false), None);
    }

    #[test]
    fn a_silent_client_is_asked_less_and_less_often_until_anything_comes() {
        let (mut tail, rtt) = (Tail::new(), rtt());
        tail.ask_again(Time::ZERO, MS);
        assert_eq!(tail.deadline(), None, "nothing was sent");
        tail.sent(Time::ZERO, FULL, &rtt);
        let mut asked = Vec::new();
        while let Some(now) = tail.deadline() {
            if tail.timeout(now, 10, 2, &rtt) == Some(Step::Sure) {
                tail.ask_again(now, now.since(Time::ZERO));
                asked.push(now.since(Time::ZERO) / MS);
            }
        }
        assert!(asked.windows(3).all(|n| n[2] - n[1] >= n[1] - n[0]));
        assert!((10..18).contains(&asked.iter().filter(|at| **at < 1000).count()), "{asked:?}");
        assert!(asked.len() < 30 && asked.last().is_some_and(|at| *at > 9000));

        tail.sent(Time::ZERO, FULL, &rtt);
        while !tail.away() {
            let now = tail.deadline().unwrap();
            tail.timeout(now, 10, 2, &rtt);
            tail.ask_again(now, now.since(Time::ZERO));
        }
        tail.replied(Time::ZERO + 50 * MS, 1, true, &rtt);
        assert!(!tail.away() && tail.deadline().is_none(), "whatever it was about");
    }

    #[test]
    fn a_burst_that_ends_with_a_full_packet_goes_on() {
        let (mut tail, rtt) = (Tail::new(), rtt());
        let mut ended = |len| {
            tail.sent(Time::ZERO, len, &rtt);
            tail.ended()
        };
        assert!(!ended(FULL) && !ended(FULL - 3) && ended(700) && !ended(FULL));
        assert!(ended(200) && ended(200), "what a call sends has an end each time");
        assert!(!ended(1480) && ended(FULL), "a probe for a longer one");
        assert!((0..300).any(|_| !ended(FULL)), "that nobody has answered");
    }

    #[test]
    fn a_reply_in_time_ends_it() {
        let (mut tail, rtt) = (Tail::new(), rtt());
        tail.sent(Time::ZERO, FULL, &rtt);
        tail.replied(Time::ZERO + 2 * MS, 10, true, &rtt);
        assert!(tail.deadline().is_some(), "it may be about another packet");
        tail.replied(Time::ZERO + 2 * MS, 10, false, &rtt);
        assert_eq!(tail.deadline(), None);
    }
}
