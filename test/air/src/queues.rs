// SPDX-License-Identifier: GPL-2.0-or-later
//! What waits at a station for the air.

use std::collections::VecDeque;

use crate::Nanos;
use crate::airtime::{AGGREGATE_LIMIT, AGGREGATE_SPAN, Category, Contention, mpdu};
use crate::channel::{Frame, Kind, Role, Station};

/// A frame that waits for its first or a further attempt.
#[derive(Debug)]
pub(crate) struct Pending<H> {
    pub frame: Frame<H>,
    pub entered: Nanos,
    pub attempts: u32,
}

/// Frames that may share an aggregate: of one receiver and one traffic identifier.
#[derive(Debug)]
pub(crate) struct Queue<H> {
    pub to: Option<Station>,
    /// None: frames that go alone.
    pub tid: Option<u8>,
    pub frames: VecDeque<Pending<H>>,
    /// The receiver is to be told that nothing before this number will come.
    pub bar: Option<u16>,
}

impl<H> Queue<H> {
    fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.bar.is_none()
    }

    /// Takes what goes into one transmission: as many frames as `most`, 4 ms and 64
    /// sequence numbers allow, those that have been tried before first.
    pub fn take(&mut self, most: usize, mbit: f64) -> Vec<Pending<H>> {
        let (count, _) = self.fits(most, mbit);
        self.frames.drain(..count).collect()
    }

    /// How many frames that is, and how long their bits last.
    pub fn fits(&self, most: usize, mbit: f64) -> (usize, Nanos) {
        let most = if self.tid.is_some() { most } else { 1 };
        let mut lasts = 0;
        let Some(first) = self.frames.front() else { return (0, 0) };
        for (count, next) in self.frames.iter().enumerate().take(most) {
            let time = mpdu(next.frame.bytes, mbit);
            let beyond = span(first.frame.kind, next.frame.kind) >= AGGREGATE_SPAN;
            if count > 0 && (beyond || lasts + time > AGGREGATE_LIMIT) {
                return (count, lasts);
            }
            lasts += time;
        }
        (most.min(self.frames.len()), lasts)
    }
}

/// How many sequence numbers lie between two frames.
fn span(first: Kind, next: Kind) -> u16 {
    match (first, next) {
        (Kind::Data { sequence: first, .. }, Kind::Data { sequence: next, .. }) => {
            next.wrapping_sub(first) & 0xfff
        }
        _ => 0,
    }
}

/// One access category at one station.
#[derive(Debug)]
pub(crate) struct Access<H> {
    pub contention: Contention,
    pub window: u32,
    /// Transmissions in a row that nobody answered.
    unanswered: u32,
    /// Slots left, once drawn: who loses against another goes on from there.
    pub backoff: Option<u32>,
    pub queues: Vec<Queue<H>>,
    /// Whose turn it is: receivers take turns.
    turn: usize,
}

impl<H> Access<H> {
    fn new(category: Category, role: Role) -> Access<H> {
        let contention = category.contention(role == Role::AccessPoint);
        let window = contention.least;
        Access { contention, window, unanswered: 0, backoff: None, queues: Vec::new(), turn: 0 }
    }

    /// The queue that may send next.
    pub fn next_queue(&self, asleep: &[bool]) -> Option<usize> {
        let count = self.queues.len();
        (0..count).map(|n| (self.turn + n) % count).find(|n| {
            let queue = &self.queues[*n];
            !queue.is_empty() && queue.to.is_none_or(|to| !asleep[to.index()])
        })
    }

    /// It had its turn.
    pub fn served(&mut self, queue: usize) {
        self.turn = queue + 1;
    }

    /// After a transmission that was answered, or not. The window doubles until the retry counter
    /// reaches its limit, then both begin anew (IEEE 802.11-2016, section 10.22.2.2).
    pub fn ended(&mut self, answered: bool, limit: u32) {
        self.backoff = None;
        self.unanswered = if answered { 0 } else { (self.unanswered + 1) % limit.max(1) };
        let Contention { least, most, .. } = self.contention;
        self.window = match self.unanswered {
            0 => least,
            _ => (2 * self.window + 1).min(most),
        };
    }
}

/// A station's access categories.
#[derive(Debug)]
pub(crate) struct Sender<H> {
    pub access: [Access<H>; 4],
}

impl<H> Sender<H> {
    pub fn new(role: Role) -> Sender<H> {
        Sender { access: Category::ALL.map(|category| Access::new(category, role)) }
    }

    pub fn push(&mut self, frame: Frame<H>, entered: Nanos) {
        let (category, tid) = match frame.kind {
            Kind::Data { tid, .. } => (Category::of_tid(tid), Some(tid)),
            Kind::Plain => (Category::Voice, None),
        };
        let to = frame.to;
        let queues = &mut self.access[category as usize].queues;
        let found = queues.iter().position(|queue| queue.to == to && queue.tid == tid);
        let at = found.unwrap_or_else(|| {
            queues.push(Queue { to, tid, frames: VecDeque::new(), bar: None });
            queues.len() - 1
        });
        queues[at].frames.push_back(Pending { frame, entered, attempts: 0 });
    }
}
