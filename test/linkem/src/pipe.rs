// SPDX-License-Identifier: GPL-2.0-or-later
//! One direction of the link in virtual time, without I/O:
//! light load (of CellReplay only), queue, serialisation, loss, propagation delay.
//!
//! Times come in with the calls. The pipe computes exactly when things happen
//! and catches up when it is called, so that a late call makes a packet late
//! but does not change the rate, the queue or the following packets.

use std::collections::VecDeque;

use crate::delay::DelayTrace;
use crate::light::Light;
use crate::loss::{Loss, Model, Purpose, Random};
use crate::queue::Discipline;
use crate::red::{self, Red};
use crate::trace::Trace;
use crate::waiting::Waiting;
use crate::{Direction, Nanos};

/// How fast the link is.
#[derive(Clone, Debug)]
pub enum Rate {
    /// Serialisation takes no time and nothing is ever queued.
    Unlimited,
    /// Bits per second; frames count with their Ethernet header, as with tc.
    Constant(f64),
    /// Recorded delivery opportunities.
    Trace(Trace),
}

/// How long the way is.
#[derive(Clone, Debug)]
pub enum Delay {
    /// Always the same.
    Constant(Nanos),
    /// As recorded, by the time when a packet sets out.
    Trace(DelayTrace),
}

impl Delay {
    fn at(&self, now: Nanos) -> Nanos {
        match self {
            Delay::Constant(delay) => *delay,
            Delay::Trace(trace) => trace.at(now),
        }
    }
}

/// The properties of one direction.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A lightly loaded cellular link, where only what is too much for it comes to
    /// the queue and the serialisation.
    pub light: Option<Light>,
    /// Serialisation.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Delay,
    /// The delay varies uniformly by as much as this to both sides.
    pub jitter: Nanos,
    /// The queue's limit, which the packet in service does not count to.
    pub queue_bytes: u64,
    /// What is done about a standing queue.
    pub discipline: Discipline,
    /// Which packets are lost.
    pub loss: Model,
}

/// A packet on its way.
#[derive(Debug)]
pub struct Packet<T> {
    /// What the caller knows it by.
    pub item: T,
    /// Size with the link header.
    pub bytes: u32,
    /// Size without the link header.
    pub network_bytes: u32,
    /// May be lost, and counts in the index of the losses.
    pub lossy: bool,
    /// Packets of one flow wait in one queue of FQ-CoDel.
    pub flow: u32,
}

/// Why a packet was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// By the queue.
    Queue,
    /// By the loss model.
    Lost,
}

/// What has gone through a pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that entered.
    pub packets: u64,
    /// Their bytes with link headers.
    pub bytes: u64,
    /// Packets among them that are never lost (see [`Packet::lossy`]).
    pub exempt: u64,
    /// Taken by the loss model.
    pub lost: u64,
    /// Dropped by the queue.
    pub queue_dropped: u64,
}

/// One direction of the link.
#[derive(Debug)]
pub struct Pipe<T> {
    light: Option<Light>,
    /// What has the light load before it: when it has it behind it, which never
    /// falls, and whether that was all.
    lit: VecDeque<(Nanos, bool, Packet<T>)>,
    server: Server<T>,
    queue: Waiting<T>,
    loss: Loss,
    random: Random,
    delay: Delay,
    jitter: Nanos,
    /// Packets that have passed to the propagation, for their jitter.
    propagated: u64,
    /// Packets between the two ends, by the time they are due, which never falls.
    line: VecDeque<(Nanos, T)>,
    last_due: Nanos,
    dropped: VecDeque<(T, Dropped)>,
    counts: Counts,
}

/// What serialises the packets.
#[derive(Debug)]
enum Server<T> {
    Unlimited,
    Constant {
        ns_per_byte: f64,
        /// The packet in service and when it will have been sent.
        current: Option<(Nanos, Packet<T>)>,
        /// When the last packet had been sent.
        free_at: Nanos,
    },
    Trace {
        trace: Trace,
        /// The packet in service and how many of its bytes are left.
        current: Option<(u32, Packet<T>)>,
        /// The opportunity being used: its time and the bytes left of it.
        open: Option<(Nanos, u32)>,
    },
}

impl<T> Pipe<T> {
    /// An empty pipe; traces and outages begin at `start`.
    pub fn new(mut settings: Settings, seed: u64, direction: Direction, start: Nanos) -> Pipe<T> {
        let random = Random::new(seed, direction);
        let packet_time = packet_time(&settings.rate);
        if let Some(light) = &mut settings.light {
            light.start(start);
        }
        if let Delay::Trace(trace) = &mut settings.delay {
            trace.start(start);
        }
        Pipe {
            light: settings.light,
            lit: VecDeque::new(),
            server: match settings.rate {
                Rate::Unlimited => Server::Unlimited,
                Rate::Constant(bits_per_second) => Server::Constant {
                    ns_per_byte: 8e9 / bits_per_second,
                    current: None,
                    free_at: start,
                },
                Rate::Trace(mut trace) => {
                    trace.start(start);
                    Server::Trace { trace, current: None, open: None }
                }
            },
            queue: Waiting::new(settings.discipline, settings.queue_bytes, || {
                Red::new(settings.queue_bytes, packet_time, random)
            }),
            loss: Loss::new(settings.loss, seed, direction, start),
            random,
            delay: settings.delay,
            jitter: settings.jitter,
            propagated: 0,
            line: VecDeque::new(),
            last_due: 0,
            dropped: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// A packet enters at `at`, which may lie before the time of the last call.
    pub fn push(&mut self, at: Nanos, packet: Packet<T>) {
        self.advance(at);
        self.counts.packets += 1;
        self.counts.bytes += u64::from(packet.bytes);
        self.counts.exempt += u64::from(!packet.lossy);
        match &mut self.light {
            None => self.queue(at, packet),
            Some(light) => {
                let (out, alone) = light.arrive(at, packet.network_bytes);
                self.lit.push_back((out, alone, packet));
            }
        }
    }

    /// A packet comes to the queue, or to the link if that is idle.
    fn queue(&mut self, at: Nanos, packet: Packet<T>) {
        match &mut self.server {
            Server::Unlimited => return self.propagate(at, packet),
            Server::Constant { ns_per_byte, current: current @ None, free_at } => {
                if !self.queue.passes_by(at) {
                    self.counts.queue_dropped += 1;
                    self.dropped.push_back((packet.item, Dropped::Queue));
                    return;
                }
                let start = at.max(*free_at);
                *current = Some((start + service(*ns_per_byte, packet.bytes), packet));
                return;
            }
            Server::Constant { .. } => {}
            Server::Trace { trace, current, .. } => {
                if current.is_none() && self.queue.is_empty() {
                    // Nobody was there to use them.
                    trace.skip(at);
                }
            }
        }
        let Pipe { queue, dropped, counts, .. } = self;
        queue.push(at, packet, |packet| {
            counts.queue_dropped += 1;
            dropped.push_back((packet.item, Dropped::Queue));
        });
    }

    /// Lets everything happen that happens until `now`.
    pub fn advance(&mut self, now: Nanos) {
        while self.lit.front().is_some_and(|(at, ..)| *at <= now) {
            let Some((at, alone, packet)) = self.lit.pop_front() else { break };
            self.advance_queue(at);
            if alone && self.is_idle() {
                self.propagate(at, packet);
            } else {
                self.queue(at, packet);
            }
        }
        self.advance_queue(now);
    }

    fn advance_queue(&mut self, now: Nanos) {
        while let Some((at, packet)) = self.serve(now) {
            self.propagate(at, packet);
        }
    }

    /// Nothing is in service or waits.
    fn is_idle(&self) -> bool {
        let serves = match &self.server {
            Server::Unlimited => false,
            Server::Constant { current, .. } => current.is_some(),
            Server::Trace { current, .. } => current.is_some(),
        };
        !serves && self.queue.is_empty()
    }

    /// The next packet that has been serialised by `now`, and when it was.
    fn serve(&mut self, now: Nanos) -> Option<(Nanos, Packet<T>)> {
        let Pipe { server, queue, dropped, counts, .. } = self;
        let mut drop = |packet: Packet<T>| {
            counts.queue_dropped += 1;
            dropped.push_back((packet.item, Dropped::Queue));
        };
        match server {
            Server::Unlimited => None,
            Server::Constant { ns_per_byte, current, free_at } => {
                let sent = current.take_if(|(end, _)| *end <= now)?;
                *free_at = sent.0;
                *current = queue.pop(sent.0, &mut drop).map(|packet| {
                    let end = sent.0 + service(*ns_per_byte, packet.bytes);
                    (end, packet)
                });
                Some(sent)
            }
            Server::Trace { trace, current, open } => loop {
                let Some((at, room)) = open.take() else {
                    let idle = current.is_none() && queue.is_empty();
                    if idle || trace.peek() > now {
                        return None;
                    }
                    *open = Some((trace.peek(), trace.bytes()));
                    trace.consume();
                    continue;
                };
                let (left, packet) = current.take().or_else(|| {
                    let packet = queue.pop(at, &mut drop)?;
                    Some((packet.network_bytes, packet))
                })?;
                if left <= room {
                    *open = (left < room).then(|| (at, room - left));
                    return Some((at, packet));
                }
                *current = Some((left - room, packet));
            },
        }
    }

    /// From the end of the serialisation on: loss, delay and jitter.
    fn propagate(&mut self, at: Nanos, packet: Packet<T>) {
        if packet.lossy && self.loss.next_is_lost(at) {
            self.counts.lost += 1;
            self.dropped.push_back((packet.item, Dropped::Lost));
            return;
        }
        let mut due = at + self.delay.at(at);
        if self.jitter > 0 {
            let unit = self.random.unit(Purpose::Jitter, self.propagated);
            self.propagated += 1;
            let later = (2.0 * unit * self.jitter as f64) as Nanos;
            due = (due + later).saturating_sub(self.jitter).max(at);
        }
        self.last_due = self.last_due.max(due);
        self.line.push_back((self.last_due, packet.item));
    }

    /// When to call [`Pipe::advance`] and [`Pipe::pop_due`] next, if nothing enters.
    pub fn next_deadline(&self) -> Option<Nanos> {
        if let Some((due, _)) = self.line.front() {
            return Some(*due);
        }
        // The end of a service need not be observed on its own: the packet
        // comes out no earlier than the least delay after it.
        let served = match &self.server {
            Server::Unlimited => None,
            Server::Constant { current, .. } => current.as_ref().map(|(end, _)| *end),
            Server::Trace { trace, current, .. } => {
                (current.is_some() || !self.queue.is_empty()).then(|| trace.peek())
            }
        };
        let served = served.map(|end| end + self.delay.at(end).saturating_sub(self.jitter));
        let lit = self.lit.front().map(|(at, ..)| *at);
        served.into_iter().chain(lit).min()
    }

    /// A packet that comes out by `now`, with the time that it was due.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        let due = self.line.front()?.0;
        if due <= now { self.line.pop_front() } else { None }
    }

    /// A packet that will not come out.
    pub fn pop_dropped(&mut self) -> Option<(T, Dropped)> {
        self.dropped.pop_front()
    }

    /// Empties the pipe of what is still under way.
    pub fn drain(&mut self) -> Vec<T> {
        let in_service = match &mut self.server {
            Server::Unlimited => None,
            Server::Constant { current, .. } => current.take().map(|(_, packet)| packet.item),
            Server::Trace { current, .. } => current.take().map(|(_, packet)| packet.item),
        };
        let line = self.line.drain(..).map(|(_, item)| item);
        let lit = self.lit.drain(..).map(|(.., packet)| packet.item);
        line.chain(in_service).chain(self.queue.drain()).chain(lit).collect()
    }

    /// What has gone through so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The most bytes that ever waited at once.
    pub fn max_queue_bytes(&self) -> u64 {
        self.queue.max_bytes()
    }
}

/// How long a packet as RED thinks of it takes, on average.
fn packet_time(rate: &Rate) -> Nanos {
    match rate {
        Rate::Unlimited => 0,
        Rate::Constant(bits_per_second) => service(8e9 / bits_per_second, red::PACKET_BYTES),
        Rate::Trace(trace) => {
            let bytes = trace.opportunities() as u64 * u64::from(trace.bytes());
            trace.round() * u64::from(red::PACKET_BYTES) / bytes
        }
    }
}

fn service(ns_per_byte: f64, bytes: u32) -> Nanos {
    (ns_per_byte * f64::from(bytes)).round() as Nanos
}

#[cfg(test)]
mod tests;
