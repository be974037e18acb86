// SPDX-License-Identifier: GPL-2.0-or-later
//! One session: what it counts, and when its quACKs leave.

use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU8;

use pemi_quack::{AnyQuack, Hello, Interval, Message, Token};

use super::due::Due;
use super::outbox::{Outbox, Via};
use super::schedule::Schedule;
use super::{Micros, Stats};

/// Whose packets are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flow {
    pub client_port: u16,
    pub server_port: u16,
    pub client: [u8; 16],
    pub server: [u8; 16],
}

/// An address as IPv6 has it: quicker to compare.
pub(super) fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// What a sender asked for, with which it is another session if it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Terms {
    token: Token,
    width: usize,
    threshold: NonZeroU8,
    interval: Interval,
    offset: u16,
}

#[derive(Debug)]
pub(super) struct Session {
    pub flow: Flow,
    /// Where the last HELLO came from.
    pub peer: SocketAddr,
    pub via: Via,
    pub heard: Micros,
    /// When the last packet was counted, or it began.
    pub active: Micros,
    pub epoch: u32,
    terms: Terms,
    /// What is done.
    threshold: NonZeroU8,
    interval: Interval,
    quack: AnyQuack,
    schedule: Schedule,
    sequence: u16,
    losses: u16,
}

impl Flow {
    /// The one that a HELLO from `client` is about.
    pub fn of(hello: &Hello, client: IpAddr) -> Flow {
        Flow {
            client: octets(client),
            client_port: hello.client_port,
            server: octets(hello.server),
            server_port: hello.server_port,
        }
    }

    pub fn between(from: SocketAddr, to: SocketAddr) -> Flow {
        Flow {
            client: octets(from.ip()),
            client_port: from.port(),
            server: octets(to.ip()),
            server_port: to.port(),
        }
    }

    pub fn is_possible(&self) -> bool {
        let ip = |octets: [u8; 16]| IpAddr::from(octets).to_canonical();
        let server = ip(self.server);
        self.client_port > 0
            && self.server_port > 0
            && ip(self.client).is_ipv4() == server.is_ipv4()
            && !(server.is_unspecified() || server.is_multicast() || server.is_loopback())
    }
}

impl Terms {
    fn of(hello: &Hello) -> Terms {
        Terms {
            token: hello.token,
            width: hello.width.bytes(),
            threshold: hello.threshold,
            interval: hello.interval,
            offset: hello.offset,
        }
    }
}

/// Who says a HELLO, when and how it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub now: Micros,
    pub peer: SocketAddr,
    pub via: Via,
}

impl Session {
    pub fn new(
        asked: Asked,
        hello: &Hello,
        most: NonZeroU8,
        usual: Interval,
        epoch: u32,
    ) -> Session {
        let threshold = hello.threshold.min(most);
        let interval = match hello.interval {
            Interval::Router => usual,
            interval => interval,
        };
        Session {
            flow: Flow::of(hello, asked.peer.ip()),
            peer: asked.peer,
            via: asked.via,
            heard: asked.now,
            active: asked.now,
            epoch,
            terms: Terms::of(hello),
            threshold,
            interval,
            quack: AnyQuack::new(hello.width, threshold),
            schedule: Schedule::new(interval),
            sequence: 0,
            losses: hello.losses,
        }
    }

    pub fn token(&self) -> Token {
        self.terms.token
    }

    pub fn is_on_terms_of(&self, hello: &Hello) -> bool {
        self.terms == Terms::of(hello)
    }

    /// A HELLO that it goes on. How many losses are new.
    pub fn refresh(&mut self, asked: Asked, losses: u16) -> u16 {
        (self.heard, self.peer, self.via) = (asked.now, asked.peer, asked.via);
        let more = losses.wrapping_sub(self.losses);
        if more > u16::MAX / 2 {
            // One that was overtaken.
            return 0;
        }
        self.losses = losses;
        more
    }

    /// From nothing again. When packets are due is not forgotten.
    pub fn reset(&mut self, epoch: u32) {
        self.epoch = epoch;
        self.quack.clear();
    }

    pub fn accept(&self, lifetime_s: u16) -> Message<'static> {
        Message::Accept {
            token: self.token(),
            interval: self.interval,
            threshold: self.threshold,
            lifetime_s,
            epoch: self.epoch,
        }
    }

    /// Counts a packet of its flow, if there is an identifier in it.
    pub fn count(&mut self, now: Micros, payload: &[u8]) -> Option<Due> {
        let identifier = payload.get(usize::from(self.terms.offset)..)?;
        if !self.quack.insert(identifier) {
            return None;
        }
        self.active = now;
        Some(self.schedule.on_packet(now))
    }

    pub fn deadline(&self) -> Option<Micros> {
        self.schedule.deadline()
    }

    pub fn on_timeout(&mut self, now: Micros) -> Due {
        self.schedule.on_timeout(now)
    }

    /// Does what is due.
    pub fn serve(&mut self, now: Micros, due: Due, outbox: &mut Outbox, stats: &mut Stats) {
        stats.late += u64::from(due.late);
        if !due.quack {
            return;
        }
        self.sequence = self.sequence.wrapping_add(1);
        let age = now.saturating_sub(self.active);
        let message = Message::Quack {
            token: self.token(),
            sequence: self.sequence,
            epoch: self.epoch,
            age_us: u32::try_from(age).unwrap_or(u32::MAX),
            quack: &[],
        };
        let write = |out: &mut Vec<u8>| self.quack.write(self.threshold, out);
        let bytes = outbox.put_with(self.peer, self.via, &message, write);
        // None if too many wait to be sent already.
        stats.quacks += u64::from(bytes > 0);
        stats.quack_bytes += bytes as u64;
    }
}
