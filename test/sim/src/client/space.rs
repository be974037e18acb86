// SPDX-License-Identifier: GPL-2.0-or-later
//! A packet number space of the client: what came, what is to be acknowledged,
//! what was sent and waits for its own acknowledgement.

use std::collections::BTreeMap;
use std::ops::Range;

use linkem::{MS, Nanos};

use super::habit::{Habit, Timer};
use super::skips::Skips;
use super::wire::put_varint;
use crate::random::Random;
use crate::ranges::Ranges;

/// A packet that waits for its acknowledgement.
#[derive(Debug)]
pub struct Sent {
    /// Frames that are sent again if it is lost.
    pub frames: Vec<Vec<u8>>,
    /// The largest number that it acknowledged.
    pub acknowledged: Option<u64>,
    /// When it was sent.
    pub at: Nanos,
}

/// A packet number space.
#[derive(Debug, Default)]
pub struct Space {
    /// What the sender leaves out: all numbers here are those that packets seem to have.
    pub skips: Skips,
    /// All that ever came.
    seen: Ranges,
    /// What acknowledgements still report.
    reported: Ranges,
    largest_at: Nanos,
    received: u64,
    ect0: u64,
    unacknowledged: u32,
    /// When the oldest of these came.
    unanswered_since: Option<Nanos>,
    gap_left: u32,
    /// First number of a gap of which no acknowledgement was asked for yet.
    gap_at: Option<u64>,
    /// Packets until the next acknowledgement; 0 if that was not thought of yet.
    every: u32,
    /// An acknowledgement is due.
    pub reply_at: Option<Nanos>,
    /// The next number to send.
    pub next_number: u64,
    largest_acked: Option<u64>,
    /// Sent, by number.
    pub sent: BTreeMap<u64, Sent>,
    /// Frames to send.
    pub pending: Vec<Vec<u8>>,
}

impl Space {
    /// The number after the largest that came.
    pub fn expected(&self) -> u64 {
        self.seen.largest().map_or(0, |largest| self.skips.sent(largest) + 1)
    }

    /// A packet came; false if it had come before.
    pub fn receive(&mut self, now: Nanos, number: u64, ect0: bool) -> bool {
        let number = self.skips.seen(number);
        if !self.seen.insert(number..number + 1) {
            return false;
        }
        self.reported.insert(number..number + 1);
        if self.seen.largest() == Some(number) {
            self.largest_at = now;
        }
        self.received += 1;
        self.ect0 += u64::from(ect0);
        true
    }

    /// That packet wants an acknowledgement; `expected` as before it came.
    pub fn ask(
        &mut self,
        now: Nanos,
        number: u64,
        expected: u64,
        habit: &Habit,
        rtt: Nanos,
        random: &mut Random,
    ) {
        let number = self.skips.seen(number);
        let expected = expected.checked_sub(1).map_or(0, |last| self.skips.seen(last) + 1);
        self.unacknowledged += 1;
        let since = *self.unanswered_since.get_or_insert(now);
        if number > expected && expected > 0 {
            self.gap_at.get_or_insert(expected);
        }
        self.gap_at.take_if(|at| self.seen.contains(*at));
        if self.gap_at.take_if(|at| number >= *at + habit.gap_after).is_some() {
            self.gap_left = habit.gap_run;
        }
        let (first, first_every) = habit.opening;
        if self.every == 0 {
            let (from, to) = habit.every;
            let more = if to > from { random.below(u64::from(to - from) + 1) as u32 } else { 0 };
            self.every = from + more;
        }
        let every = if self.received <= first { first_every } else { self.every };
        let closes = number < expected && habit.close_at_once;
        let at_once = self.unacknowledged >= every || self.gap_left > 0 || closes;
        if number >= expected {
            self.gap_left = self.gap_left.saturating_sub(1);
        }
        let from = match (at_once, habit.timer) {
            (true, _) => now,
            (false, Timer::Fixed(delay)) => since + delay,
            (false, Timer::QuarterRtt) => since + (rtt / 4).max(MS),
        };
        let (least, most) = habit.delay;
        let due = from + least + random.below(most - least + 1);
        self.reply_at = Some(self.reply_at.map_or(due, |at| at.min(due)));
    }

    /// Appends an ACK frame and forgets that one was due; gives the largest number.
    pub fn acknowledge(&mut self, now: Nanos, habit: &Habit, out: &mut Vec<u8>) -> Option<u64> {
        let largest = self.reported.largest()?;
        let ranges: Vec<_> = self.reported.descending().take(habit.ranges).collect();
        put_varint(out, if habit.ecn { 0x03 } else { 0x02 });
        // In units of 8 us, the default of ack_delay_exponent.
        let delay = now.saturating_sub(self.largest_at) / 1000 / 8;
        let mut seen = Vec::new();
        put_ranges(&ranges, delay, &mut seen);
        let begins = out.len();
        put_ranges(&self.skips.all_sent(&ranges), delay, out);
        // As long as if the sender had really left them out.
        let missing = (begins + seen.len()).saturating_sub(out.len());
        if habit.ecn {
            put_varint(out, self.ect0);
            put_varint(out, 0);
            put_varint(out, 0);
        }
        out.resize(out.len() + missing, 0);
        self.unacknowledged = 0;
        self.every = 0;
        self.unanswered_since = None;
        self.reply_at = None;
        Some(largest)
    }

    /// Whether something is missing among what is reported.
    pub fn has_gap(&self) -> bool {
        self.reported.descending().nth(1).is_some()
    }

    /// The number that the next packet gets, and how many bytes it takes
    /// (RFC 9000, section 17.1).
    pub fn take_number(&mut self) -> (u64, usize) {
        let number = self.next_number;
        self.next_number += 1;
        let span = number + 1 - self.largest_acked.map_or(0, |largest| largest + 1);
        (number, if span < 1 << 7 { 1 } else { 2 })
    }

    /// The server acknowledges; gives a round trip if the largest is new.
    pub fn acked(&mut self, now: Nanos, ranges: &[(u64, u64)]) -> Option<Nanos> {
        let largest = ranges[0].1;
        let rtt = self.sent.get(&largest).map(|sent| now.saturating_sub(sent.at));
        self.largest_acked = self.largest_acked.max(Some(largest));
        for (start, end) in ranges {
            let numbers: Vec<u64> = self.sent.range(*start..=*end).map(|(n, _)| *n).collect();
            for number in numbers {
                let sent = self.sent.remove(&number);
                if let Some(reported) = sent.and_then(|sent| sent.acknowledged) {
                    // RFC 9000, section 13.2.4.
                    self.reported.remove_below(reported);
                }
            }
        }
        // Packet threshold of RFC 9002, section 6.1.1.
        while let Some((&number, _)) = self.sent.first_key_value()
            && number + 3 <= largest
        {
            self.lose(number);
        }
        rtt
    }

    /// A packet is taken for lost: its frames go again.
    fn lose(&mut self, number: u64) {
        let sent = self.sent.remove(&number);
        self.pending.extend(sent.into_iter().flat_map(|sent| sent.frames));
    }

    /// Nothing has come for too long: all goes again.
    pub fn lose_all(&mut self) {
        while let Some((&number, _)) = self.sent.first_key_value() {
            self.lose(number);
        }
    }

    /// When the last packet was sent that the server has to acknowledge.
    pub fn waiting_since(&self) -> Option<Nanos> {
        self.sent.values().filter(|sent| !sent.frames.is_empty()).map(|sent| sent.at).max()
    }
}

/// What an ACK frame says of packets, the largest range first (RFC 9000, section 19.3).
fn put_ranges(ranges: &[Range<u64>], delay: u64, out: &mut Vec<u8>) {
    put_varint(out, ranges[0].end - 1);
    put_varint(out, delay);
    put_varint(out, ranges.len() as u64 - 1);
    let mut below = None;
    for range in ranges {
        if let Some(below) = below {
            put_varint(out, below - range.end - 1);
        }
        put_varint(out, range.end - range.start - 1);
        below = Some(range.start);
    }
}
