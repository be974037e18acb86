// SPDX-License-Identifier: GPL-2.0-or-later
//! One channel: one transmission at a time, in transmit opportunities.
//!
//! Whoever has something to send draws a backoff; the fewest slots win and equal
//! ones collide. The winner sends an aggregate to one receiver; each frame in it is
//! lost or not on its own, and what is lost goes first in the sender's next one.

use std::collections::{BTreeMap, VecDeque};

use crate::Nanos;
use crate::airtime::{self, SIFS, SLOT};
use crate::errors::Fading;
use crate::queues::{Pending, Sender};
use crate::random::Random;
use crate::settings::{LinkSettings, Radio};

pub use crate::frame::{Bar, Counts, Event, Fate, Frame, Kind, Role, Station};

/// A block ack request: 20 bytes and its check sequence.
const BAR_BYTES: u32 = 24;
/// A beacon with the usual elements.
const BEACON_BYTES: u32 = 300;
/// Between two beacons: 100 time units of 1,024 us.
pub const BEACON_INTERVAL: Nanos = 102_400_000;

/// What the air does at the moment.
#[derive(Debug)]
enum Phase<H> {
    /// Nobody wants to send.
    Idle,
    /// Backoffs run; then these stations send: more than one collide.
    ///
    /// What they have to send by now ends no earlier than `ends`.
    Contending { until: Nanos, ends: Nanos, winners: Vec<(usize, usize)> },
    /// These transmissions run.
    Sending { until: Nanos, bursts: Vec<Burst<H>> },
}

/// One transmission: an aggregate, a plain frame or a block ack request.
#[derive(Debug)]
struct Burst<H> {
    sender: usize,
    access: usize,
    queue: usize,
    what: Content<H>,
}

#[derive(Debug)]
enum Content<H> {
    /// With the time at which each frame ends.
    Frames(Vec<(Nanos, Pending<H>)>),
    Bar(u16),
}

/// Between two stations.
#[derive(Debug)]
struct Link {
    settings: LinkSettings,
    fading: Fading,
}

/// A channel with its stations; `H` is what a caller knows its frames by.
#[derive(Debug)]
pub struct Channel<H> {
    radio: Radio,
    link: LinkSettings,
    random: Random,
    now: Nanos,
    phase: Phase<H>,
    senders: Vec<Sender<H>>,
    asleep: Vec<bool>,
    /// By the lower and the higher number: both directions fade together.
    links: BTreeMap<(Station, Station), Link>,
    counts: BTreeMap<(Station, Station), Counts>,
    beacons: Vec<Nanos>,
    events: VecDeque<Event<H>>,
}

impl<H> Channel<H> {
    /// A channel without stations. All links are `link` until told otherwise.
    pub fn new(radio: Radio, link: LinkSettings, seed: u64) -> Channel<H> {
        Channel {
            radio,
            link,
            random: Random::new(seed),
            now: 0,
            phase: Phase::Idle,
            senders: Vec::new(),
            asleep: Vec::new(),
            links: BTreeMap::new(),
            counts: BTreeMap::new(),
            beacons: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// Another station; at most 32.
    pub fn add(&mut self, role: Role) -> Station {
        let station = Station(self.senders.len() as u8);
        assert!(station.0 < 32, "a channel of more than 32 stations");
        self.senders.push(Sender::new(role));
        self.asleep.push(false);
        station
    }

    /// How it is between these two from now on.
    pub fn set_link(&mut self, a: Station, b: Station, settings: LinkSettings) {
        let key = (a.min(b), a.max(b));
        let random = self.random.fork(u64::from(key.0.0) << 8 | u64::from(key.1.0));
        let fading = Fading::new(settings.errors(), random);
        self.links.insert(key, Link { settings, fading });
    }

    /// Lets an access point's beacons take air from `first` on. A caller that sends
    /// its own beacons as frames does not want these.
    pub fn send_beacons(&mut self, first: Nanos) {
        self.beacons.push(first);
    }

    /// A frame comes to its sender's queue. `at` may lie before the time of the last
    /// call; then it comes now.
    pub fn push(&mut self, at: Nanos, frame: Frame<H>) {
        self.advance(at);
        self.senders[frame.from.index()].push(frame, self.now);
        self.wake_up();
    }

    /// A station falls asleep, so that nothing is sent to it, or wakes up.
    pub fn set_asleep(&mut self, at: Nanos, station: Station, asleep: bool) {
        self.advance(at);
        self.asleep[station.index()] = asleep;
        self.wake_up();
    }

    /// When to call [`Channel::advance`] next, if nothing is pushed.
    pub fn next_event(&self) -> Option<Nanos> {
        match &self.phase {
            Phase::Idle => None,
            // Nothing comes of a backoff's end.
            Phase::Contending { ends, .. } => Some(*ends),
            Phase::Sending { until, .. } => Some(*until),
        }
    }

    /// When the present phase ends.
    fn phase_ends(&self) -> Option<Nanos> {
        match &self.phase {
            Phase::Idle => None,
            Phase::Contending { until, .. } | Phase::Sending { until, .. } => Some(*until),
        }
    }

    /// How long what a winner of the air would send now lasts at least.
    fn least_airtime(&self, sender: usize, access: usize) -> Nanos {
        let own = &self.senders[sender].access[access];
        let queue = own.next_queue(&self.asleep).map(|queue| &own.queues[queue]);
        match queue {
            Some(queue) if queue.bar.is_none() && queue.tid.is_some() => {
                let mbit = self.rate(Station(sender as u8), queue.to);
                let (_, bits) = queue.fits(self.radio.aggregate as usize, mbit);
                airtime::before_aggregate() + bits + airtime::after_aggregate()
            }
            _ => 0,
        }
    }

    /// Mbit/s of data frames between two stations, or to everybody.
    fn rate(&self, from: Station, to: Option<Station>) -> f64 {
        let link = to.and_then(|to| self.links.get(&(from.min(to), from.max(to))));
        link.map_or(self.link.rate_mbit(), |link| link.settings.rate_mbit())
    }

    /// Lets everything happen that happens until `now`.
    pub fn advance(&mut self, now: Nanos) {
        while let Some(at) = self.phase_ends().filter(|at| *at <= now) {
            self.now = self.now.max(at);
            match std::mem::replace(&mut self.phase, Phase::Idle) {
                Phase::Idle => {}
                Phase::Contending { winners, .. } => self.send(at, winners),
                Phase::Sending { bursts, .. } => {
                    let collided = bursts.len() > 1;
                    for burst in bursts {
                        self.end(at, burst, collided);
                    }
                    self.contend(at);
                }
            }
        }
        self.now = self.now.max(now);
    }

    /// The next thing that has happened.
    pub fn pop_event(&mut self) -> Option<Event<H>> {
        self.events.pop_front()
    }

    /// Frames from one station to another that wait or are on the air.
    pub fn waiting(&self, from: Station, to: Station) -> impl Iterator<Item = &Frame<H>> {
        let sender = &self.senders[from.index()];
        let queues = sender.access.iter().flat_map(|access| &access.queues);
        let queued = queues.filter(move |queue| queue.to == Some(to));
        let queued = queued.flat_map(|queue| &queue.frames).map(|pending| &pending.frame);
        let bursts = match &self.phase {
            Phase::Sending { bursts, .. } => &bursts[..],
            _ => &[],
        };
        let sent = bursts.iter().filter(move |burst| burst.sender == from.index());
        let sent = sent.flat_map(|burst| match &burst.what {
            Content::Frames(frames) => &frames[..],
            Content::Bar(_) => &[],
        });
        let sent = sent.map(|(_, pending)| &pending.frame);
        queued.chain(sent.filter(move |frame| frame.to == Some(to)))
    }

    /// Takes out what waits or is on the air.
    pub fn drain(&mut self) -> impl Iterator<Item = H> {
        let bursts = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Sending { bursts, .. } => bursts,
            _ => Vec::new(),
        };
        let sent = bursts.into_iter().flat_map(|burst| match burst.what {
            Content::Frames(frames) => frames,
            Content::Bar(_) => Vec::new(),
        });
        let access = self.senders.iter_mut().flat_map(|sender| &mut sender.access);
        let queues = access.flat_map(|access| &mut access.queues);
        let queued = queues.flat_map(|queue| queue.frames.drain(..));
        sent.map(|(_, pending)| pending).chain(queued).map(|pending| pending.frame.handle)
    }

    /// What has been sent from one station to another so far.
    pub fn counts(&self, from: Station, to: Station) -> Counts {
        self.counts.get(&(from, to)).copied().unwrap_or_default()
    }

    fn wake_up(&mut self) {
        if matches!(self.phase, Phase::Idle) {
            self.contend(self.now);
        }
    }

    /// Starts the backoffs of whoever wants to send.
    fn contend(&mut self, at: Nanos) {
        let mut wanting = Vec::new();
        for (number, sender) in self.senders.iter_mut().enumerate() {
            for (category, access) in sender.access.iter_mut().enumerate() {
                if access.next_queue(&self.asleep).is_none() {
                    continue;
                }
                let window = u64::from(access.window) + 1;
                let backoff =
                    access.backoff.get_or_insert_with(|| self.random.below(window) as u32);
                wanting.push((access.contention.aifsn + *backoff, number, category));
            }
        }
        let Some(fewest) = wanting.iter().map(|(slots, ..)| *slots).min() else {
            self.phase = Phase::Idle;
            return;
        };
        let mut winners: Vec<(usize, usize)> = Vec::new();
        for (slots, number, category) in wanting {
            let access = &mut self.senders[number].access[category];
            let counted = fewest.saturating_sub(access.contention.aifsn);
            access.backoff = access.backoff.map(|backoff| backoff.saturating_sub(counted));
            if slots == fewest && winners.last().is_none_or(|(last, _)| *last != number) {
                winners.push((number, category));
            }
            // Within a station the more urgent category goes first and nothing collides.
        }
        let start = self.after_beacons(at);
        let until = start + SIFS + Nanos::from(fewest) * SLOT;
        let least = winners.iter().map(|(sender, access)| self.least_airtime(*sender, *access));
        let ends = until + least.max().unwrap_or(0);
        self.phase = Phase::Contending { until, ends, winners };
    }

    /// When the air is free of the beacons that were due.
    fn after_beacons(&mut self, at: Nanos) -> Nanos {
        let mut free = at;
        for next in &mut self.beacons {
            if *next > at {
                continue;
            }
            let missed = (at - *next) / BEACON_INTERVAL;
            let ends = *next + missed * BEACON_INTERVAL + airtime::plain(BEACON_BYTES, false);
            // One that was due while something else was on the air follows it.
            let waited = *next + missed * BEACON_INTERVAL + BEACON_INTERVAL / 8 > at;
            if waited {
                free = free.max(ends);
            }
            *next += (missed + 1) * BEACON_INTERVAL;
        }
        free
    }

    /// The winners' transmissions begin.
    fn send(&mut self, at: Nanos, winners: Vec<(usize, usize)>) {
        let mut until = at;
        let mut bursts = Vec::new();
        for (sender, access) in winners {
            let own = &mut self.senders[sender].access[access];
            // A receiver may have fallen asleep meanwhile.
            let Some(queue) = own.next_queue(&self.asleep) else { continue };
            own.served(queue);
            let (to, bar) = (own.queues[queue].to, own.queues[queue].bar);
            let (what, ends) = match bar {
                Some(start) => (Content::Bar(start), at + airtime::plain(BAR_BYTES, true)),
                None => self.aggregate(at, sender, access, queue, to),
            };
            until = until.max(ends);
            bursts.push(Burst { sender, access, queue, what });
        }
        self.phase = Phase::Sending { until, bursts };
    }

    /// What goes out of a queue at once, and when that ends.
    fn aggregate(
        &mut self,
        at: Nanos,
        sender: usize,
        access: usize,
        queue: usize,
        to: Option<Station>,
    ) -> (Content<H>, Nanos) {
        let mbit = self.rate(Station(sender as u8), to);
        let most = self.radio.aggregate as usize;
        let queue = &mut self.senders[sender].access[access].queues[queue];
        let plain = queue.tid.is_none();
        let frames = queue.take(most, mbit);
        let mut end = at + if plain { 0 } else { airtime::before_aggregate() };
        let timed: Vec<_> = frames
            .into_iter()
            .map(|pending| {
                let bytes = pending.frame.bytes;
                let acknowledged = to.is_some();
                end += match plain {
                    true => airtime::plain(bytes, acknowledged),
                    false => airtime::mpdu(bytes, mbit),
                };
                (end, pending)
            })
            .collect();
        (Content::Frames(timed), end + if plain { 0 } else { airtime::after_aggregate() })
    }

    /// A transmission is over.
    fn end(&mut self, at: Nanos, burst: Burst<H>, collided: bool) {
        let Burst { sender, access, queue, what } = burst;
        let to = self.senders[sender].access[access].queues[queue].to;
        let answered = match (what, to) {
            (Content::Frames(frames), None) => {
                self.heard_by_all(at, sender, frames, collided);
                true
            }
            (Content::Frames(frames), Some(to)) => {
                self.settle(at, frames, (sender, access, queue), to, collided)
            }
            (Content::Bar(start), Some(to)) => {
                let from = Station(sender as u8);
                let arrived = !collided && !self.link(from, to).fading.spoils(at, 1);
                let queue = &mut self.senders[sender].access[access].queues[queue];
                if arrived && let Some(tid) = queue.tid {
                    queue.bar = None;
                    self.events.push_back(Event::Bar(Bar { at, from, to, tid, start }));
                }
                arrived
            }
            (Content::Bar(_), None) => true,
        };
        self.senders[sender].access[access].ended(answered, self.radio.attempts);
    }

    /// Decides about the frames of an aggregate; gives whether any was acknowledged.
    fn settle(
        &mut self,
        at: Nanos,
        frames: Vec<(Nanos, Pending<H>)>,
        (sender, access, queue): (usize, usize, usize),
        to: Station,
        collided: bool,
    ) -> bool {
        let from = Station(sender as u8);
        let mut again = Vec::new();
        let mut answered = false;
        for (ends, mut pending) in frames {
            pending.attempts += 1;
            let spoilt = self.link(from, to).fading.spoils(ends, pending.attempts);
            let delivered = !collided && !spoilt;
            answered |= delivered;
            if !delivered && pending.attempts < self.radio.attempts {
                again.push(pending);
                continue;
            }
            let counts = self.counts.entry((from, to)).or_default();
            counts.frames += 1;
            counts.retries += u64::from(pending.attempts - 1);
            counts.failed += u64::from(!delivered);
            let Pending { frame, entered, attempts } = pending;
            if let (false, Kind::Data { sequence, .. }, true) =
                (delivered, frame.kind, self.radio.bar)
            {
                let after = (sequence + 1) & 0xfff;
                self.senders[sender].access[access].queues[queue].bar = Some(after);
            }
            let heard = u32::from(delivered) << to.0;
            let fate = Fate { frame, entered, at, attempts, delivered, heard };
            self.events.push_back(Event::Frame(fate));
        }
        let queue = &mut self.senders[sender].access[access].queues[queue];
        for pending in again.into_iter().rev() {
            queue.frames.push_front(pending);
        }
        answered
    }

    fn heard_by_all(
        &mut self,
        at: Nanos,
        sender: usize,
        frames: Vec<(Nanos, Pending<H>)>,
        collided: bool,
    ) {
        let from = Station(sender as u8);
        for (_, Pending { frame, entered, .. }) in frames {
            let mut heard = 0;
            for other in (0..self.senders.len() as u8).map(Station) {
                if other != from && !collided && !self.link(from, other).fading.spoils(at, 1) {
                    heard |= 1 << other.0;
                }
            }
            let fate = Fate { frame, entered, at, attempts: 1, delivered: true, heard };
            self.events.push_back(Event::Frame(fate));
        }
    }

    fn link(&mut self, a: Station, b: Station) -> &mut Link {
        let key = (a.min(b), a.max(b));
        if !self.links.contains_key(&key) {
            self.set_link(a, b, self.link.clone());
        }
        self.links.get_mut(&key).expect("just set")
    }
}

#[cfg(test)]
mod tests;
