// SPDX-License-Identifier: GPL-2.0-or-later
//! Rings for what goes down to the clients, and the queue for what they send.
//!
//! A packet that a client gets does not wait for the daemon: the kernel puts a copy of it, with
//! the time at which it leaves, into a ring of memory, and the daemon reads that when it is awake
//! anyway. What a client sends comes by the [queue](super::queue) as ever. Without rings all of it
//! does, so this is the capture of every worker.
//!
//! A ring is open from the start, but it sees packets only while clients behind its device send
//! something that comes by the queue: each packet of a device that is watched costs something,
//! those of other programs, too.

use std::ffi::CString;
use std::io;

use pemi_engine::packet::{Parsed, parse};
use pemi_engine::{Handle, MS, Nanos, SEC, Time};

use super::gathering;
use super::queue::Nfqueue;
use super::{Capture, Counters, Interests, MOST_WAYS, Seen, Trouble};
use crate::config::Config;
use crate::sys::packet_ring::PacketRing;
use crate::sys::poll::Interest;
use crate::sys::{clock, socket};

mod drain;
mod filter;
mod silence;
mod trial;

use drain::Drain;
use filter::{Clients, Ours};
use silence::Silence;

/// While packets come they are looked at this often at least, if nothing else wakes the thread
/// (chosen: a copy in a connection's first flight that comes later than that is worth little).
const LOOK: Nanos = 2 * MS;
/// After so long without a packet of a client a device is not watched any more (chosen: a client
/// that does not reply gives nothing away).
const REST: Nanos = 10 * SEC;
/// So many packets of no use, merged or cut, and the queue has to do (chosen: other programs on the
/// router may send some that nobody misses).
const ODD: u32 = 16;

/// The capture of a worker.
#[derive(Debug)]
pub(crate) struct Rings {
    queue: Nfqueue,
    taps: Vec<Tap>,
    ours: Ours,
    drain: Drain,
    /// The tap whose frame is in hand.
    hand: Option<usize>,
    /// The packet of a client that was taken last: its tap and its port.
    client: Option<(usize, u16)>,
    /// When devices were looked up last.
    resolved: Time,
    missed: u64,
    trouble: Option<Trouble>,
    /// See [`Counters`].
    ways: [u32; MOST_WAYS],
    let_go: u32,
}

/// One device's ring.
#[derive(Debug)]
struct Tap {
    name: CString,
    /// The index of the device; 0: there is none now.
    device: u32,
    ring: PacketRing,
    /// Packets of the device are seen.
    watches: bool,
    /// A packet was sent to see whether the ring shows it.
    tried: bool,
    clients: Clients,
    /// When a client sent something last.
    heard: Time,
    silence: Silence,
    /// Packets that were of no use.
    odd: u32,
}

impl Tap {
    fn open(name: &str) -> io::Result<Tap> {
        let name = CString::new(name)?;
        Ok(Tap {
            device: socket::interface_index(&name).unwrap_or(0),
            name,
            ring: PacketRing::open()?,
            watches: false,
            tried: false,
            clients: Clients::default(),
            heard: Time::ZERO,
            silence: Silence::default(),
            odd: 0,
        })
    }

    /// Sees what goes to this port of a client, and whatever else it saw.
    fn watch(&mut self, port: u16, now: Time, ours: &Ours) -> Result<(), Trouble> {
        self.heard = now;
        let new = self.clients.heard(port, now);
        if !self.watches {
            match self.ring.watch(self.device) {
                Ok(()) => self.watches = true,
                // It is gone, and may come back as another one.
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => self.device = 0,
                Err(error) => return Err(Trouble::refused(&error)),
            }
        }
        let tries = self.watches && !self.tried;
        if tries {
            self.tried = true;
            self.ring
                .filter(&trial::program(ours.mark))
                .map_err(|error| Trouble::refused(&error))?;
            if !trial::shows(&mut self.ring, ours.mark).map_err(|error| Trouble::refused(&error))? {
                return Err(Trouble::Untrue);
            }
        }
        if new || tries {
            let program = self.clients.program(ours);
            self.ring.filter(&program).map_err(|error| Trouble::refused(&error))?;
        }
        Ok(())
    }

    /// Sees nothing until a client sends something. A new ring, since the kernel would wait for all
    /// processors when the old one is to see something again, and now nobody waits for us.
    fn rest(&mut self) -> io::Result<()> {
        self.ring = PacketRing::open()?;
        self.watches = false;
        self.clients = Clients::default();
        self.silence = Silence::default();
        self.odd = 0;
        Ok(())
    }
}

impl Rings {
    /// For a queue, with the rings that `config` asks for. That they cannot be had is no error: see
    /// [`Counters::trouble`].
    pub fn new(queue: Nfqueue, config: &Config) -> Rings {
        let mut rings = Rings {
            taps: Vec::new(),
            ours: Ours::of(config, queue.id()),
            queue,
            drain: Drain::default(),
            hand: None,
            client: None,
            resolved: Time::ZERO,
            missed: 0,
            trouble: None,
            ways: [0; MOST_WAYS],
            let_go: 0,
        };
        rings.configure(config);
        rings
    }

    /// Opens and closes rings, so that there is one for each of these devices.
    fn open(&mut self, devices: &[String]) -> io::Result<()> {
        let of = |tap: &Tap, name: &String| tap.name.as_bytes() == name.as_bytes();
        self.taps.retain(|tap| devices.iter().any(|name| of(tap, name)));
        for name in devices {
            if !self.taps.iter().any(|tap| of(tap, name)) {
                self.taps.push(Tap::open(name)?);
            }
        }
        Ok(())
    }

    /// From now on the queue has to do.
    fn give_up(&mut self, trouble: Trouble) {
        self.trouble.get_or_insert(trouble);
        (self.hand, self.client) = (None, None);
        self.taps.clear();
        self.queue.gather(gathering::BOTH);
    }

    /// The oldest packet in the rings.
    fn frame(&mut self) -> Option<Seen> {
        if self.drain.left == 0 {
            return None;
        }
        let oldest = |(at, tap): (usize, &mut Tap)| tap.ring.peek().map(|frame| (at, frame));
        let frames = self.taps.iter_mut().enumerate().filter_map(oldest);
        let (at, frame) = frames.min_by_key(|(_, frame)| frame.stamp)?;
        let time = self.drain.show(frame.stamp, clock::wall);
        let tap = &mut self.taps[at];
        tap.silence.broken();
        tap.odd += u32::from(!frame.whole);
        let mut missed = !frame.whole;
        if frame.losing {
            let count = tap.ring.missed();
            self.missed += u64::from(count);
            missed |= count > 0;
            if !self.drain.was_full() {
                // There was room, but before Linux 6.2 none for packets that are merged.
                tap.odd = tap.odd.saturating_add(count);
            }
        }
        if tap.odd >= ODD {
            self.give_up(Trouble::Merged);
            return None;
        }
        self.hand = Some(at);
        Some(Seen {
            handle: None,
            at: time,
            waited: 0,
            devices: (0, tap.device),
            ports: (0, 0),
            mark: 0,
            header: None,
            whole: frame.whole,
            checksum_missing: frame.checksum_missing,
            missed,
        })
    }

    /// Looks at a packet of the queue: whether a client has sent it, and what goes to that client
    /// is to be seen.
    fn look(&mut self, seen: &mut Seen) {
        let (from, to) = seen.devices;
        self.client = None;
        seen.at = self.drain.until;
        self.drain.last = seen.at;
        if self.taps.iter().any(|tap| tap.watches && tap.device == to) {
            // The ring shows it as well; the rules that bring it here go soon.
            seen.whole = false;
            return;
        }
        let Some(at) = self.tap_of(from) else { return };
        let parsed = parse(self.queue.bytes());
        let (Parsed::Udp(udp), Some((port, _))) = (&parsed, parsed.ports()) else { return };
        // A client has heard of its server when it uses the short header (RFC 9000, section 17.3).
        let answered = udp.payload(self.queue.bytes()).first().is_some_and(|first| first >> 7 == 0);
        self.client = Some((at, port));
        if !self.ways.contains(&to) {
            // In the place of the one that was new the longest time ago.
            self.ways.rotate_right(1);
            self.ways[0] = to;
        }
        let (now, tap) = (self.drain.until, &mut self.taps[at]);
        if let Err(trouble) = tap.watch(port, now, &self.ours) {
            self.give_up(trouble);
        } else if answered && tap.silence.heard(now) {
            self.give_up(Trouble::Silent);
        }
    }

    /// The tap of the device by which a packet came.
    fn tap_of(&mut self, device: u32) -> Option<usize> {
        let of = |tap: &Tap| tap.device == device && device != 0;
        if let Some(at) = self.taps.iter().position(of) {
            return Some(at);
        }
        if self.drain.until.since(self.resolved) < SEC {
            return None;
        }
        self.resolved = self.drain.until;
        for tap in self.taps.iter_mut() {
            let device = socket::interface_index(&tap.name).unwrap_or(0);
            let same = device == tap.device;
            (tap.watches, tap.tried) = (tap.watches && same, tap.tried && same);
            tap.device = device;
        }
        self.taps.iter().position(of)
    }

    /// Devices whose clients are silent are not watched any more.
    fn rest(&mut self, now: Time) {
        for tap in self.taps.iter_mut().filter(|tap| tap.watches) {
            if now.since(tap.heard) >= REST
                && let Err(error) = tap.rest()
            {
                return self.give_up(Trouble::refused(&error));
            }
        }
    }
}

impl Capture for Rings {
    fn name(&self) -> &'static str {
        if self.taps.is_empty() { self.queue.name() } else { "ring" }
    }

    fn id(&self) -> u16 {
        self.queue.id()
    }

    fn now(&self) -> Time {
        self.queue.now()
    }

    fn configure(&mut self, config: &Config) {
        (self.hand, self.client, self.trouble) = (None, None, None);
        self.ours = Ours::of(config, self.queue.id());
        let devices = if config.rings() { &config.device[..] } else { &[] };
        if let Err(error) = self.open(devices) {
            return self.give_up(Trouble::refused(&error));
        }
        let alone = !self.taps.is_empty();
        self.queue.gather(if alone { gathering::REPLIES } else { gathering::BOTH });
        let program = |tap: &Tap| tap.clients.program(&self.ours);
        let done = self.taps.iter().try_for_each(|tap| tap.ring.filter(&program(tap)));
        if let Err(error) = done {
            self.give_up(Trouble::refused(&error));
        }
    }

    fn wait(&mut self, others: &mut Interests, mut timeout: Option<Nanos>) -> io::Result<()> {
        let now = self.now();
        self.rest(now);
        let first = others.len();
        if self.taps.iter().any(|tap| tap.watches) {
            let longest = if self.drain.is_busy(now) { LOOK } else { REST };
            timeout = Some(timeout.map_or(longest, |timeout| timeout.min(longest)));
            if longest == REST {
                let watching = self.taps.iter().filter(|tap| tap.watches);
                others.extend(watching.map(|tap| Interest::read(&tap.ring)));
            }
        }
        self.queue.wait(others, timeout)?;
        let watching = self.taps.iter_mut().filter(|tap| tap.watches);
        for (tap, interest) in watching.zip(&others[first..]) {
            // A device that was switched off shows its packets when it is on again.
            if interest.is_ready() && tap.ring.error().is_some() {
                tap.watches = false;
            }
        }
        Ok(())
    }

    /// The queue first: what a client replies to is in a ring before its reply is in the queue.
    fn fill(&mut self) -> io::Result<bool> {
        let more = self.queue.fill()?;
        if !self.taps.is_empty() {
            self.drain.begin(self.queue.now(), self.taps.len());
        }
        Ok(more)
    }

    fn take(&mut self) -> Option<Seen> {
        if let Some(tap) = self.hand.take().and_then(|at| self.taps.get_mut(at)) {
            tap.ring.release();
        }
        if let Some(seen) = self.frame() {
            return Some(seen);
        }
        // What has come to the rings since is for the next time.
        self.drain.left = 0;
        let mut seen = self.queue.take()?;
        if !self.taps.is_empty() {
            self.look(&mut seen);
        }
        Some(seen)
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self.hand.and_then(|at| self.taps.get_mut(at)) {
            Some(tap) => tap.ring.bytes(),
            None => self.queue.bytes(),
        }
    }

    fn accept(&mut self, handle: Handle, mark: Option<u32>) -> io::Result<()> {
        self.let_go = self.let_go.wrapping_add(u32::from(mark.is_some()));
        // Only the packet in hand gets a mark: its flow is let go, and needs no copies any more.
        if let (Some(_), Some((at, port))) = (mark, self.client)
            && let Some(tap) = self.taps.get_mut(at)
            && tap.clients.let_go(port)
            && let Err(error) = tap.ring.filter(&tap.clients.program(&self.ours))
        {
            self.give_up(Trouble::refused(&error));
        }
        self.queue.accept(handle, mark)
    }

    fn discard(&mut self, handle: Handle) -> io::Result<()> {
        self.queue.discard(handle)
    }

    fn flush_accepted(&mut self) -> io::Result<()> {
        self.queue.flush_accepted()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.queue.flush()
    }

    fn close(&mut self) -> io::Result<()> {
        (self.hand, self.client) = (None, None);
        self.taps.clear();
        self.queue.close()
    }

    fn counters(&self) -> Counters {
        let mut counters = self.queue.counters();
        counters.missed += self.missed;
        (counters.trouble, counters.ways, counters.let_go) = (self.trouble, self.ways, self.let_go);
        counters
    }

    fn reset(&mut self) {
        self.missed = 0;
        self.queue.reset();
    }
}
