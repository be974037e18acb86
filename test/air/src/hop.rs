// SPDX-License-Identifier: GPL-2.0-or-later
//! A hop for packets over the channel: what mac80211 does at both ends besides.
//!
//! It numbers the frames, limits what waits below the queue discipline (AQL), keeps
//! the receivers' reorder buffers, and lets the client sleep and roam. The queue
//! discipline itself is the caller's: it asks [`Hop::has_room`] before each packet.

mod client;
mod neighbours;
mod reorder;

use std::collections::VecDeque;

use crate::airtime;
use crate::channel::{BEACON_INTERVAL, Bar, Channel, Event, Fate, Frame, Kind, Role, Station};
use crate::random::Random;
use crate::settings::{Roam, Settings};
use crate::{MS, Nanos, ms};

use client::Client;
use neighbours::Neighbours;

/// MAC header, QoS control and LLC.
const HEADER_BYTES: u32 = 34;
/// Airtime that may wait for one receiver below the queue discipline: mac80211's AQL
/// with its default limits.
const AQL_LOW: Nanos = 5 * MS;
const AQL_HIGH: Nanos = 12 * MS;
/// The high limit holds while all receivers together have less than this.
const AQL_THRESHOLD: Nanos = 24 * MS;
/// Bursts of neighbours from before this have left no trace.
const MEMORY: Nanos = 1_000 * MS;
/// What a client that wakes up exchanges before it gets its frames.
const WAKING: Nanos = MS / 2;

/// Whether AQL lets a sender hand down another frame to a receiver, for whom so much airtime
/// waits there already; `all`: for that sender's receivers together.
pub fn aql_allows(waits: Nanos, all: Nanos) -> bool {
    waits < AQL_LOW || (waits < AQL_HIGH && all < AQL_THRESHOLD)
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the client.
    Down,
    /// To the access point.
    Up,
}

/// What has become of a packet.
#[derive(Debug)]
pub struct Outcome<T> {
    /// When.
    pub at: Nanos,
    /// Whose it is.
    pub client: usize,
    /// Its way.
    pub way: Way,
    /// It has arrived.
    pub arrived: bool,
    /// The packet.
    pub item: T,
}

/// What the channel carries for a hop.
#[derive(Debug)]
enum Load<T> {
    Own(Own<T>),
    /// Of a neighbour's source of this number.
    Neighbour(usize),
}

/// A packet of a client.
#[derive(Debug)]
struct Own<T> {
    client: usize,
    way: Way,
    /// The client's association when it was sent.
    association: u32,
    sequence: u16,
    airtime: Nanos,
    item: T,
}

/// Access points, their clients and their neighbours.
#[derive(Debug)]
pub struct Hop<T> {
    now: Nanos,
    channel: Channel<Load<T>>,
    access_points: Vec<Station>,
    clients: Vec<Client<T>>,
    neighbours: Neighbours,
    /// After so long without a frame a client sleeps.
    sleeps_after: Option<Nanos>,
    roam: Option<Roam>,
    random: Random,
    rate_mbit: f64,
    /// Own packets on the channel.
    waiting: usize,
    log: Option<VecDeque<String>>,
    outcomes: VecDeque<Outcome<T>>,
}

impl<T> Hop<T> {
    /// A hop of so many clients that all have the preset's link.
    pub fn new(settings: &Settings, clients: usize, seed: u64, start: Nanos) -> Hop<T> {
        let mut random = Random::new(seed);
        let link = settings.link.clone();
        let mut channel = Channel::new(settings.radio.clone(), link, seed);
        channel.advance(start);
        let count = if settings.roam.is_some() { 2 } else { 1 };
        let mut access_points = Vec::new();
        for _ in 0..count {
            access_points.push(channel.add(Role::AccessPoint));
            channel.send_beacons(start + random.below(BEACON_INTERVAL));
        }
        let clients = (0..clients)
            .map(|_| {
                let moves = settings
                    .roam
                    .as_ref()
                    .map(|roam| start + random.exponential(ms(roam.every_ms)));
                let station = channel.add(Role::Client);
                Client::new(station, start + random.below(BEACON_INTERVAL), moves)
            })
            .collect();
        let access_point = access_points[0];
        let mut neighbours =
            Neighbours::new(&settings.neighbours, &mut channel, access_point, random.fork(1));
        neighbours.skip(start);
        Hop {
            now: start,
            channel,
            access_points,
            clients,
            neighbours,
            sleeps_after: settings.sleep.as_ref().map(|sleep| ms(sleep.after_ms)),
            roam: settings.roam.clone(),
            random,
            rate_mbit: settings.link.rate_mbit(),
            waiting: 0,
            log: None,
            outcomes: VecDeque::new(),
        }
    }

    /// Keeps a row of each frame's fate for [`Hop::pop_row`].
    pub fn keep_log(&mut self) {
        self.log = Some(VecDeque::new());
    }

    /// The next row of the log; its columns are those of [`Fate::HEADER`].
    pub fn pop_row(&mut self) -> Option<String> {
        self.log.as_mut()?.pop_front()
    }

    /// Whether the queue discipline may hand down another packet.
    pub fn has_room(&self, client: usize, way: Way) -> bool {
        let waits = self.clients[client].airtime[way as usize];
        let others = self.clients.iter().map(|client| client.airtime[way as usize]);
        // Each client is a transmitter of its own.
        let all: Nanos = if way == Way::Down { others.sum() } else { waits };
        aql_allows(waits, all)
    }

    /// A packet of so many bytes with IP header sets out. `at` may lie before the
    /// last call; then it sets out now.
    pub fn push(&mut self, at: Nanos, client: usize, way: Way, bytes: u32, item: T) {
        self.advance(at);
        let at = self.now;
        self.sleep_or_wake(at, client, way);
        let own = &mut self.clients[client];
        if at < own.silent_until {
            match way {
                // The old access point takes the client to be there.
                Way::Down => {
                    self.outcomes.push_back(Outcome { at, client, way, arrived: false, item })
                }
                Way::Up => own.held.push_back((bytes, item)),
            }
            return;
        }
        self.transmit(at, client, way, bytes, item);
    }

    /// When to call [`Hop::advance`] next, if nothing is pushed.
    pub fn next_event(&self) -> Option<Nanos> {
        let own = self.clients.iter().filter_map(Client::deadline).min();
        if self.waiting == 0 {
            // What others do shows when the next packet comes.
            return own;
        }
        self.next_step().into_iter().chain(own).min()
    }

    /// Lets everything happen that happens until `now`.
    pub fn advance(&mut self, now: Nanos) {
        if self.waiting == 0 && now > self.now + 2 * MEMORY {
            self.neighbours.skip(now - MEMORY);
        }
        while let Some(at) = self.next_step().filter(|at| *at <= now) {
            self.now = self.now.max(at);
            self.step();
        }
        self.now = self.now.max(now);
        self.channel.advance(self.now);
    }

    /// The next packet whose outcome is known.
    pub fn pop_outcome(&mut self) -> Option<Outcome<T>> {
        self.outcomes.pop_front()
    }

    /// Packets that have neither arrived nor been given up.
    pub fn under_way(&mut self) -> Vec<(usize, Way, T)> {
        let mut left = Vec::new();
        for (number, client) in self.clients.iter_mut().enumerate() {
            left.extend(client.drain().map(|(way, item)| (number, way, item)));
        }
        let queued = self.channel.drain().filter_map(|load| match load {
            Load::Own(own) => Some((own.client, own.way, own.item)),
            Load::Neighbour(_) => None,
        });
        left.extend(queued);
        self.waiting = 0;
        left
    }

    /// The next thing that happens, whether or not it matters to a packet now.
    fn next_step(&self) -> Option<Nanos> {
        let clients = self.clients.iter().filter_map(Client::deadline);
        let moves = self.clients.iter().filter_map(|client| client.moves);
        let channel = self.channel.next_event();
        clients.chain(moves).chain(channel).chain(self.neighbours.next()).min()
    }

    fn step(&mut self) {
        let now = self.now;
        self.channel.advance(now);
        while let Some(event) = self.channel.pop_event() {
            match event {
                Event::Frame(fate) => self.settled(fate),
                Event::Bar(bar) => self.requested(bar),
            }
        }
        self.neighbours.send(now, &mut self.channel);
        for number in 0..self.clients.len() {
            self.timers(now, number);
        }
    }

    /// What is due at one client.
    fn timers(&mut self, now: Nanos, number: usize) {
        let Hop { clients, channel, outcomes, .. } = self;
        let client = &mut clients[number];
        for way in [Way::Down, Way::Up] {
            client.reorder[way as usize].expire(now, |item| {
                outcomes.push_back(Outcome { at: now, client: number, way, arrived: true, item });
            });
        }
        if client.wakes.is_some_and(|at| at <= now) {
            client.wakes = None;
            client.active = now;
            channel.set_asleep(now, client.station, false);
        }
        if client.silent_until <= now {
            for (bytes, item) in std::mem::take(&mut client.held) {
                self.transmit(now, number, Way::Up, bytes, item);
            }
        }
        if self.clients[number].moves.is_some_and(|at| at <= now) {
            self.move_away(now, number);
        }
    }

    /// How often a client has come to another access point by now.
    pub fn moves(&self, client: usize, now: Nanos) -> u32 {
        let silent = !self.is_there(client, now);
        self.clients[client].association - u32::from(silent)
    }

    /// Whether a client is with an access point, and not on its way to another one.
    pub fn is_there(&self, client: usize, now: Nanos) -> bool {
        self.clients[client].silent_until <= now
    }

    /// A client leaves its access point for the next one.
    fn move_away(&mut self, now: Nanos, number: usize) {
        let Some(roam) = &self.roam else { return };
        let client = &mut self.clients[number];
        client.silent_until = now + ms(roam.silence_ms);
        client.moves = Some(client.silent_until + self.random.exponential(ms(roam.every_ms)));
        client.access_point = (client.access_point + 1) % self.access_points.len();
        client.association += 1;
        client.sequences = [0, 0];
        for way in [Way::Down, Way::Up] {
            for item in client.reorder[way as usize].end() {
                let arrived = false;
                self.outcomes.push_back(Outcome { at: now, client: number, way, arrived, item });
            }
        }
    }

    /// Power save, as far as a packet at this time tells of it.
    fn sleep_or_wake(&mut self, at: Nanos, number: usize, way: Way) {
        let Some(after) = self.sleeps_after else { return };
        let client = &mut self.clients[number];
        let asleep = client.wakes.is_some() || at > client.active + after;
        if !asleep || way == Way::Up {
            if client.wakes.take().is_some() {
                self.channel.set_asleep(at, client.station, false);
            }
            client.active = at;
        } else if client.wakes.is_none() {
            let passed = (at - client.first_beacon.min(at)) / BEACON_INTERVAL + 1;
            let beacon = client.first_beacon + passed * BEACON_INTERVAL;
            client.wakes = Some(beacon + WAKING);
            self.channel.set_asleep(at, client.station, true);
        }
    }

    fn transmit(&mut self, at: Nanos, number: usize, way: Way, bytes: u32, item: T) {
        let client = &mut self.clients[number];
        let sequence = client.sequences[way as usize];
        client.sequences[way as usize] = (sequence + 1) & 0xfff;
        let bytes = bytes + HEADER_BYTES;
        let airtime = airtime::mpdu(bytes, self.rate_mbit);
        client.airtime[way as usize] += airtime;
        let access_point = self.access_points[client.access_point];
        let (from, to) = match way {
            Way::Down => (access_point, client.station),
            Way::Up => (client.station, access_point),
        };
        let association = client.association;
        let own = Own { client: number, way, association, sequence, airtime, item };
        let kind = Kind::Data { tid: 0, sequence };
        self.waiting += 1;
        self.channel.push(at, Frame { handle: Load::Own(own), from, to: Some(to), bytes, kind });
    }

    /// A frame is off the air.
    fn settled(&mut self, fate: Fate<Load<T>>) {
        if let Some(log) = &mut self.log {
            log.push_back(fate.row());
        }
        let (at, delivered) = (fate.at, fate.delivered);
        let Own { client: number, way, association, sequence, airtime, item } =
            match fate.frame.handle {
                Load::Neighbour(number) => return self.neighbours.settled(number),
                Load::Own(own) => own,
            };
        self.waiting -= 1;
        let client = &mut self.clients[number];
        client.airtime[way as usize] -= airtime;
        client.active = at;
        let outcomes = &mut self.outcomes;
        let mut tell = |arrived, item| {
            outcomes.push_back(Outcome { at, client: number, way, arrived, item });
        };
        let present = association == client.association && client.silent_until <= at;
        if !delivered || !present {
            return tell(false, item);
        }
        let reorder = &mut client.reorder[way as usize];
        if let Err(item) = reorder.arrive(at, sequence, item, |item| tell(true, item)) {
            tell(false, item);
        }
    }

    /// A receiver is told to wait no longer.
    fn requested(&mut self, bar: Bar) {
        let owner = |client: &Client<T>| client.station == bar.to || client.station == bar.from;
        let Some(number) = self.clients.iter().position(owner) else { return };
        let client = &mut self.clients[number];
        let current = self.access_points[client.access_point];
        if current != bar.from && current != bar.to {
            return;
        }
        let way = if bar.to == client.station { Way::Down } else { Way::Up };
        let outcomes = &mut self.outcomes;
        client.reorder[way as usize].request(bar.start, |item| {
            outcomes.push_back(Outcome { at: bar.at, client: number, way, arrived: true, item });
        });
    }
}

#[cfg(test)]
mod tests;
