// SPDX-License-Identifier: GPL-2.0-or-later
//! Other clients of the access point: bursts that come and go.

use crate::Nanos;
use crate::channel::{Channel, Frame, Kind, Role, Station};
use crate::hop::Load;
use crate::random::Random;
use crate::settings::Neighbour;

/// A full packet with LLC and MAC header.
const FRAME_BYTES: u32 = 1_534;
/// Frames of one direction that wait before more are refused: what the queue of a
/// neighbour holds changes nothing for others beyond that.
const MOST_WAITING: u32 = 64;

/// One direction of one neighbour.
#[derive(Debug)]
pub(super) struct Source {
    ends: (Station, Station),
    burst: u32,
    /// Mean time between two bursts.
    interval: Nanos,
    next: Nanos,
    sequence: u16,
    waiting: u32,
}

/// All neighbours' sources.
#[derive(Debug)]
pub(super) struct Neighbours {
    sources: Vec<Source>,
    random: Random,
}

impl Neighbours {
    /// Adds the neighbours' stations to the channel.
    pub fn new<T>(
        settings: &[Neighbour],
        channel: &mut Channel<Load<T>>,
        access_point: Station,
        mut random: Random,
    ) -> Neighbours {
        let mut sources = Vec::new();
        for neighbour in settings {
            let station = channel.add(Role::Client);
            channel.set_link(access_point, station, neighbour.link.clone());
            for (mbit, ends) in [
                (neighbour.down_mbit, (access_point, station)),
                (neighbour.up_mbit, (station, access_point)),
            ] {
                if mbit > 0.0 {
                    let bits = f64::from(neighbour.burst * 1_500 * 8);
                    let interval = (bits * 1_000.0 / mbit) as Nanos;
                    let next = random.exponential(interval);
                    let burst = neighbour.burst;
                    let (sequence, waiting) = (0, 0);
                    sources.push(Source { ends, burst, interval, next, sequence, waiting });
                }
            }
        }
        Neighbours { sources, random }
    }

    /// When the next burst comes.
    pub fn next(&self) -> Option<Nanos> {
        self.sources.iter().map(|source| source.next).min()
    }

    /// Nobody looked for so long that bursts before `from` have no effect.
    pub fn skip(&mut self, from: Nanos) {
        for source in self.sources.iter_mut().filter(|source| source.next < from) {
            source.next = from + self.random.below(source.interval);
        }
    }

    /// Sends the bursts that are due.
    pub fn send<T>(&mut self, now: Nanos, channel: &mut Channel<Load<T>>) {
        for (number, source) in self.sources.iter_mut().enumerate() {
            if source.next > now {
                continue;
            }
            source.next += self.random.exponential(source.interval);
            let (from, to) = source.ends;
            for _ in 0..source.burst.min(MOST_WAITING.saturating_sub(source.waiting)) {
                let kind = Kind::Data { tid: 0, sequence: source.sequence };
                let handle = Load::Neighbour(number);
                let frame = Frame { handle, from, to: Some(to), bytes: FRAME_BYTES, kind };
                channel.push(now, frame);
                source.sequence = (source.sequence + 1) & 0xfff;
                source.waiting += 1;
            }
        }
    }

    /// A frame of a source is off the air.
    pub fn settled(&mut self, number: usize) {
        self.sources[number].waiting -= 1;
    }
}
