// SPDX-License-Identifier: GPL-2.0-or-later
//! A worker: one thread with one capture, an engine of its own, and a way out for copies.
//!
//! It carries packets from the capture to the engine, and carries out what the engine
//! decides. How packets are seen and how copies are sent is none of its business, so a test
//! can drive it without a kernel.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use log::LevelFilter;
use pemi_engine::packet::{Parsed, Udp, parse};
use pemi_engine::{
    Action, Direction, Engines, Event, FlowInfo, Handle, MS, Nanos, Outcome, Stats, Time, Verdict,
};

use crate::config::{Config, Mode, Repaired};
use crate::datapath::capture::{self, Capture, Interests, Seen};
use crate::datapath::direction::Classifier;
use crate::datapath::outlet::{self, Outlet};
use crate::datapath::probe;
use crate::datapath::teller::{Teller, Told};
use crate::datapath::ways::Way;
use crate::log::item::Item;
use crate::log::{events, logger};
use crate::sys::channel::{Receiver, Refused, Sender};
use crate::sys::poll::{Interest, Waker};
use crate::sys::reply::Reply;
use crate::sys::{checksum, privileges, sched};

/// A timer later than this goes before the next packet; otherwise the packet
/// goes first: it may be the reply that the timer is waiting for.
const OVERDUE: Nanos = 3 * MS / 10;
/// Batches taken in a row before timers and commands get their turn.
const ROUNDS: usize = 8;

/// What a worker is asked from outside.
#[derive(Debug)]
pub enum Command {
    /// Use these settings, and report these events, from now on.
    Configure(Box<Config>, Wanted),
    /// Report the counters.
    Snapshot(Reply<Snapshot>),
    /// Report the flows with the most downstream bytes, at most so many.
    Flows(usize, Reply<Vec<FlowInfo>>),
    /// Report what came of downloads since the last time.
    Outcomes(Reply<Vec<Outcome>>),
    /// Leave the flows of these networks alone, a bit for each, by the order of the devices.
    StandBack(u8),
    /// Counters back to zero.
    Reset,
    /// Release everything and end.
    Stop,
}

/// Which events somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    all: bool,
    level: LevelFilter,
}

impl Wanted {
    /// For an event file, all of them; for the log, those of its level.
    pub fn new(file: bool, level: LevelFilter) -> Wanted {
        Wanted { all: file, level }
    }

    fn any(self) -> bool {
        self.all || self.level >= LevelFilter::Info
    }

    fn wants(self, event: &Event) -> bool {
        self.all || events::level(event.kind) <= self.level
    }
}

/// The counters of one worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    /// How packets are seen.
    pub capture_name: &'static str,
    /// Number of the capture: that of its queue.
    pub id: u16,
    /// What the capture has counted.
    pub capture: capture::Counters,
    /// What the engine has counted.
    pub stats: Stats,
    /// Packets that were let go without the engine having been shown them: too large, cut,
    /// or of an unknown direction.
    pub unseen: u64,
    /// The scheduler gave no real-time priority.
    pub realtime_refused: bool,
    /// What the way out has counted.
    pub outlet: outlet::Counters,
}

impl Snapshot {
    /// Packets taken from the capture.
    pub fn packets(&self) -> u64 {
        self.stats.packets_down + self.stats.packets_up + self.unseen
    }
}

/// Where a worker's orders come from, and where its events go.
#[derive(Debug)]
pub struct Line {
    /// What it is asked.
    pub commands: Receiver<Command>,
    /// Ready when there is something in `commands`, or to be told by `teller`.
    pub waker: Arc<Waker>,
    /// Becomes true when packets are taken in, or counters go back to zero.
    pub moved: Arc<AtomicBool>,
    /// Where events go.
    pub events: Sender<Item>,
    /// Which events somebody wants, until the next [`Command::Configure`].
    pub wanted: Wanted,
    /// Who tells what access points count, if somebody does.
    pub teller: Option<Box<dyn Teller>>,
}

/// A worker.
#[derive(Debug)]
pub(crate) struct Worker<C, O> {
    capture: C,
    outlet: O,
    engine: Engines,
    classifier: Classifier,
    bridged: bool,
    /// Losses on the way up are repaired, too, so packets up may have to be sent again.
    both: bool,
    line: Line,
    /// Time of the packets before which deadlines were looked at.
    looked: Time,
    /// Index of the interface by which the packet in hand is to leave.
    leaves_by: u32,
    bypass_mark: u32,
    unseen: u64,
    realtime_refused: bool,
}

impl<C: Capture, O: Outlet> Worker<C, O> {
    /// One for `capture` that sends by `outlet`.
    pub fn new(config: &Config, capture: C, outlet: O, line: Line) -> Worker<C, O> {
        let seed = RandomState::new().hash_one("flow table");
        Worker {
            engine: Engines::new(config.engine(line.wanted.any()), seed),
            classifier: Classifier::new(&config.device, &config.port, capture.now()),
            bridged: config.mode == Mode::Bridged,
            both: config.direction == Repaired::Both,
            looked: Time::ZERO,
            leaves_by: 0,
            bypass_mark: config.bypass_mark,
            unseen: 0,
            realtime_refused: false,
            capture,
            outlet,
            line,
        }
    }

    /// Works in this thread until it is told to stop. An error means that the capture is
    /// of no use any more.
    pub fn run(mut self, realtime_priority: u8) -> io::Result<()> {
        self.settle(realtime_priority);
        while self.turn()?.is_continue() {}
        Ok(())
    }

    /// Gives the thread its priority and takes from it the rights that it does not need.
    fn settle(&mut self, realtime_priority: u8) {
        sched::exact_timers();
        if realtime_priority > 0
            && let Err(error) = sched::realtime(realtime_priority)
        {
            self.realtime_refused = true;
            log::warn!(
                "no real-time priority: {error}; repairs come late while the router is busy \
                 (needs CAP_SYS_NICE, or option realtime_priority 0) priority={realtime_priority}"
            );
        }
        // The kernel checks the rights again at each verdict, and at each socket that is
        // opened for a port of a bridge.
        privileges::keep_in_thread(&[privileges::NET_ADMIN, privileges::NET_RAW]);
    }

    /// One wait, and everything that is to be done after it.
    fn turn(&mut self) -> io::Result<ControlFlow<()>> {
        let mut interests = Interests::new();
        interests.push(Interest::read(&*self.line.waker));
        self.outlet.interests(&mut interests);
        let others = interests.len();
        let timeout = self.engine.next_timeout().map(|at| at.since(self.capture.now()));
        self.capture.wait(&mut interests, timeout)?;
        if interests[0].is_ready() && self.obey()?.is_break() {
            self.finish()?;
            return Ok(ControlFlow::Break(()));
        }
        let ready = &interests[1..others];
        if ready.iter().any(Interest::is_ready) {
            let (now, engine) = (self.capture.now(), &mut self.engine);
            let on_reply =
                |reply: probe::Reply| engine.on_probe_reply(now, reply.client, reply.rtt);
            self.outlet.replies(now, ready, on_reply);
            self.reports()?;
        }
        self.packets()?;
        self.timers()?;
        self.capture.flush()?;
        Ok(ControlFlow::Continue(()))
    }

    /// Does what was asked for.
    fn obey(&mut self) -> io::Result<ControlFlow<()>> {
        self.line.waker.clear();
        while let Some(command) = self.line.commands.take() {
            let now = self.capture.now();
            match command {
                Command::Configure(config, wanted) => {
                    self.line.wanted = wanted;
                    self.engine.set_config(now, config.engine(wanted.any()));
                    let classifier = Classifier::new(&config.device, &config.port, now);
                    self.engine.renumber(&self.classifier.numbers_in(&classifier));
                    self.classifier = classifier;
                    self.bypass_mark = config.bypass_mark;
                    self.both = config.direction == Repaired::Both;
                    self.capture.configure(&config);
                    self.act()?;
                }
                Command::Snapshot(to) => to.send(self.snapshot()),
                Command::Flows(limit, to) => to.send(largest(self.engine.flows(now), limit)),
                Command::Outcomes(to) => to.send(self.engine.outcomes(now)),
                Command::StandBack(networks) => {
                    self.engine.stand_back(now, networks);
                    self.act()?;
                }
                Command::Reset => {
                    self.engine.reset();
                    self.unseen = 0;
                    self.capture.reset();
                    self.line.moved.store(true, Ordering::Relaxed);
                }
                Command::Stop => return Ok(ControlFlow::Break(())),
            }
        }
        self.listen();
        Ok(ControlFlow::Continue(()))
    }

    /// Takes in what access points tell.
    fn listen(&mut self) {
        let Some(teller) = &self.line.teller else { return };
        while let Some(told) = teller.take() {
            match told {
                Told::Counted(client, radio) => self.engine.on_radio(client, radio),
                Told::Station(client, at, station) => self.engine.on_station(at, client, station),
            }
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            capture_name: self.capture.name(),
            id: self.capture.id(),
            capture: self.capture.counters(),
            stats: self.engine.stats(self.capture.now()),
            unseen: self.unseen,
            realtime_refused: self.realtime_refused,
            outlet: self.outlet.counters(),
        }
    }

    /// Takes in what has come.
    fn packets(&mut self) -> io::Result<()> {
        for round in 0..ROUNDS {
            if round > 0 {
                // What they tell has happened before the replies that are still to be read.
                self.reports()?;
            }
            let more = self.capture.fill()?;
            let mut moved = false;
            while let Some(seen) = self.capture.take() {
                moved = true;
                self.packet(&seen)?;
            }
            if moved {
                self.line.moved.store(true, Ordering::Relaxed);
            }
            self.capture.flush()?;
            if !more {
                break;
            }
        }
        Ok(())
    }

    /// Takes in what is reported of packets that were sent.
    fn reports(&mut self) -> io::Result<()> {
        let (now, engine) = (self.capture.now(), &mut self.engine);
        self.outlet.reports(|ticket, fate| engine.on_report(now, ticket, fate));
        self.act()
    }

    fn packet(&mut self, seen: &Seen) -> io::Result<()> {
        // What a packet of this time sets is due later.
        if seen.at != self.looked {
            self.looked = seen.at;
            if self.engine.next_timeout().is_some_and(|due| seen.at.since(due) > OVERDUE) {
                self.timers()?;
            }
        }
        if seen.missed {
            self.engine.on_gap(seen.at);
        }
        let bytes = self.capture.bytes();
        let parsed = parse(bytes);
        let (from, to) = match (self.bridged, seen.ports) {
            // Clients and WAN may be on one bridge, whose ports tell them apart.
            (true, (from, to)) if from != 0 && to != 0 => (from, to),
            _ => seen.devices,
        };
        let direction = self.classifier.direction(from, to, parsed.ports(), seen.at);
        // The kernel completes what it queues, TCP as well; if it did not, a copy would be of no use.
        let incomplete = seen.checksum_missing && matches!(parsed, Parsed::Tcp(_));
        let (Some(direction), true) = (direction, seen.whole && !incomplete) else {
            self.unseen += 1;
            return self.accept(seen.handle, None);
        };
        if let Parsed::Udp(udp) = parsed {
            if seen.checksum_missing {
                // No hardware will touch the copy, so it has to be complete.
                checksum::fill(bytes, &udp);
            }
            self.learn(seen, direction, to, &udp);
        }
        let client = if direction == Direction::Down { to } else { from };
        self.engine.from_network(self.classifier.network(client).unwrap_or(0));
        self.engine.waited(seen.waited);
        self.leaves_by = to;
        // Without a handle it is of a kind that the engine does not hold.
        let handle = seen.handle.unwrap_or(Handle(0));
        match self.engine.on_parsed(seen.at, direction, self.capture.bytes(), &parsed, handle) {
            Verdict::Forward => self.accept(seen.handle, None)?,
            // Who has that mark has been here with it: nothing has saved it.
            Verdict::Bypass => {
                let new = seen.mark & self.bypass_mark == 0;
                self.accept(seen.handle, new.then_some(seen.mark | self.bypass_mark))?;
            }
            Verdict::Hold => {}
        }
        self.act()
    }

    /// Lets a packet go on if it waits for that.
    fn accept(&mut self, handle: Option<Handle>, mark: Option<u32>) -> io::Result<()> {
        handle.map_or(Ok(()), |handle| self.capture.accept(handle, mark))
    }

    /// Notes how a packet leaves of which a copy may have to follow.
    fn learn(&mut self, seen: &Seen, direction: Direction, to: u32, udp: &Udp) {
        if self.bridged && (self.both || direction == Direction::Down) {
            self.outlet.learn_port(udp.destination, to, seen.header);
        } else if self.both && direction == Direction::Up {
            self.outlet.learn_way(udp.ends(), Way { device: to, mark: seen.mark });
        }
    }

    fn timers(&mut self) -> io::Result<()> {
        let now = self.capture.now();
        if self.engine.next_timeout().is_some_and(|at| at <= now) {
            self.engine.on_timeout(now);
            self.act()?;
        }
        Ok(())
    }

    /// Carries out what the engine has decided, in its order.
    fn act(&mut self) -> io::Result<()> {
        while let Some(action) = self.engine.next_action() {
            if matches!(action, Action::Inject { .. } | Action::Probe { .. }) {
                // The verdicts given so far come first on the wire, and a probe waits on the hop for what
                // they let go.
                self.capture.flush()?;
            }
            match action {
                Action::Release(handle) => self.capture.accept(handle, None)?,
                Action::Inject { direction, packet } => self.outlet.copy(direction, packet),
                Action::Send { ticket, packet, original } => {
                    self.capture.flush_accepted()?;
                    // An original leaves by the interface that the kernel has chosen for it.
                    let device = if original.is_some() { self.leaves_by } else { 0 };
                    let sent = self.outlet.send(ticket, packet, device);
                    match original {
                        Some(original) if sent => self.capture.discard(original)?,
                        Some(original) => self.capture.accept(original, None)?,
                        None => {}
                    }
                    if let (Some(ticket), false) = (ticket, sent) {
                        self.engine.on_unsent(self.capture.now(), ticket);
                    }
                }
                Action::Probe { client } => self.outlet.probe(self.capture.now(), client),
                Action::Watch { client } => {
                    if let Some(teller) = &self.line.teller {
                        teller.watch(client);
                    }
                }
                Action::Event(event) => {
                    if self.line.wanted.wants(&event)
                        && let Err(Refused::Full(_)) = self.line.events.send(Item::Event(event))
                    {
                        logger::count_dropped();
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets everything go.
    fn finish(&mut self) -> io::Result<()> {
        self.engine.release_all(self.capture.now());
        self.act()?;
        self.capture.close()
    }
}

/// The flows with the most downstream bytes. Never more than twice as many are
/// kept at a time: a full table is large beside what is asked for.
fn largest(flows: impl Iterator<Item = FlowInfo>, limit: usize) -> Vec<FlowInfo> {
    let most = |flow: &FlowInfo| std::cmp::Reverse(flow.bytes_down);
    let mut best = Vec::with_capacity(2 * limit);
    for flow in flows {
        if best.len() == 2 * limit {
            // To find those without an order would be 2 KB more of code on MIPS.
            best.sort_unstable_by_key(most);
            best.truncate(limit);
        }
        best.push(flow);
    }
    best.sort_unstable_by_key(most);
    best.truncate(limit);
    best
}

#[cfg(test)]
mod tests;
