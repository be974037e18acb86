// SPDX-License-Identifier: GPL-2.0-or-later
//! What is to be drawn of one flow. Times are in ms.

use std::collections::HashMap;

use linkem::Nanos;
use pemi_engine::{Direction, EventKind};

use crate::trace::{Trace, What};
use crate::truth::Fate;
use crate::world::Moment;

/// What a transmission over the hop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The server's packet.
    Original,
    /// A copy before which nothing of the packet had arrived, or would.
    Needed,
    /// Another copy.
    Needless,
}

/// A transmission over the hop.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    pub number: u32,
    pub kind: Kind,
    pub sent: f64,
    /// `None` if it did not arrive.
    pub arrived: Option<f64>,
    /// Not under way at the end, either.
    pub gone: bool,
}

/// A packet of the client at the router.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    pub came: f64,
    pub went: f64,
}

/// A flow's time line.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The last that happened.
    pub end: f64,
    pub flights: Vec<Flight>,
    /// Packets that did not reach the router.
    pub dropped: Vec<(f64, u32)>,
    pub holds: Vec<(f64, f64)>,
    pub replies: Vec<Reply>,
    /// Losses inferred.
    pub marks: Vec<f64>,
    /// Payload at the first arrival of each packet.
    pub bytes: Vec<(f64, u32)>,
    pub highest: u32,
}

fn ms(at: Nanos) -> f64 {
    at as f64 / 1e6
}

impl Story {
    pub fn of(trace: &Trace, flow: usize) -> Story {
        let mut story = Story::default();
        let mut arrived = HashMap::new();
        let mut came = HashMap::new();
        let mut held_since = None;
        for entry in trace.entries.iter().filter(|entry| entry.flow == flow) {
            let at = ms(entry.at);
            story.end = at;
            match entry.what {
                What::Parcel { direction: Direction::Down, number, bytes, moment, .. } => {
                    match moment {
                        Moment::WanLost => story.dropped.push((at, number)),
                        Moment::Arrived if arrived.insert(number, at).is_none() => {
                            story.bytes.push((at, bytes));
                        }
                        _ => {}
                    }
                    story.highest = story.highest.max(number);
                }
                What::Parcel { direction: Direction::Up, number, moment, .. } => match moment {
                    Moment::AtRouter => {
                        came.insert(number, at);
                    }
                    Moment::Sent => {
                        let came = came.remove(&number).unwrap_or(at);
                        story.replies.push(Reply { came, went: at });
                    }
                    _ => {}
                },
                What::Engine { kind, .. } => match kind {
                    EventKind::Loss { .. } => story.marks.push(at),
                    EventKind::HoldStart => held_since = Some(at),
                    EventKind::HoldEnd { .. } => {
                        story.holds.extend(held_since.take().map(|since| (since, at)));
                    }
                    _ => {}
                },
            }
        }
        story.holds.extend(held_since.map(|since| (since, story.end)));
        story.fly(trace, flow);
        story
    }

    fn fly(&mut self, trace: &Trace, flow: usize) {
        for (number, transmissions) in trace.truths[flow].packets.iter().enumerate() {
            let mut all_gone = true;
            for (index, transmission) in transmissions.iter().enumerate() {
                let gone = matches!(transmission.fate, Fate::Lost | Fate::Dropped);
                self.flights.push(Flight {
                    number: number as u32,
                    kind: match (index, all_gone) {
                        (0, _) => Kind::Original,
                        (_, true) => Kind::Needed,
                        (_, false) => Kind::Needless,
                    },
                    sent: ms(transmission.at),
                    arrived: match transmission.fate {
                        Fate::Arrived(at) => Some(ms(at)),
                        _ => None,
                    },
                    gone,
                });
                all_gone &= gone;
            }
        }
    }

    /// From when to when to look closely: a repair from the middle of the run, or
    /// else a loss.
    pub fn episode(&self) -> Option<(f64, f64)> {
        let lost =
            self.flights.iter().filter(|flight| flight.kind == Kind::Original && flight.gone);
        let lost: Vec<&Flight> = lost.collect();
        let repaired = lost.iter().filter_map(|loss| {
            let copy = self.flights.iter().find(|flight| {
                flight.number == loss.number && flight.kind == Kind::Needed && !flight.gone
            })?;
            let hold = self.holds.iter().find(|(from, to)| (*from..=*to).contains(&copy.sent))?;
            // The shorter the more typical.
            (hold.1 - loss.sent < 40.0).then_some((loss.sent, hold.1))
        });
        let repaired: Vec<(f64, f64)> = repaired.collect();
        let (from, to) = match repaired.get(repaired.len() / 2) {
            Some(span) => *span,
            None => lost.get(lost.len() / 2).map(|loss| (loss.sent, loss.sent + 20.0))?,
        };
        Some((from - 6.0, to + 6.0))
    }
}
