// SPDX-License-Identifier: GPL-2.0-or-later
//! What stations send each other, and what becomes of it.

use crate::Nanos;

/// A radio on the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Station(pub(crate) u8);

impl Station {
    /// Stations count from 0 in the order in which they were added.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What a station is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An access point.
    AccessPoint,
    /// A client.
    Client,
}

/// How a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// QoS data to one receiver: aggregates, and counts in the block ack's window.
    Data {
        /// Its traffic identifier.
        tid: u8,
        /// Its sequence number of 12 bits, rising by one for each frame of one
        /// sender, receiver and traffic identifier.
        sequence: u16,
    },
    /// Anything else, alone and at the basic rate: management, control, multicast.
    Plain,
}

/// A frame that a station wants to send.
#[derive(Clone, Debug)]
pub struct Frame<H> {
    /// What the caller knows it by.
    pub handle: H,
    /// Who sends it.
    pub from: Station,
    /// Who is to get it; none: everybody, at the first attempt or never.
    pub to: Option<Station>,
    /// Its size with the MAC header and without the check sequence.
    pub bytes: u32,
    /// How it goes.
    pub kind: Kind,
}

/// What became of a frame.
#[derive(Clone, Debug)]
pub struct Fate<H> {
    /// The frame.
    pub frame: Frame<H>,
    /// When it came to the station's queue.
    pub entered: Nanos,
    /// When the transmission ended that settled it.
    pub at: Nanos,
    /// How often it was sent.
    pub attempts: u32,
    /// Its receiver has got it; always true of a frame to everybody.
    pub delivered: bool,
    /// Who has got it, as bits by [`Station::index`].
    pub heard: u32,
}

impl Fate<()> {
    /// The columns of [`Fate::row`].
    pub const HEADER: &str = "at_us,entered_us,from,to,tid,sequence,bytes,attempts,delivered";
}

impl<H> Fate<H> {
    /// A row of a log in CSV; empty fields are those that the frame does not have.
    pub fn row(&self) -> String {
        let Frame { from, to, bytes, kind, .. } = &self.frame;
        let to = to.map_or(String::new(), |to| to.0.to_string());
        let (tid, sequence) = match kind {
            Kind::Data { tid, sequence } => (tid.to_string(), sequence.to_string()),
            Kind::Plain => Default::default(),
        };
        let us = |time: Nanos| time / 1_000;
        let (at, entered, from) = (us(self.at), us(self.entered), from.0);
        let (attempts, delivered) = (self.attempts, u8::from(self.delivered));
        format!("{at},{entered},{from},{to},{tid},{sequence},{bytes},{attempts},{delivered}")
    }
}

/// A block ack request that arrived: nothing before `start` will come any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// When.
    pub at: Nanos,
    /// Whose frames they are.
    pub from: Station,
    /// Who waits for them.
    pub to: Station,
    /// Their traffic identifier.
    pub tid: u8,
    /// The sequence number to go on with.
    pub start: u16,
}

/// What happened on the air.
#[derive(Clone, Debug)]
pub enum Event<H> {
    /// A frame's fate is settled.
    Frame(Fate<H>),
    /// A receiver is told to wait no longer.
    Bar(Bar),
}

/// What one station has sent to another, as an access point counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames whose fate is settled.
    pub frames: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Frames that were given up.
    pub failed: u64,
}
