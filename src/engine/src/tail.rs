//! Losses at the end of a burst: no later packet's reply can reveal them.

use crate::rtt::LocalRtt;
use crate::time::{MS, Nanos, Time};

/// The default max_ack_delay (RFC 9000, section 18.2), and what timers of
/// client and kernel add to it.
const MAX_ACK_DELAY: Nanos = 25 * MS;
const TIMER_SLACK: Nanos = 2 * MS;

/// How sure it is that the newest packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Its time is over, but it may be waiting for the client's delayed
    /// acknowledgement: nothing tells.
    Open,
    /// Enough packets for a reply are unanswered, and their time is over.
    Overdue,
    /// Even the delayed acknowledgement of a single packet is overdue.
    Sure,
}

#[derive(Clone, Debug)]
pub(crate) struct Tail {
    deadline: Option<Time>,
    last_sent: Time,
    waited: bool,
    answered: u64,
}

impl Tail {
    pub fn new() -> Tail {
        Tail { deadline: None, last_sent: Time::ZERO, waited: false, answered: 0 }
    }

    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    pub fn sent(&mut self, now: Time, rtt: &LocalRtt) {
        self.last_sent = now;
        self.waited = false;
        self.deadline = Some(now + rtt.get() + 2 * rtt.margin());
    }

    /// A reply triggered by packet number `trigger`; `fill` if it may as well
    /// answer a copy of an earlier packet.
    pub fn replied(&mut self, now: Time, trigger: u64, fill: bool, rtt: &LocalRtt) {
        if fill {
            return;
        }
        self.answered = self.answered.max(trigger);
        if now >= self.last_sent + rtt.get() - rtt.margin() {
            self.deadline = None;
        }
    }

    /// If the deadline has passed, what that means. `sent` packets were sent;
    /// the client answers every `usual` of them.
    pub fn timeout(&mut self, now: Time, sent: u64, usual: u64, rtt: &LocalRtt) -> Option<Step> {
        if self.deadline.is_none_or(|at| at > now) {
            return None;
        }
        if self.waited {
            self.deadline = None;
            return Some(Step::Sure);
        }
        self.waited = true;
        self.deadline =
            Some(self.last_sent + rtt.get() + 2 * rtt.margin() + MAX_ACK_DELAY + TIMER_SLACK);
        Some(if sent.saturating_sub(self.answered) >= usual { Step::Overdue } else { Step::Open })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rtt() -> LocalRtt {
        let mut rtt = LocalRtt::new();
        rtt.sent(Time::ZERO, None, None);
        rtt.handshake_reply(Time::ZERO + 2 * MS);
        rtt
    }

    #[test]
    fn two_unanswered_packets_are_overdue_one_waits_for_the_delayed_ack() {
        let (mut tail, rtt) = (Tail::new(), rtt());
        tail.sent(Time::ZERO, &rtt);
        let first = tail.deadline().unwrap();
        assert!(first > Time::ZERO + rtt.get() && first < Time::ZERO + 5 * MS);
        assert_eq!(tail.timeout(first, 10, 2, &rtt), Some(Step::Overdue));

        tail.sent(Time::ZERO, &rtt);
        tail.replied(Time::ZERO + MS / 2, 9, false, &rtt);
        assert_eq!(tail.timeout(first, 10, 2, &rtt), Some(Step::Open));
        let second = tail.deadline().unwrap();
        assert!(second > Time::ZERO + 29 * MS);
        assert_eq!(tail.timeout(second, 10, 2, &rtt), Some(Step::Sure));
        assert_eq!(tail.deadline(), None);
    }

    #[test]
    fn a_reply_in_time_ends_it() {
        let (mut tail, rtt) = (Tail::new(), rtt());
        tail.sent(Time::ZERO, &rtt);
        tail.replied(Time::ZERO + 2 * MS, 10, true, &rtt);
        assert!(tail.deadline().is_some(), "it may be about another packet");
        tail.replied(Time::ZERO + 2 * MS, 10, false, &rtt);
        assert_eq!(tail.deadline(), None);
    }
}
