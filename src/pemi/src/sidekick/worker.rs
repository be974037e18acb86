// SPDX-License-Identifier: GPL-2.0-or-later
//! The thread: messages and packets in, quACKs out.

use std::ffi::CString;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use arrayvec::ArrayVec;
use pemi_engine::Nanos;
use pemi_sidekick::router::{Config, Micros, Sessions};

use super::error::Error;
use super::port::Port;
use super::tap::Tap;
use super::{Settings, Shared, Snapshot};
use crate::sys::poll::{self, Interest};
use crate::sys::{clock, entropy, sched, socket};

/// Messages taken before packets have their turn again, and if there were as many, before
/// [`REST`] is over. A flood of 20,000 HELLOs in a second is taken whole, as who asks again
/// amid it is answered; what comes beyond 25,000 the kernel drops, so that the router is
/// not kept busy.
const MESSAGES: usize = 128;
const REST: Micros = 5_000;
/// Packets taken before timers have their turn. More than the tap has room for.
const PACKETS: usize = 1024;
/// Longer than any message from a sender.
const LONGEST: usize = 64;
/// Between two looks at which devices there are, and two at what had no room.
const SECOND: Micros = 1_000_000;

/// Everything that the thread has.
pub struct Worker {
    sessions: Sessions,
    port: Port,
    /// Only while there are sessions.
    tap: Option<Tap>,
    /// Of the sessions that the tap is set for.
    generation: u32,
    /// Those whose clients are answered; none: all.
    devices: Option<Devices>,
    shared: Arc<Shared>,
    /// When it was asked last how many packets there was no room for.
    asked: Micros,
    /// Until then no messages are taken.
    rests_until: Micros,
    errors: u64,
    told: bool,
}

/// Devices that may go and come back under other indexes.
struct Devices {
    names: Vec<CString>,
    indexes: Vec<u32>,
    resolved: Option<Micros>,
}

impl Devices {
    fn contain(&mut self, device: u32, now: Micros) -> bool {
        if self.resolved.is_none_or(|at| now.saturating_sub(at) >= SECOND) {
            self.resolved = Some(now);
            self.indexes.clear();
            self.indexes.extend(self.names.iter().filter_map(|name| socket::interface_index(name)));
        }
        self.indexes.contains(&device)
    }
}

fn now() -> Micros {
    clock::now().as_nanos() / 1_000
}

impl Worker {
    /// Opens what it needs.
    pub fn open(settings: &Settings, shared: Arc<Shared>) -> Result<Worker, Error> {
        let Settings { port: number, interval, threshold, devices } = settings;
        let port = Port::open(*number).map_err(|error| Error::Port(*number, error))?;
        // To know now, and not at the first session, that it can be had.
        Tap::open(&[]).map_err(Error::Tap)?;
        let (mut key, mut epoch) = ([0; 16], [0; 4]);
        entropy::fill(&mut key).and_then(|()| entropy::fill(&mut epoch)).map_err(Error::Random)?;
        let config = Config { interval: *interval, threshold: *threshold, ..Config::default() };
        let names = |names: &Vec<String>| {
            names.iter().filter_map(|name| CString::new(name.as_str()).ok()).collect()
        };
        Ok(Worker {
            sessions: Sessions::new(config, key, u32::from_ne_bytes(epoch)),
            port,
            tap: None,
            generation: 0,
            devices: devices.as_ref().map(|found| Devices {
                names: names(found),
                indexes: vec![],
                resolved: None,
            }),
            shared,
            asked: 0,
            rests_until: 0,
            errors: 0,
            told: false,
        })
    }

    /// Works until it is told to stop.
    pub fn run(mut self) -> io::Result<()> {
        sched::exact_timers();
        loop {
            self.wait()?;
            if self.shared.stop.load(Ordering::Relaxed) {
                self.sessions.stop();
                self.send();
                return Ok(());
            }
            if self.shared.reset.swap(false, Ordering::Relaxed) {
                self.sessions.reset_stats();
                self.errors = 0;
            }
            self.messages();
            // What has come by now is no longer late.
            let now = now();
            self.packets();
            self.sessions.on_timeout(now);
            self.send();
            self.publish(now);
        }
    }

    fn publish(&mut self, now: Micros) {
        if now.saturating_sub(self.asked) >= SECOND {
            self.asked = now;
            self.count_dropped();
        }
        let snapshot = Snapshot { stats: self.sessions.stats(), errors: self.errors };
        *self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    fn wait(&mut self) -> io::Result<()> {
        let now = now();
        let resting = (self.rests_until > now).then_some(self.rests_until);
        let due = self.sessions.next_timeout();
        let next = resting.map_or(due, |rest| Some(due.map_or(rest, |due| due.min(rest))));
        let timeout = next.map(|at| {
            Nanos::try_from(at.saturating_sub(now).saturating_mul(1_000)).unwrap_or(Nanos::MAX)
        });
        let mut interests = ArrayVec::<Interest, 3>::new();
        interests.push(Interest::read(&self.shared.waker));
        if resting.is_none() {
            interests.push(Interest::read(&self.port));
        }
        interests.extend(self.tap.as_ref().map(Interest::read));
        poll::wait(&mut interests, timeout)?;
        self.shared.waker.clear();
        Ok(())
    }

    fn messages(&mut self) {
        if self.rests_until > now() {
            return;
        }
        let mut buffer = [0; LONGEST];
        for taken in 1..=MESSAGES {
            match self.port.receive(&mut buffer) {
                Ok(Some((from, via, len))) => {
                    let now = now();
                    let known =
                        self.devices.as_mut().is_none_or(|known| known.contain(via.device, now));
                    if let Some(message) = buffer.get(..len).filter(|_| known) {
                        self.sessions.on_message(now, from, via, message);
                    }
                }
                Ok(None) => {}
                // There is no more; or an error of an answer before, which is its end.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {}
            }
            if taken == MESSAGES {
                self.rests_until = now() + REST;
            }
        }
        self.send();
    }

    fn packets(&mut self) {
        for _ in 0..PACKETS {
            let Some(tap) = &mut self.tap else { return };
            match tap.receive() {
                Ok(Some(seen)) => {
                    self.sessions.on_packet(
                        now(),
                        seen.device,
                        seen.from,
                        seen.to,
                        seen.payload,
                        seen.segment,
                    );
                }
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.complain(format!(
                        "sidekick: the kernel has merged packets and cannot say how: {error}; \
                         they are missing in what is told (ethtool -K DEVICE rx-gro-list off)"
                    ));
                }
                Err(_) => self.errors += 1,
            }
            self.send();
        }
    }

    /// Sets the tap for the sessions there are now.
    fn tune(&mut self) {
        if self.generation == self.sessions.generation() {
            return;
        }
        let flows: Vec<(u32, u16)> = self.sessions.flows().collect();
        let result = match &self.tap {
            _ if flows.is_empty() => {
                self.count_dropped();
                self.tap = None;
                Ok(())
            }
            Some(tap) => tap.watch(&flows),
            None => Tap::open(&flows).map(|tap| self.tap = Some(tap)),
        };
        if let Err(error) = result {
            self.complain(format!("sidekick: packets cannot be looked at: {error}"));
            self.sessions.stop();
            self.tap = None;
        }
        self.generation = self.sessions.generation();
    }

    fn send(&mut self) {
        // This comes first: packets of a sender are counted from the message on that
        // accepts it.
        self.tune();
        while let Some(sending) = self.sessions.next_action() {
            if self.port.send(sending.to, sending.via, sending.bytes).is_err() {
                self.errors += 1;
            }
        }
    }

    fn count_dropped(&mut self) {
        self.errors += self.tap.as_ref().map_or(0, |tap| u64::from(tap.dropped()));
    }

    /// Counts an error, and logs the first one.
    fn complain(&mut self, what: String) {
        self.errors += 1;
        if !self.told {
            self.told = true;
            log::warn!("{what}");
        }
    }
}
