// SPDX-License-Identifier: GPL-2.0-or-later
//! All the sessions: who may have one, whose a packet is, when one ends.

use core::net::SocketAddr;

use pemi_quack::{Hello, Message, Reason, Token};

use super::cookie::Cookies;
use super::outbox::{Outbox, Sending, Via};
use super::session::{Asked, Flow, Session};
use super::shares::Shares;
use super::{Config, Micros, SEC, Stats};

/// Identifiers beyond so many bytes of a payload are not looked for.
const REACH: usize = 64;
/// A session that counted nothing for so long makes room for another one.
const IDLE: Micros = 5 * SEC;

/// The sessions of a router.
#[derive(Debug)]
pub struct Sessions {
    config: Config,
    cookies: Cookies,
    shares: Shares,
    sessions: Vec<Session>,
    epoch: u32,
    generation: u32,
    outbox: Outbox,
    stats: Stats,
}

impl Sessions {
    /// None yet. `key` and `epoch` are random numbers.
    pub fn new(config: Config, key: [u8; 16], epoch: u32) -> Sessions {
        Sessions {
            config,
            cookies: Cookies::new(key, config.cookies_per_s),
            shares: Shares::new(key),
            sessions: Vec::new(),
            epoch,
            generation: 0,
            outbox: Outbox::default(),
            stats: Stats::default(),
        }
    }

    /// A datagram has come to the router's port.
    pub fn on_message(&mut self, now: Micros, from: SocketAddr, via: Via, bytes: &[u8]) {
        let asked = Asked { now, peer: from, via };
        let done = match Message::parse(bytes) {
            Ok(Message::Hello(hello)) => self.on_hello(asked, &hello),
            Ok(Message::Reset { token, epoch }) => self.on_reset(asked, token, epoch),
            Ok(Message::Bye { token }) => match self.find(token, from) {
                Some(at) => {
                    self.remove(at);
                    true
                }
                None => false,
            },
            // What routers say, or nobody.
            Ok(_) | Err(_) => false,
        };
        self.stats.ignored += u64::from(!done);
    }

    /// A UDP datagram has come by `device` to be forwarded. If several were merged,
    /// all but the last have a payload of `segment` bytes; 0: it is one.
    pub fn on_packet(
        &mut self,
        now: Micros,
        device: u32,
        from: SocketAddr,
        to: SocketAddr,
        payload: &[u8],
        segment: usize,
    ) {
        let flow = Flow::between(from, to);
        let session = self
            .sessions
            .iter_mut()
            .find(|session| session.flow == flow && session.via.device == device);
        let Some(session) = session else { return };
        let segment = if segment == 0 { payload.len() } else { segment };
        for payload in payload.chunks(segment.max(1)) {
            if let Some(due) = session.count(now, payload) {
                self.stats.packets += 1;
                session.serve(now, due, &mut self.outbox, &mut self.stats);
            }
        }
    }

    /// When to call [`Sessions::on_timeout`].
    pub fn next_timeout(&self) -> Option<Micros> {
        let lifetime = self.lifetime();
        let ends = self.sessions.iter().map(|session| session.heard.saturating_add(lifetime));
        let quacks = self.sessions.iter().filter_map(Session::deadline);
        ends.chain(quacks).min()
    }

    /// Does what is due by now.
    pub fn on_timeout(&mut self, now: Micros) {
        let lifetime = self.lifetime();
        while let Some(at) =
            self.sessions.iter().position(|session| session.heard.saturating_add(lifetime) <= now)
        {
            self.end(at);
        }
        for session in &mut self.sessions {
            if session.deadline().is_some_and(|at| at <= now) {
                let due = session.on_timeout(now);
                session.serve(now, due, &mut self.outbox, &mut self.stats);
            }
        }
    }

    /// The next message to send. To be called until there is none, after anything else.
    pub fn next_action(&mut self) -> Option<Sending<'_>> {
        self.outbox.take()
    }

    /// Ends all sessions and tells their senders.
    pub fn stop(&mut self) {
        while !self.sessions.is_empty() {
            self.end(0);
        }
    }

    /// Changes whenever [`Sessions::flows`] does.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The device and the client's port of every session.
    pub fn flows(&self) -> impl Iterator<Item = (u32, u16)> {
        self.sessions.iter().map(|session| (session.via.device, session.flow.client_port))
    }

    /// What has happened.
    pub fn stats(&self) -> Stats {
        Stats { sessions: self.sessions.len() as u32, ..self.stats }
    }

    /// As if nothing had.
    pub fn reset_stats(&mut self) {
        self.stats = Stats::default();
    }

    fn lifetime(&self) -> Micros {
        Micros::from(self.config.lifetime_s) * SEC
    }

    /// The session of a token, for who it belongs to.
    fn find(&self, token: Token, peer: SocketAddr) -> Option<usize> {
        self.sessions.iter().position(|session| session.token() == token && session.peer == peer)
    }

    fn on_hello(&mut self, asked: Asked, hello: &Hello) -> bool {
        let Asked { now, peer, via } = asked;
        let token = hello.token;
        if !self.cookies.is_good(now, peer, hello.cookie) {
            let Some(cookie) = self.cookies.hand_out(now, peer) else { return false };
            self.outbox.put(peer, via, &Message::Cookie { token, cookie });
            return true;
        }
        // Nobody else can ask in the place of who has a cookie.
        if !self.shares.take(now, peer.ip()) {
            return false;
        }
        let flow = Flow::of(hello, peer.ip());
        let known = self.sessions.iter().position(|session| session.flow == flow);
        if let Some(session) = known.and_then(|at| self.sessions.get_mut(at))
            && session.is_on_terms_of(hello)
        {
            if session.via.device != via.device {
                self.generation = self.generation.wrapping_add(1);
            }
            self.stats.losses += u64::from(session.refresh(asked, hello.losses));
            self.outbox.put(peer, via, &session.accept(self.config.lifetime_s));
            return true;
        }
        if usize::from(hello.offset) + hello.width.bytes() > REACH || !flow.is_possible() {
            return self.refuse(asked, token, Reason::Unsupported);
        }
        if let Some(at) = known {
            self.remove(at);
        } else if !self.make_room(now, flow.client) {
            return self.refuse(asked, token, Reason::Full);
        }
        self.epoch = self.epoch.wrapping_add(1);
        let (most, usual) = (self.config.threshold, self.config.interval);
        let session = Session::new(asked, hello, most, usual, self.epoch);
        self.outbox.put(peer, via, &session.accept(self.config.lifetime_s));
        self.sessions.push(session);
        self.generation = self.generation.wrapping_add(1);
        true
    }

    fn refuse(&mut self, asked: Asked, token: Token, reason: Reason) -> bool {
        self.stats.refused += 1;
        self.outbox.put(asked.peer, asked.via, &Message::Refuse { token, reason });
        true
    }

    fn on_reset(&mut self, asked: Asked, token: Token, epoch: u32) -> bool {
        let Some(at) = self.find(token, asked.peer) else { return false };
        let Some(session) = self.sessions.get_mut(at).filter(|session| session.epoch == epoch)
        else {
            return false;
        };
        self.epoch = self.epoch.wrapping_add(1);
        session.reset(self.epoch);
        self.outbox.put(session.peer, session.via, &session.accept(self.config.lifetime_s));
        true
    }

    /// Whether there is room for one more session of `client`, if need be that of an
    /// idle one.
    fn make_room(&mut self, now: Micros, client: [u8; 16]) -> bool {
        let (mut own, mut idlest, mut own_idlest) = (0, None, None);
        let mut since = [now.saturating_sub(IDLE); 2];
        for (at, session) in self.sessions.iter().enumerate() {
            if session.active <= since[0] {
                (since[0], idlest) = (session.active, Some(at));
            }
            if session.flow.client == client {
                own += 1;
                if session.active <= since[1] {
                    (since[1], own_idlest) = (session.active, Some(at));
                }
            }
        }
        let crowded = own >= self.config.max_per_client;
        if !crowded && self.sessions.len() < self.config.max_sessions {
            return true;
        }
        let Some(at) = (if crowded { own_idlest } else { idlest }) else { return false };
        self.end(at);
        self.stats.evicted += 1;
        true
    }

    /// Ends one and tells its sender.
    fn end(&mut self, at: usize) {
        if let Some(session) = self.sessions.get(at) {
            let bye = Message::Bye { token: session.token() };
            self.outbox.put(session.peer, session.via, &bye);
        }
        self.remove(at);
    }

    fn remove(&mut self, at: usize) {
        if at < self.sessions.len() {
            self.sessions.swap_remove(at);
            self.generation = self.generation.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests;
