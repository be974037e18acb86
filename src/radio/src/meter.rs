// SPDX-License-Identifier: GPL-2.0-or-later
//! From a driver's counters to what was lost on the air between two looks at a station.

use std::time::Duration;

use crate::counting::Counting;
use crate::station::{Counters, Station};

/// So many packets a second no radio sends: 10 Gbit/s in packets of 1,250 bytes. More than that
/// were not sent; the counter began anew.
const MOST_PER_S: u64 = 1_000_000;
/// The two counters of one station are not read at the same moment. Between them there may be
/// as many reports as fit into an aggregate with block ack (64), not more.
const ASKEW: u32 = 64;
/// A driver that has counted nothing at all after so many packets does not count. Of public
/// dumps the best has 7 losses in 2.7 million, with 46,785 retries.
const SILENT: u32 = 1_000_000;
/// Whether losses are believed is judged over this time.
const JUDGED: Duration = Duration::from_secs(1);
/// From fewer packets nothing follows. Chosen.
const JUDGED_PACKETS: u32 = 20;
/// One packet of so many lost, and the client replies all the same: these are attempts. The worst
/// public dump has one of 256.
const LOST_ONE_OF: u32 = 5;
/// A client that gets a download replies to every tenth packet or more often; half of that.
const REPLY_EACH: u32 = 20;
/// How long a driver is not believed after that. Chosen: a link that is as bad for a minute is
/// no longer used.
const DISTRUSTED: Duration = Duration::from_secs(60);

/// What counted losses are good for, the best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worth {
    /// The driver does not count.
    Nothing,
    /// To be shown: the driver seems to count attempts.
    Display,
    /// Not more than this was lost.
    AtMost,
    /// This was lost.
    Exact,
}

/// What happened between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Packets sent, also those that were lost.
    pub sent: u32,
    /// Packets lost after all attempts; of an aggregated packet (A-MSDU) only one is counted.
    pub lost: u32,
    /// Attempts beyond the first.
    pub retried: u32,
    /// What `lost` is good for.
    pub worth: Worth,
    /// Whether the counters began anew in between.
    pub anew: bool,
}

/// What is remembered of one station's counters.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    at: Duration,
    counters: Counters,
    /// `failed` minus `retries`, at its highest.
    difference: u32,
    connected_s: Option<u32>,
    counting: Counting,
    judged_since: Duration,
    judged: Judged,
    distrusted_until: Duration,
}

/// Sums since somebody judged last.
#[derive(Clone, Copy, Debug, Default)]
struct Judged {
    sent: u32,
    lost: u32,
    replies: u32,
}

/// How a look at the counters follows the one before it.
enum Follows {
    /// They went on.
    Goes,
    /// They began at zero since then: all they say is new.
    Anew,
    /// They jumped, and nobody knows from where they began.
    Jumped,
}

impl Meter {
    /// For a station that is seen for the first time: what it counted before is unknown.
    pub fn new(counting: Counting, now: Duration, station: &Station) -> Meter {
        let mut meter = Meter::joined(counting, now);
        meter.begin_at(station.counters);
        meter.connected_s = station.connected_s;
        meter
    }

    /// For a station that has associated now: its counters begin at zero.
    pub fn joined(counting: Counting, now: Duration) -> Meter {
        Meter {
            at: now,
            counters: Counters::default(),
            difference: 0,
            connected_s: None,
            counting,
            judged_since: now,
            judged: Judged::default(),
            distrusted_until: Duration::ZERO,
        }
    }

    /// What has happened since the last look. `proven` says that this driver has counted a
    /// failure or a retry of any station.
    pub fn read(&mut self, now: Duration, station: &Station, proven: bool) -> Delta {
        let now = now.max(self.at);
        let follows = self.follows(now, station);
        match follows {
            Follows::Goes => {}
            Follows::Anew => self.begin_at(Counters::default()),
            Follows::Jumped => self.begin_at(station.counters),
        }
        let Counters { sent, retries, failed, received } = station.counters;
        let retried = advance(&mut self.counters.retries, retries);
        let failed = advance(&mut self.counters.failed, failed);
        let replies = advance(&mut self.counters.received, received);
        let mut delta = Delta {
            sent: advance(&mut self.counters.sent, sent),
            lost: failed,
            retried,
            worth: Worth::Exact,
            anew: !matches!(follows, Follows::Goes),
        };
        if self.counting == Counting::LossesAndRetries {
            self.subtract(station.counters, &mut delta);
        }
        if self.counting == Counting::AtMost {
            delta.worth = Worth::AtMost;
        }
        self.judge(now, delta, replies);
        if now < self.distrusted_until {
            delta.worth = Worth::Display;
        }
        if !proven && station.counters.failed == 0 && retries == 0 && sent >= SILENT {
            delta.worth = Worth::Nothing;
        }
        self.at = now;
        self.connected_s = station.connected_s;
        delta
    }

    /// What losses of this driver are good for as long as nothing speaks against it.
    pub fn worth(&self) -> Worth {
        if self.counting == Counting::AtMost { Worth::AtMost } else { Worth::Exact }
    }

    /// The time of the last look.
    pub fn at(&self) -> Duration {
        self.at
    }

    /// How long the station had been there at the last look.
    pub fn connected_s(&self) -> Option<u32> {
        self.connected_s
    }

    fn begin_at(&mut self, counters: Counters) {
        self.counters = counters;
        self.difference = counters.failed.wrapping_sub(counters.retries);
        if is_negative(self.difference) {
            self.found_less_failed_than_retried(self.difference);
            self.difference = 0;
        }
    }

    fn follows(&self, now: Duration, station: &Station) -> Follows {
        if let (Some(then), Some(now)) = (self.connected_s, station.connected_s)
            && now < then
        {
            return Follows::Anew;
        }
        let sent = station.counters.sent.wrapping_sub(self.counters.sent);
        let most = (now - self.at).as_secs().saturating_add(1).saturating_mul(MOST_PER_S);
        if u64::from(sent) > most { Follows::Jumped } else { Follows::Goes }
    }

    /// For drivers that count retries as failures. Where a count below zero has been added to both
    /// counters (mt76 issue 1069) their difference is still right.
    fn subtract(&mut self, counters: Counters, delta: &mut Delta) {
        let difference = counters.failed.wrapping_sub(counters.retries);
        if is_negative(difference) {
            delta.worth = Worth::AtMost;
        } else {
            delta.lost = 0;
        }
        let below = self.difference.wrapping_sub(difference);
        if is_negative(below) || below == 0 {
            delta.lost = difference.wrapping_sub(self.difference);
            self.difference = difference;
        } else {
            self.found_less_failed_than_retried(below.wrapping_neg());
        }
    }

    /// Then it does not count as thought: with hardware that forwards by itself (WED) the
    /// counters are sums of that hardware's reports.
    fn found_less_failed_than_retried(&mut self, difference: u32) {
        if self.counting == Counting::LossesAndRetries && difference.wrapping_neg() > ASKEW {
            self.counting = Counting::AtMost;
        }
    }

    /// The rule for all drivers: who replies has not lost a fifth for a second.
    fn judge(&mut self, now: Duration, delta: Delta, replies: u32) {
        let Judged { sent, lost, replies: replied } = &mut self.judged;
        *sent = sent.saturating_add(delta.sent);
        *lost = lost.saturating_add(delta.lost);
        *replied = replied.saturating_add(replies);
        if now - self.judged_since < JUDGED {
            return;
        }
        self.judged_since = now;
        let Judged { sent, lost, replies } = std::mem::take(&mut self.judged);
        let replies = replies.saturating_mul(REPLY_EACH) >= sent;
        if sent >= JUDGED_PACKETS && lost.saturating_mul(LOST_ONE_OF) > sent && replies {
            self.distrusted_until = now.saturating_add(DISTRUSTED);
        }
    }
}

/// How far a counter went, which goes on at zero after 2^32. One that went back has not moved,
/// and counts again from where it was highest.
fn advance(counter: &mut u32, to: u32) -> u32 {
    let by = to.wrapping_sub(*counter);
    if is_negative(by) {
        return 0;
    }
    *counter = to;
    by
}

fn is_negative(number: u32) -> bool {
    number.cast_signed() < 0
}

#[cfg(test)]
mod tests;
