// SPDX-License-Identifier: GPL-2.0-or-later
//! A capture and an outlet that are no more than memory: packets come by a script, in
//! virtual time, and what the worker does is written down in the order of the wire.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use pemi_engine::{Direction, Fate, Handle, MS, Nanos, SEC, Ticket, Time};

use crate::config::Config;
use crate::datapath::bridge::Header;
use crate::datapath::capture::{self, Capture, Interests, Seen};
use crate::datapath::outlet::{self, Outlet};
use crate::datapath::probe::Reply;
use crate::datapath::ways::Way;
use crate::sys::poll::{self, Interest, Waker};

/// How long an echo request and its reply take.
const HOP: Nanos = MS;

/// By which packets leave, where that is known.
pub const OUT: u32 = 4;

/// What can be seen on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wire {
    /// A packet went on, with this mark.
    Went(u32, Option<u32>),
    /// A packet was taken out.
    Gone(u32),
    /// A copy was sent.
    Copy(Direction, Vec<u8>),
    /// A packet was sent to a client, and will be reported of under this name.
    Sent(Option<Ticket>, Vec<u8>),
    /// The capture was closed.
    Closed,
}

/// A packet that is to come.
#[derive(Debug)]
pub struct Cue {
    pub seen: Seen,
    pub bytes: Vec<u8>,
}

/// What capture and outlet have in common.
#[derive(Debug)]
pub struct World {
    pub now: Time,
    pub script: VecDeque<Cue>,
    pub wire: Vec<Wire>,
    /// How packets leave, as the outlet was told.
    pub ways: Vec<(SocketAddr, SocketAddr)>,
    pub missed: u64,
    /// Nothing can be sent to clients.
    pub full: bool,
    /// Reports that have come; the outlet's waker tells of them.
    pub reports: Vec<(Ticket, Fate)>,
    /// Verdicts that were not flushed yet.
    pending: Vec<Wire>,
    replies: Vec<IpAddr>,
}

pub type Shared = Rc<RefCell<World>>;

pub fn world() -> Shared {
    Rc::new(RefCell::new(World {
        now: Time::ZERO + SEC,
        script: VecDeque::new(),
        wire: Vec::new(),
        ways: Vec::new(),
        missed: 0,
        full: false,
        reports: Vec::new(),
        pending: Vec::new(),
        replies: Vec::new(),
    }))
}

/// A packet of which nothing is known but its bytes and its handle.
pub fn cue(at: Time, handle: Option<u32>, bytes: Vec<u8>) -> Cue {
    let seen = Seen {
        handle: handle.map(Handle),
        at,
        waited: 0,
        devices: (0, 0),
        ports: (0, 0),
        mark: 0,
        header: None,
        whole: true,
        checksum_missing: false,
        missed: false,
    };
    Cue { seen, bytes }
}

/// Packets by the script.
pub struct Script {
    world: Shared,
    batch: VecDeque<Cue>,
    bytes: Vec<u8>,
}

impl Script {
    pub fn new(world: &Shared) -> Script {
        Script { world: world.clone(), batch: VecDeque::new(), bytes: Vec::new() }
    }
}

impl Capture for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn configure(&mut self, _: &Config) {}

    fn id(&self) -> u16 {
        7
    }

    fn now(&self) -> Time {
        self.world.borrow().now
    }

    /// What happens first: a packet comes, a reply comes, or the time is over.
    fn wait(&mut self, others: &mut Interests, timeout: Option<Nanos>) -> io::Result<()> {
        poll::wait(others, Some(0))?;
        if others.iter().any(Interest::is_ready) {
            return Ok(());
        }
        let mut world = self.world.borrow_mut();
        let idle = world.now + SEC;
        let packet = world.script.front().map(|cue| cue.seen.at);
        let timeout = timeout.map(|timeout| world.now + timeout);
        let next = [packet, timeout].into_iter().flatten().min().unwrap_or(idle);
        world.now = world.now.max(next);
        Ok(())
    }

    fn fill(&mut self) -> io::Result<bool> {
        let mut world = self.world.borrow_mut();
        while world.script.front().is_some_and(|cue| cue.seen.at <= world.now) {
            self.batch.extend(world.script.pop_front());
        }
        Ok(false)
    }

    fn take(&mut self) -> Option<Seen> {
        let cue = self.batch.pop_front()?;
        self.bytes = cue.bytes;
        Some(cue.seen)
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    fn accept(&mut self, handle: Handle, mark: Option<u32>) -> io::Result<()> {
        self.world.borrow_mut().pending.push(Wire::Went(handle.0, mark));
        Ok(())
    }

    fn discard(&mut self, handle: Handle) -> io::Result<()> {
        self.world.borrow_mut().pending.push(Wire::Gone(handle.0));
        Ok(())
    }

    fn flush_accepted(&mut self) -> io::Result<()> {
        let accepted = |wire: &Wire| matches!(wire, Wire::Went(..));
        let waits = self.world.borrow().pending.iter().any(accepted);
        if waits { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let world = &mut *self.world.borrow_mut();
        world.wire.append(&mut world.pending);
        Ok(())
    }

    fn close(&mut self) -> io::Result<()> {
        self.flush()?;
        self.world.borrow_mut().wire.push(Wire::Closed);
        Ok(())
    }

    fn counters(&self) -> capture::Counters {
        capture::Counters { missed: self.world.borrow().missed, ..capture::Counters::default() }
    }

    fn reset(&mut self) {
        self.world.borrow_mut().missed = 0;
    }
}

/// A way out that ends in a list.
pub struct Book {
    world: Shared,
    replied: Waker,
    probes: u32,
}

impl Book {
    pub fn new(world: &Shared) -> Book {
        Book { world: world.clone(), replied: Waker::new().unwrap(), probes: 0 }
    }
}

impl Outlet for Book {
    fn learn_port(&mut self, _: IpAddr, _: u32, _: Option<Header>) {}

    fn learn_way(&mut self, ends: (SocketAddr, SocketAddr), _: Way) {
        self.world.borrow_mut().ways.push(ends);
    }

    fn copy(&mut self, direction: Direction, packet: &[u8]) {
        self.world.borrow_mut().wire.push(Wire::Copy(direction, packet.to_vec()));
    }

    fn send(&mut self, ticket: Option<Ticket>, packet: &[u8], device: u32) -> bool {
        let world = &mut *self.world.borrow_mut();
        assert!(device == 0 || device == OUT, "by another interface");
        if !world.full {
            world.wire.push(Wire::Sent(ticket, packet.to_vec()));
        }
        !world.full
    }

    fn reports(&mut self, mut on_report: impl FnMut(Ticket, Fate)) {
        let reports = std::mem::take(&mut self.world.borrow_mut().reports);
        reports.into_iter().for_each(|(ticket, fate)| on_report(ticket, fate));
    }

    fn probe(&mut self, _: Time, client: IpAddr) {
        self.probes += 1;
        let world = &mut *self.world.borrow_mut();
        assert!(world.pending.is_empty(), "it overtakes what was let go before it");
        world.replies.push(client);
        self.replied.wake();
    }

    fn interests(&self, into: &mut Interests) {
        into.push(Interest::read(&self.replied));
    }

    fn replies(&mut self, _: Time, _: &[Interest], mut on_reply: impl FnMut(Reply)) {
        self.replied.clear();
        for client in self.world.borrow_mut().replies.drain(..) {
            on_reply(Reply { client, rtt: HOP });
        }
    }

    fn counters(&self) -> outlet::Counters {
        let mut counters = outlet::Counters::default();
        counters.probes.sent = self.probes;
        counters
    }
}
