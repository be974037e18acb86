// SPDX-License-Identifier: GPL-2.0-or-later
//! The lightly loaded cellular link of CellReplay (Sentosa et al., NSDI 2025): trains
//! of packets that were sent into an idle network, each with the delay of its first
//! packet and the times at which the others followed it out of the network.
//!
//! A packet that finds the link idle begins a train and takes its base delay, those
//! behind it the train's delivery opportunities. What comes after the train's last
//! opportunity, or could only leave before its predecessor, has left the light load:
//! it takes the base delay and then queues for the opportunities of the heavily
//! loaded link.

use std::path::Path;

use crate::{MS, Nanos};

/// Bytes of an opportunity without link header, of light and of heavy load.
pub const OPPORTUNITY_BYTES: u32 = 1400;
/// Later than its predecessor by this much, a packet has found the link idle: the
/// resolution of the recordings. (CellReplay's own timer for this is 0 ms by default.)
const IDLE: Nanos = MS;
/// The latency offsets are of packets of 100, 200, ... bytes.
const OFFSET_STEP: f64 = 100.0;

/// A train as it was recorded.
#[derive(Clone, Debug, PartialEq)]
struct Train {
    time: Nanos,
    delay: Nanos,
    /// When its packets may leave, after the first, which is one of them.
    opportunities: Vec<Nanos>,
}

/// A recording and the train that is being used.
#[derive(Clone, Debug)]
pub struct Light {
    trains: Vec<Train>,
    /// How much longer packets of 100, 200, ... bytes take; may be empty.
    offsets: Vec<f64>,
    start: Nanos,
    current: Option<Current>,
    /// When the last packet leaves, without and with its latency offset.
    last_leaves: Nanos,
    last_out: Nanos,
}

#[derive(Clone, Debug)]
struct Current {
    train: usize,
    began: Nanos,
    delay: Nanos,
    /// The opportunity in use and the bytes left of it.
    opportunity: usize,
    room: u32,
}

impl Light {
    /// Reads a packet-train file.
    pub fn read(path: &Path) -> Result<Light, String> {
        crate::trace::read(path, Light::parse)
    }

    /// Parses the text of a packet-train file: `time delay opportunity...`, all in ms.
    pub fn parse(text: &str) -> Result<Light, String> {
        let mut trains: Vec<Train> = Vec::new();
        for (number, line) in crate::trace::lines(text) {
            let mut words = Vec::new();
            for word in line.split_ascii_whitespace() {
                words.push(
                    ms(word)
                        .ok_or_else(|| format!("line {number}: '{word}' is not a time in ms"))?,
                );
            }
            let [time, delay, opportunities @ ..] = &words[..] else {
                return Err(format!("line {number}: wanted a time, a delay and opportunities"));
            };
            if trains.last().is_some_and(|last| last.time > *time) || !opportunities.is_sorted() {
                return Err(format!("line {number}: the time goes backwards"));
            }
            let opportunities = [&[0], opportunities].concat();
            trains.push(Train { time: *time, delay: *delay, opportunities });
        }
        if trains.len() < 3 {
            return Err("a recording has at least three trains".into());
        }
        if trains[trains.len() - 1].time == 0 {
            return Err("the last time must be greater than 0".into());
        }
        let (offsets, current) = (Vec::new(), None);
        Ok(Light { trains, offsets, start: 0, current, last_leaves: 0, last_out: 0 })
    }

    /// Reads how much longer packets take by their size.
    pub fn read_offsets(path: &Path) -> Result<Vec<f64>, String> {
        crate::trace::read(path, Light::parse_offsets)
    }

    /// Parses lines of `size offset_ms` for sizes of 100, 200, ... bytes.
    pub fn parse_offsets(text: &str) -> Result<Vec<f64>, String> {
        let mut offsets = Vec::new();
        for (number, line) in crate::trace::lines(text) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [size, offset] = words[..] else {
                return Err(format!("line {number}: wanted a size and an offset in ms"));
            };
            let expected = (offsets.len() + 1) * OFFSET_STEP as usize;
            if size.parse() != Ok(expected) {
                return Err(format!("line {number}: the size should be {expected}"));
            }
            match offset.parse::<f64>() {
                Ok(ms) if ms.is_finite() && ms.abs() <= 60_000.0 => offsets.push(ms),
                _ => return Err(format!("line {number}: '{offset}' is not an offset in ms")),
            }
        }
        if offsets.is_empty() { Err("the file is empty".into()) } else { Ok(offsets) }
    }

    /// With these latency offsets.
    pub fn with_offsets(self, offsets: Vec<f64>) -> Light {
        Light { offsets, ..self }
    }

    /// Lets the recording begin at `start`.
    pub fn start(&mut self, start: Nanos) {
        self.start = start;
    }

    /// A packet arrives: when it has the light load behind it, and whether that
    /// was all. Never before its predecessor.
    pub fn arrive(&mut self, at: Nanos, bytes: u32) -> (Nanos, bool) {
        let idle = |current: &Current| at + current.delay >= self.last_leaves + IDLE;
        let (leaves, mut light) = match self.current.take_if(|current| !idle(current)) {
            Some(mut current) => {
                let (leaves, light) = self.follow(&mut current, at, bytes);
                self.current = Some(current);
                (leaves, light)
            }
            None => {
                let current = self.begin(at, bytes);
                let leaves = at + current.delay;
                self.current = Some(current);
                (leaves, true)
            }
        };
        self.last_leaves = leaves;
        let mut out = leaves;
        let offset = leaves.saturating_add_signed(self.offset(bytes)).max(at);
        if offset >= self.last_out {
            out = offset;
        }
        if out < self.last_out {
            out = self.last_out;
            light = false;
        }
        self.last_out = out;
        (out, light)
    }

    /// The train of this time, its delay drawn towards that of the next.
    fn begin(&self, at: Nanos, bytes: u32) -> Current {
        // The last train only says where the one before it leads.
        let round = self.trains[self.trains.len() - 1].time;
        let now = at.saturating_sub(self.start) % round;
        let train = self.trains.partition_point(|train| train.time <= now).saturating_sub(1);
        let [from, to] = [&self.trains[train], &self.trains[train + 1]];
        let passed = now.saturating_sub(from.time) as f64 / (to.time - from.time) as f64;
        let delay = from.delay as f64 + (to.delay as f64 - from.delay as f64) * passed.min(1.0);
        let room = OPPORTUNITY_BYTES.saturating_sub(bytes);
        Current { train, began: at, delay: delay.round() as Nanos, opportunity: 0, room }
    }

    /// A packet behind the first of a train.
    fn follow(&self, current: &mut Current, at: Nanos, bytes: u32) -> (Nanos, bool) {
        let opportunities = &self.trains[current.train].opportunities;
        let since = at.saturating_sub(current.began);
        // Those that went by while nothing was there are gone.
        let left = &opportunities[current.opportunity..];
        let gone = left.partition_point(|time| *time + IDLE <= since);
        if gone > 0 {
            current.opportunity += gone;
            current.room = OPPORTUNITY_BYTES;
        }
        if current.room < bytes {
            current.opportunity = (current.opportunity + 1).min(opportunities.len());
            current.room = OPPORTUNITY_BYTES;
        }
        // A packet larger than an opportunity takes one whole.
        current.room = current.room.saturating_sub(bytes);
        match opportunities.get(current.opportunity) {
            Some(time) => (at + current.delay + time.saturating_sub(since), true),
            None => (at + current.delay, false),
        }
    }

    fn offset(&self, bytes: u32) -> i64 {
        let Some(last) = self.offsets.len().checked_sub(1) else { return 0 };
        let place = (f64::from(bytes) / OFFSET_STEP - 1.0).clamp(0.0, last as f64);
        let [below, above] = [place.floor(), place.ceil()].map(|at| self.offsets[at as usize]);
        ((below + (above - below) * place.fract()) * MS as f64).round() as i64
    }
}

fn ms(word: &str) -> Option<Nanos> {
    let ms = word.parse::<f64>().ok().filter(|ms| (0.0..=1e9).contains(ms))?;
    Some((ms * MS as f64).round() as Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every 100 ms a train; base delay 20 ms, later 40; three packets behind the first.
    fn light() -> Light {
        Light::parse("0 20 2 4 8\n100 20 2 4 8\n200 40 2 4 8\n").unwrap()
    }

    /// Packets of these arrivals and sizes: when each has passed in ms, and whether
    /// the light load was all.
    fn pass(light: &mut Light, packets: &[(f64, u32)]) -> Vec<(f64, bool)> {
        let arrive = |&(at, bytes): &(f64, u32)| {
            let (out, alone) = light.arrive((at * MS as f64) as Nanos, bytes);
            (out as f64 / MS as f64, alone)
        };
        packets.iter().map(arrive).collect()
    }

    #[test]
    fn a_train_leaves_by_its_opportunities_and_then_by_the_heavy_load() {
        let burst = [(10.0, 1400); 5];
        let passed = pass(&mut light(), &burst);
        assert_eq!(passed[..4], [(30.0, true), (32.0, true), (34.0, true), (38.0, true)]);
        // Never before its predecessor.
        assert_eq!(passed[4], (38.0, false));
    }

    #[test]
    fn small_packets_share_an_opportunity() {
        let passed = pass(&mut light(), &[(0.0, 700), (0.0, 700), (0.0, 700), (0.0, 1500)]);
        assert_eq!(passed, [(20.0, true), (20.0, true), (22.0, true), (24.0, true)]);
    }

    #[test]
    fn a_packet_on_an_idle_link_begins_a_train_of_its_time() {
        let packets = [(0.0, 1400), (50.0, 1400), (150.0, 1400), (250.0, 1400), (350.0, 1400)];
        let passed = pass(&mut light(), &packets);
        // Half-way between the second train and the last the delay is half-way, too;
        // at the last train the recording begins again.
        assert_eq!(
            passed,
            [(20.0, true), (70.0, true), (180.0, true), (270.0, true), (380.0, true)]
        );
    }

    #[test]
    fn an_opportunity_that_nobody_used_is_gone() {
        let packets = [(0.0, 1400), (0.0, 1400), (0.0, 1400), (3.0, 1400), (3.5, 100)];
        let passed = pass(&mut light(), &packets);
        // Of 2, 4 and 8 ms, the first two are taken; the third has room for one more.
        assert_eq!(passed[2..], [(24.0, true), (28.0, true), (28.0, false)]);
    }

    #[test]
    fn the_latency_offset_goes_by_size_and_keeps_the_order() {
        let offsets = Light::parse_offsets("100 -2\n200 0\n300 4\n").unwrap();
        let mut light = light().with_offsets(offsets);
        let packets = [(0.0, 40), (10.0, 100), (20.0, 250), (30.0, 1400), (31.0, 100)];
        let passed = pass(&mut light, &packets);
        assert_eq!(passed, [(18.0, true), (28.0, true), (42.0, true), (54.0, true), (54.0, false)]);
    }

    #[test]
    fn says_what_is_wrong() {
        for (text, part) in [
            ("0 20 1\n100 20 1\n", "at least three"),
            ("0 20\n5\n9 20\n", "line 2"),
            ("0 20\n9 20\n8 20\n", "line 3"),
            ("0 20 5 4\n9 20\n10 20\n", "line 1"),
            ("0 20 x\n9 20\n10 20\n", "'x'"),
        ] {
            assert!(Light::parse(text).unwrap_err().contains(part), "{text}");
        }
        assert!(Light::parse_offsets("100 1\n300 2\n").unwrap_err().contains("200"));
        assert!(Light::parse_offsets("").unwrap_err().contains("empty"));
    }
}
