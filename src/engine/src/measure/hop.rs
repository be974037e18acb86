// SPDX-License-Identifier: GPL-2.0-or-later
//! What is known of a client's last hop, across its flows: the round trip
//! that probes measured, queueing delay on it, and whether it loses packets.

use crate::measure::counts::Counts;
use crate::measure::doubt::Doubt;
use crate::measure::habit::Habits;
use crate::measure::link::Link;
use crate::measure::reports::Reports;
use crate::measure::retries::{self, Retries};
use crate::measure::worth::Worth;
use crate::store::least::Least;
use crate::store::recent::Recent;
use crate::time::{MS, Nanos, SEC, Time};
use crate::tunables::Tunables;

/// Probes until a first estimate stands (chosen: the fewest whose median leaves out a stray).
const FIRST_PROBES: u32 = 4;
/// Time between them (chosen: all four within the client's first flights).
const FIRST_PROBE_GAP: Nanos = 10 * MS;
/// Time between probes while it is to be found out how long packets wait (chosen: as the first ones).
const UNDECIDED_GAP: Nanos = FIRST_PROBE_GAP;
/// A client that has answered is sent no other one before it answers again or has not for so long (chosen: longer
/// than most queues; which of several a queue explains would not be known).
const UNDER_WAY: Nanos = 500 * MS;
/// Behind a packet one goes only after so many times as long: it is not known whether that overtook it, and
/// replies come as often (chosen: the fewest). While it is asked for one behind a packet the others wait as long.
const BEHIND_TIMES: Nanos = 2;
/// What a full packet takes longer than a probe is at least so many quarters of what the model says, as many are
/// not as long as can be (chosen: 1,200 bytes, RFC 9000, section 14.1).
const FULL_QUARTERS: Nanos = 3;
/// Probes without a reply after which a client counts as silent (chosen: three seconds' worth).
const SILENT_AFTER: u32 = 12;
/// Time between probes of a silent client (chosen: some clients never reply, and others wake
/// up).
const SILENT_PROBE_GAP: Nanos = 5 * SEC;
/// Round trips longer than this are no hop's (chosen: a client that slept).
const LONGEST: Nanos = SEC;
/// Samples older than this do not describe the hop as it is now (chosen: as
/// [`SILENT_PROBE_GAP`], so that a silent client has no sample).
const SAMPLE_AGE: Nanos = 5 * SEC;
/// The window of the smallest round trip (as BBR's window of the smallest round trip).
const BASE_WINDOW: Nanos = 10 * SEC;
/// The queue as it stands is the smallest of the samples of this long (chosen: two usual
/// probes, so that one late reply is no queue).
const STANDING_WINDOW: Nanos = 600 * MS;
/// Once lossy, a hop needs this many times as many packets without a repair to be clean (chosen:
/// a loss that was seen weighs more than none).
const CLEAN_AGAIN: u64 = 4;

/// What other flows of the client have shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HopState {
    Clean,
    New,
    Lossy,
    /// More than about 1.5 %.
    VeryLossy,
}

/// Round trips of the latest probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ping {
    pub smallest: Nanos,
    pub median: Nanos,
    /// How far a single one is from the median, usually.
    pub spread: Nanos,
}

/// A probe's round trip, which is no longer than [`LONGEST`], and without what the queue explains of it.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: Time,
    rtt: u32,
    bare: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Hop {
    tunables: Tunables,
    /// Flows in the table that are this client's.
    pub flows: u32,
    /// What attempts in vain have taught.
    pub doubt: Doubt,
    pub retries: Retries,
    /// Whether hiding losses from senders pays.
    pub worth: Worth,
    /// How its flows have acknowledged.
    pub habits: Habits,
    /// Whether its access point reports what became of packets.
    pub reports: Reports,
    /// What that counts.
    pub counts: Counts,
    /// When it takes packets up.
    pub link: Link,
    samples: Recent<Sample, 8>,
    /// What they amounted to when the last one came, and what they did without what the queue explains.
    ping: Ping,
    bare: Ping,
    spread: Nanos,
    base: Least<BASE_WINDOW>,
    probes: u32,
    unanswered: u32,
    last_probe: Option<Time>,
    last_repair: Option<Time>,
    very_lossy: bool,
    packets_since_repair: u64,
}

impl Hop {
    pub fn new(now: Time, tunables: Tunables) -> Hop {
        Hop {
            tunables,
            flows: 0,
            doubt: Doubt::new(tunables),
            retries: Retries::default(),
            worth: Worth::new(tunables),
            habits: Habits::default(),
            reports: Reports::new(),
            counts: Counts::new(),
            link: Link::new(now),
            samples: Recent::new(),
            ping: Ping::default(),
            bare: Ping::default(),
            spread: 0,
            base: Least::new(now),
            probes: 0,
            unanswered: 0,
            last_probe: None,
            last_repair: None,
            very_lossy: false,
            packets_since_repair: 0,
        }
    }

    /// Whether a probe should be sent now; `loss` if one was just inferred, `behind` if a packet goes to the
    /// client before it. None of the first does so: they are to say how quick the hop is by itself.
    pub fn wants_probe(&mut self, now: Time, loss: bool, behind: bool) -> bool {
        let gap = if self.unanswered >= SILENT_AFTER {
            SILENT_PROBE_GAP
        } else if self.probes < FIRST_PROBES {
            FIRST_PROBE_GAP
        } else if self.link.is_undecided() {
            UNDECIDED_GAP
        } else if loss {
            self.tunables.probe_gap_after_loss()
        } else {
            self.tunables.probe_gap()
        };
        let gap = if behind == self.link.asks_behind() { gap } else { BEHIND_TIMES * gap };
        let under_way = self.unanswered == 1 && self.base().is_some();
        let gap = if under_way { gap.max(UNDER_WAY) } else { gap };
        let early = self.last_probe.is_some_and(|last| now.since(last) < gap);
        if early || behind && self.probes < FIRST_PROBES {
            return false;
        }
        self.last_probe = Some(now);
        self.link.probe(now, behind);
        self.probes = self.probes.saturating_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        true
    }

    // Inlined it takes 140 bytes more on MIPS.
    #[inline(never)]
    pub fn probed(&mut self, now: Time, rtt: Nanos) {
        if rtt <= 0 || rtt > LONGEST {
            return;
        }
        self.unanswered = 0;
        self.reports.heard(now);
        if let Some(base) = self.base().filter(|base| rtt < *base) {
            self.link.took_longer(now, base - rtt);
        }
        _ = self.base.push(now, rtt);
        let base = self.base().unwrap_or(rtt);
        // What the queue explains of it is not known exactly, and no probe is quicker than the quickest.
        let bare = (rtt - self.link.probed(now, rtt, rtt - base)).max(base);
        // What one right behind a packet takes says nothing of the hop itself, if others are asked as often.
        let asks = self.link.is_undecided() && self.link.full().is_none();
        if asks && self.link.was_behind() && self.fresh(now, STANDING_WINDOW).next().is_some() {
            return;
        }
        let [rtt, bare] = [rtt, bare].map(|it| u32::try_from(it).unwrap_or(0));
        self.samples.push(Sample { at: now, rtt, bare });
        [self.ping, self.bare] = [|it: Sample| it.rtt, |it: Sample| it.bare].map(|of| {
            let mut fresh = Recent::<Nanos, 8>::new();
            self.fresh(now, SAMPLE_AGE).for_each(|sample| fresh.push(Nanos::from(of(sample))));
            let quantile = |quarters| fresh.quantile(quarters, 4).unwrap_or_default();
            Ping {
                smallest: quantile(0),
                median: quantile(2),
                // Half the distance of the quartiles, which one stray does not move.
                spread: (quantile(3) - quantile(1)) / 2,
            }
        });
        let explained = self.link.full().is_some();
        self.spread = if explained { self.bare.spread } else { self.ping.spread };
    }

    fn fresh(&self, now: Time, age: Nanos) -> impl Iterator<Item = Sample> + '_ {
        self.samples.iter().filter(move |sample| now.since(sample.at) <= age)
    }

    /// What the latest probes measured.
    // Inlined it takes 60 bytes more on MIPS.
    #[inline(never)]
    pub fn ping(&self, now: Time) -> Option<Ping> {
        let last = self.samples.last()?;
        (now.since(last.at) <= SAMPLE_AGE).then_some(self.ping)
    }

    /// The same as a full packet would have it that did not wait.
    pub fn bare_ping(&self, now: Time) -> Option<Ping> {
        let Ping { smallest, median, spread } = self.ping(now).map(|_| self.bare)?;
        let longer = self.link.longer();
        Some(Ping {
            smallest: smallest + longer * FULL_QUARTERS / 4,
            median: median + longer,
            spread,
        })
    }

    /// Whether probes mostly take longer than the quickest of them, by more than an unloaded
    /// hop varies: it is busy, and what is sent twice there delays what comes after it.
    pub fn busy(&self, now: Time) -> bool {
        let allowed = |smallest| smallest + self.tunables.queue_allowed() + smallest / 2;
        self.ping(now).is_some_and(|ping| ping.median > allowed(ping.smallest))
    }

    /// Whether probes vary as those of a radio do that tries again and again.
    pub fn varies(&self, now: Time) -> bool {
        self.spread(now) >= retries::VARIES
    }

    /// How far probes are apart, but for what the queue explains; nothing if that is not known.
    pub fn spread(&self, now: Time) -> Nanos {
        if self.ping(now).is_some() { self.spread } else { 0 }
    }

    /// Queueing delay on the hop as it stands: the smallest recent round trip
    /// above the smallest of the last ten seconds.
    pub fn queueing(&self, now: Time) -> Nanos {
        let standing = self.fresh(now, STANDING_WINDOW).map(|it| Nanos::from(it.rtt)).min();
        standing.zip(self.base()).map_or(0, |(standing, base)| (standing - base).max(0))
    }

    /// The round trip of the unloaded hop, as far as it was seen.
    pub fn base(&self) -> Option<Nanos> {
        self.base.get()
    }

    /// The client is with another access point: nothing measured before describes the way to it.
    pub fn moved(&mut self, now: Time) {
        self.link = Link::new(now);
        self.samples = Recent::new();
        (self.ping, self.bare) = (Ping::default(), Ping::default());
        self.base = Least::new(now);
        self.probes = 0;
        self.unanswered = 0;
        self.last_probe = None;
        self.counts.forget();
        self.reports.try_again();
    }

    /// A packet went to the client of which a loss would have shown.
    pub fn forwarded(&mut self) {
        self.packets_since_repair = self.packets_since_repair.saturating_add(1);
    }

    /// A copy was seen to repair a gap; `very_lossy` is what the flow makes of the hop.
    pub fn repaired(&mut self, now: Time, very_lossy: bool) {
        self.last_repair = Some(now);
        self.very_lossy = very_lossy;
        self.packets_since_repair = 0;
    }

    pub fn state(&self, now: Time) -> HopState {
        let clean = self.tunables.clean_packets();
        match self.last_repair {
            Some(at)
                if now.since(at) < self.tunables.lossy_memory()
                    && self.packets_since_repair < CLEAN_AGAIN * clean =>
            {
                if self.very_lossy {
                    HopState::VeryLossy
                } else {
                    HopState::Lossy
                }
            }
            _ if self.packets_since_repair >= clean => HopState::Clean,
            _ => HopState::New,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::US;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn probes_are_frequent_first_and_rare_for_silent_clients() {
        let mut hop = Hop::new(at(0), Tunables::DEFAULT);
        assert!(!hop.wants_probe(at(0), false, true), "the first are behind nothing");
        let sent: alloc::vec::Vec<u64> =
            (0..60_000).filter(|ms| hop.wants_probe(at(*ms), false, false)).collect();
        assert_eq!(&sent[..6], [0, 10, 20, 30, 280, 530]);
        assert_eq!(sent[13] - sent[12], 5000);
        hop.probed(at(60_000), 2 * MS);
        assert!(hop.wants_probe(at(60_000), false, false));
        hop.probed(at(60_002), 2 * MS);
        assert!(!hop.wants_probe(at(60_040), true, false));
        assert!(hop.wants_probe(at(60_060), true, false), "after a loss");
    }

    #[test]
    fn who_has_answered_is_asked_again_when_the_next_answer_is_there() {
        let mut hop = Hop::new(at(0), Tunables::DEFAULT);
        assert!(hop.wants_probe(at(0), false, false));
        hop.probed(at(2), 2 * MS);
        assert!(hop.wants_probe(at(100), true, false));
        let sent = (101..1000).find(|ms| hop.wants_probe(at(*ms), true, false));
        assert_eq!(sent, Some(600), "or when it has not come for long");
    }

    #[test]
    fn what_a_probe_waits_behind_a_packet_is_not_the_hops_own_delay() {
        let mut hop = Hop::new(at(0), Tunables::DEFAULT);
        for ms in [0, 10, 20, 30] {
            assert!(hop.wants_probe(at(ms), false, false));
            hop.probed(at(ms + 2), 2 * MS);
        }
        // Something waits, and for how long is not known.
        (0..8).for_each(|_| _ = hop.link.sent(at(300), 1500));
        assert!(hop.wants_probe(at(300), false, false));
        hop.probed(at(305), 5 * MS);
        let samples = hop.samples.len();
        assert!(hop.link.asks_behind() && hop.wants_probe(at(320), false, true));
        hop.link.sent(at(320), 1500);
        hop.probed(at(325), 5 * MS);
        assert_eq!(hop.samples.len(), samples);
        assert!(hop.wants_probe(at(400), false, false));
        hop.probed(at(402), 2 * MS);
        assert_eq!(hop.samples.len(), samples + 1);
        assert!(hop.link.asks_behind() && hop.wants_probe(at(1200), false, true));
        hop.link.sent(at(1200), 1500);
        hop.probed(at(1205), 5 * MS);
        assert_eq!(hop.samples.len(), samples + 2, "if there is no other");
    }

    #[test]
    fn behind_a_packet_a_probe_goes_only_if_no_reply_has_come_for_long() {
        let mut hop = Hop::new(at(0), Tunables::DEFAULT);
        for ms in [0, 10, 20, 30] {
            assert!(hop.wants_probe(at(ms), false, false));
            hop.probed(at(ms + 2), 2 * MS);
        }
        assert!((31..530).all(|ms| !hop.wants_probe(at(ms), false, true)));
        assert!(hop.wants_probe(at(530), false, true));
    }

    #[test]
    fn a_queue_that_is_known_is_no_radio_that_tries_again() {
        let mut hop = Hop::new(at(0), Tunables::DEFAULT);
        // Packets of 1.2 ms in bursts of ten, and a probe behind some of them.
        let (mut free, mut back) = (at(0), None);
        for n in 0..4000i64 {
            let now = at(0) + n * 400 * US;
            if let Some((at, rtt)) = back.take_if(|(at, _)| *at <= now) {
                hop.probed(at, rtt);
            }
            if n % 60 < 10 {
                free = free.max(now) + 1200 * US;
                hop.link.sent(now, 1486);
            }
            if n % 20 == 7 && back.is_none() {
                hop.link.probe(now, false);
                let rtt = 2 * MS + free.since(now).max(0);
                back = Some((now + rtt, rtt));
            }
        }
        let now = at(1600);
        assert!(hop.ping(now).is_some_and(|ping| ping.spread > 10 * retries::VARIES));
        assert!(hop.spread(now) < retries::VARIES && !hop.varies(now));
    }

    #[test]
    fn queueing_is_what_stands_above_the_smallest() {
        let mut hop = Hop::new(at(0), Tunables::DEFAULT);
        for ms in 0..10u64 {
            hop.probed(at(ms * 250), 2 * MS);
        }
        assert_eq!(hop.queueing(at(2500)), 0);
        hop.probed(at(2600), 30 * MS);
        assert_eq!(hop.queueing(at(2700)), 0, "one late reply is no queue");
        for ms in 11..15u64 {
            hop.probed(at(ms * 250), 30 * MS);
        }
        assert_eq!(hop.queueing(at(3600)), 28 * MS);
        assert_eq!(hop.queueing(at(9000)), 0, "old samples say nothing");
        assert_eq!(hop.ping(at(9000)), None);
        assert_eq!(hop.base(), Some(2 * MS));
    }

    #[test]
    fn a_radio_that_tries_again_and_again_varies() {
        let mut hop = Hop::new(at(0), Tunables::DEFAULT);
        let mut probe = |n: u64, later: Nanos| {
            hop.probed(at(10 * n), 2 * MS + later);
            hop.varies(at(10 * n))
        };
        assert!((0..7).all(|n| !probe(n, 20 * US)), "a host's own lateness is less");
        assert!(!probe(7, 900 * US), "one stray is none");
        let late = (8..16).map(|n| probe(n, [0, 400 * US][n as usize % 2]));
        assert_eq!(late.last(), Some(true), "of any two one took one more attempt");
        assert!(!hop.varies(at(9000)), "old samples say nothing");
    }

    #[test]
    fn a_busy_hop_is_not_a_long_one() {
        let busy = |rtts: [Nanos; 4]| {
            let mut hop = Hop::new(at(0), Tunables::DEFAULT);
            rtts.into_iter().for_each(|rtt| hop.probed(at(0), rtt * MS));
            hop.busy(at(1))
        };
        assert!(!busy([20, 21, 26, 24]) && !busy([1, 2, 30, 2]));
        assert!(busy([2, 9, 16, 12]));
    }

    #[test]
    fn remembers_what_the_hop_has_shown() {
        let mut hop = Hop::new(at(0), Tunables::DEFAULT);
        assert_eq!(hop.state(at(0)), HopState::New);
        for _ in 0..Tunables::DEFAULT.clean_packets() {
            hop.forwarded();
        }
        assert_eq!(hop.state(at(1)), HopState::Clean);
        hop.repaired(at(2), false);
        assert_eq!(hop.state(at(3)), HopState::Lossy);
        hop.repaired(at(4), true);
        assert_eq!(hop.state(at(5)), HopState::VeryLossy);
        assert_eq!(hop.state(at(200_000)), HopState::New);
    }
}
