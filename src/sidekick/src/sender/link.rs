// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether the router answers, and what is to be said to it when.

use std::time::Duration;

use pemi_quack::{Interval, Reason};

use super::State;
use super::ledger::Outcome;

/// Until a router is asked again that has not answered; doubled each time.
const RETRY: Duration = Duration::from_secs(1);
/// But not longer than this.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Until a router is asked again that answered a moment ago.
const PROBE: Duration = Duration::from_millis(200);
/// So many HELLOs without an answer, and it is taken to be gone.
const UNANSWERED: u32 = 3;
/// After it said that it cannot do what is wanted: until it is configured otherwise.
const UNSUPPORTED: Duration = Duration::from_secs(60);
/// QuACKs without any sense in a row before the router is told to begin anew.
const SENSELESS: u32 = 3;
/// And the least time between two times of saying so.
const RESET_EVERY: Duration = Duration::from_secs(1);
/// How long messages of the counting before may still be under way.
const LATE: Duration = Duration::from_secs(2);
/// COOKIEs that are answered at once until an ACCEPT comes; a router that has no other
/// answer is asked as one that has none.
const COOKIES: u32 = 3;
/// Packets and time without a quACK after which something must be wrong.
const STALL_PACKETS: u64 = 10;
const STALL: Duration = Duration::from_millis(200);
/// For how many intervals it must be missing.
const STALL_INTERVALS: u16 = 4;
/// Without losses, an adaptive router is silent for longer.
const STALL_ADAPTIVE: (u64, Duration) = (32, Duration::from_millis(500));
/// How long it is worth waiting for a quACK that may clear a packet.
const SOON: Duration = Duration::from_millis(5);
/// Packets after which an adaptive router surely has sent one.
const ADAPTIVE_PACKETS: u16 = 32;
/// If the router says that all is well, it takes up to so many times as long next time.
const PATIENCE_MAX: u32 = 64;

/// What to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Hello { cookie: u64 },
    Reset { epoch: u32 },
    Bye,
}

/// The counting that quACKs are about.
#[derive(Clone, Copy, Debug)]
struct Counting {
    epoch: u32,
    /// The last quACK's.
    sequence: Option<u16>,
}

/// Timers and what the router said.
pub(super) struct Link {
    state: State,
    cookie: u64,
    cookies: u32,
    interval: Interval,
    lifetime: Duration,
    counting: Option<Counting>,
    /// The counting before, and until when to expect messages about it.
    previous: Option<(u32, Duration)>,
    /// When to say HELLO.
    next_hello: Duration,
    retry: Duration,
    unanswered: u32,
    /// When the router said anything that makes sense.
    heard: Duration,
    /// When a quACK came, or counting began, and packets sent since.
    quacked: Duration,
    packets: u64,
    /// When the last packet was sent, and how long usually after the one before.
    sent: Duration,
    gap: Duration,
    patience: u32,
    senseless: u32,
    reset: Option<u32>,
    reset_at: Option<Duration>,
    fallbacks: u64,
    bye: bool,
}

/// Does not panic, whatever the times.
fn after(now: Duration, wait: Duration) -> Duration {
    now.saturating_add(wait)
}

impl Link {
    pub(super) fn new(interval: Interval) -> Link {
        Link {
            state: State::Asking,
            cookie: 0,
            cookies: 0,
            interval,
            lifetime: Duration::ZERO,
            counting: None,
            previous: None,
            next_hello: Duration::ZERO,
            retry: RETRY,
            unanswered: 0,
            heard: Duration::ZERO,
            quacked: Duration::ZERO,
            packets: 0,
            sent: Duration::ZERO,
            gap: Duration::ZERO,
            patience: 1,
            senseless: 0,
            reset: None,
            reset_at: None,
            fallbacks: 0,
            bye: false,
        }
    }

    pub(super) fn fallbacks(&self) -> u64 {
        self.fallbacks
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state == State::Closed
    }

    pub(super) fn state(&self, now: Duration) -> State {
        match self.state {
            State::Running if self.is_silent(now) => State::Asking,
            state => state,
        }
    }

    /// The session has ended at the router, or so it seems.
    fn is_silent(&self, now: Duration) -> bool {
        now > after(self.heard, self.lifetime.max(RETRY))
    }

    /// Neither answers nor quACKs.
    fn is_gone(&self, now: Duration) -> bool {
        self.unanswered >= UNANSWERED
            && now >= self.next_hello
            && now >= after(self.heard, PROBE * UNANSWERED)
    }

    pub(super) fn close(&mut self) {
        self.bye = self.bye || (!self.is_closed() && self.cookie != 0);
        self.state = State::Closed;
    }

    pub(super) fn next_timeout(&self) -> Option<Duration> {
        if self.bye || (self.reset.is_some() && !self.is_closed()) {
            return Some(Duration::ZERO);
        }
        (!self.is_closed()).then_some(self.next_hello)
    }

    pub(super) fn poll(&mut self, now: Duration) -> Option<Turn> {
        if self.is_closed() {
            return core::mem::take(&mut self.bye).then_some(Turn::Bye);
        }
        if self.state == State::Running && (self.is_silent(now) || self.is_gone(now)) {
            self.fall_back();
        }
        if let Some(epoch) = self.reset.take() {
            return Some(Turn::Reset { epoch });
        }
        if now < self.next_hello {
            return None;
        }
        let mut wait = PROBE;
        if self.state != State::Running || self.unanswered >= UNANSWERED {
            wait = self.retry;
            self.retry = (self.retry * 2).min(RETRY_MAX);
        }
        self.unanswered = self.unanswered.saturating_add(1);
        self.next_hello = after(now, wait);
        Some(Turn::Hello { cookie: self.cookie })
    }

    fn fall_back(&mut self) {
        self.state = State::Asking;
        self.fallbacks += 1;
        self.retry = RETRY;
        self.cookies = 0;
    }

    /// A packet that the router counts, if it is there.
    pub(super) fn on_sent(&mut self, now: Duration) {
        self.packets = self.packets.saturating_add(1);
        let gap = now.saturating_sub(self.sent).min(SOON);
        self.gap = self.gap - self.gap / 8 + gap / 8;
        self.sent = now;
        if self.state != State::Running || self.unanswered > 0 {
            return;
        }
        let (packets, time) = match self.interval {
            Interval::Packets(every) => {
                (u64::from(every.get()) * u64::from(STALL_INTERVALS), Duration::ZERO)
            }
            Interval::Millis(every) => {
                (0, Duration::from_millis(every.get().into()) * u32::from(STALL_INTERVALS))
            }
            Interval::Adaptive => STALL_ADAPTIVE,
            Interval::Router => (0, Duration::ZERO),
        };
        let (packets, time) = (packets.max(STALL_PACKETS), time.max(STALL));
        if self.packets >= packets * u64::from(self.patience)
            && now >= after(self.quacked, time * self.patience)
        {
            self.next_hello = self.next_hello.min(now);
        }
    }

    pub(super) fn on_cookie(&mut self, now: Duration, cookie: u64) {
        self.cookie = cookie;
        if self.cookies < COOKIES {
            self.cookies += 1;
            self.heard = now;
            self.unanswered = 0;
            self.next_hello = now;
        }
    }

    /// Whether another counting has begun.
    pub(super) fn on_accept(
        &mut self,
        now: Duration,
        interval: Interval,
        lifetime_s: u16,
        epoch: u32,
    ) -> bool {
        // A cookie was wanted: cookies have changed, as they do from time to time, or the
        // router has forgotten the session and begun anew, perhaps even with the number
        // that the last counting had. Then its quACKs will fit neither way.
        let forgot = self.cookies > 0;
        if !forgot && self.is_late(now, epoch) {
            return false;
        }
        let mut new = false;
        match &mut self.counting {
            Some(counting) if counting.epoch == epoch => {
                if forgot {
                    counting.sequence = None;
                }
                self.patience = (self.patience * 2).min(PATIENCE_MAX);
            }
            _ => {
                self.begin(now, epoch);
                self.patience = 1;
                new = true;
            }
        }
        // QuACKs are waited for from now on.
        (self.quacked, self.packets) = (now, 0);
        self.state = State::Running;
        self.interval = interval;
        self.lifetime = Duration::from_secs(lifetime_s.into());
        self.heard = now;
        self.cookies = 0;
        self.unanswered = 0;
        self.retry = RETRY;
        self.next_hello = after(now, (self.lifetime / 3).max(PROBE));
        new
    }

    pub(super) fn on_refuse(&mut self, now: Duration, reason: Reason) {
        if self.state == State::Running {
            self.fall_back();
        }
        self.state = State::Refused;
        self.cookies = 0;
        self.unanswered = 0;
        self.next_hello = after(now, if reason == Reason::Full { RETRY_MAX } else { UNSUPPORTED });
    }

    pub(super) fn on_bye(&mut self, now: Duration) {
        if self.state == State::Running {
            self.fall_back();
            // It may be there again soon.
            self.next_hello = after(now, PROBE);
        }
    }

    /// By when the next quACK can be expected; one that waits for packets, only if it
    /// comes soon.
    pub(super) fn next_quack(&self, now: Duration) -> Duration {
        let packets = match self.interval {
            Interval::Millis(every) => {
                return after(now, Duration::from_millis(every.get().into()));
            }
            Interval::Packets(every) => every.get(),
            Interval::Adaptive | Interval::Router => ADAPTIVE_PACKETS,
        };
        after(now, (self.gap * u32::from(packets)).min(SOON))
    }

    /// None: old news. Otherwise whether another counting has begun.
    pub(super) fn on_quack(&mut self, now: Duration, sequence: u16, epoch: u32) -> Option<bool> {
        let late = self.is_late(now, epoch);
        let mut new = false;
        match &mut self.counting {
            Some(counting) if counting.epoch == epoch => {
                let ahead = |last: u16| (1..0x8000).contains(&sequence.wrapping_sub(last));
                if !counting.sequence.is_none_or(ahead) {
                    return None;
                }
                counting.sequence = Some(sequence);
            }
            _ if late => return None,
            // The ACCEPT was lost, or is on its way.
            _ => {
                self.begin(now, epoch);
                self.counting = Some(Counting { epoch, sequence: Some(sequence) });
                new = true;
            }
        }
        if self.state != State::Running {
            self.state = State::Running;
            self.unanswered = 0;
        }
        self.heard = now;
        self.cookies = 0;
        (self.quacked, self.packets) = (now, 0);
        self.patience = (self.patience / 2).max(1);
        Some(new)
    }

    fn begin(&mut self, now: Duration, epoch: u32) {
        let other = self.counting.filter(|counting| counting.epoch != epoch);
        self.previous = other.map(|counting| (counting.epoch, after(now, LATE)));
        self.counting = Some(Counting { epoch, sequence: None });
        self.senseless = 0;
        self.reset = None;
    }

    /// Of the counting before, which a message may still tell of.
    fn is_late(&self, now: Duration, epoch: u32) -> bool {
        self.previous.is_some_and(|(previous, until)| previous == epoch && now < until)
    }

    /// Whether the quACK could be decoded. Only once is the log to blame.
    pub(super) fn on_outcome(&mut self, now: Duration, outcome: Outcome) {
        if outcome == Outcome::Decoded {
            self.senseless = 0;
            return;
        }
        self.senseless = self.senseless.saturating_add(1);
        let waited = self.reset_at.is_none_or(|at| now >= after(at, RESET_EVERY));
        if self.senseless >= SENSELESS && waited {
            self.senseless = 0;
            self.reset_at = Some(now);
            self.reset = self.counting.map(|counting| counting.epoch);
        }
    }
}
