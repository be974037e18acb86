// SPDX-License-Identifier: GPL-2.0-or-later
//! A client's loop: one connection until the application has what it wants.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use linkem::sched;
use pemi_apps::{HOST, socket};
use quiche::Config;

use crate::Side;
use crate::link::{self, DATAGRAM_ROOM, Link};

/// How long to wait for the other side to have heard of the end.
const CLOSING: Duration = Duration::from_secs(1);

/// A side that knows when it is done.
pub trait Client: Side {
    /// The handshake is done.
    fn connected(&mut self) {}

    /// It has what it wanted.
    fn done(&self) -> bool;
}

/// How a conversation ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The application is done.
    Done,
    /// The time was over.
    TooLate,
}

/// A client before its first packet.
pub struct Dialogue {
    link: Link,
    socket: UdpSocket,
}

impl Dialogue {
    /// Nothing is sent yet.
    pub fn new(connect: SocketAddr, config: &mut Config) -> Result<Dialogue> {
        sched::set_exact_timers()?;
        let socket = socket::bind(socket::any_port_for(connect))?;
        socket.connect(connect)?;
        let local = socket.local_addr()?;
        socket.set_nonblocking(true)?;
        let connection = quiche::connect(Some(HOST), &link::new_id()?, local, connect, config)?;
        Ok(Dialogue { link: Link::new(connection, local), socket })
    }

    /// Talks until the application is done or `limit` is over.
    pub fn hold(&mut self, client: &mut impl Client, limit: Duration) -> Result<End> {
        let end = Instant::now() + limit;
        let mut connected = false;
        loop {
            self.link.advance(client, &self.socket)?;
            if !connected && self.link.connection.is_established() {
                connected = true;
                client.connected();
                continue;
            }
            if client.done() {
                return Ok(End::Done);
            }
            if self.link.connection.is_draining() || self.link.connection.is_closed() {
                let error = self.link.error();
                return Err(error.unwrap_or_else(|| anyhow!("the connection is closed")));
            }
            if Instant::now() >= end {
                return Ok(End::TooLate);
            }
            self.wait(end.min(client.next().unwrap_or(end)))?;
        }
    }

    /// Tells the other side that this one goes, and sees that it is told.
    pub fn close(mut self) -> Result<()> {
        // Fails if it is closed already, which is as well.
        let _ = self.link.connection.close(true, 0, b"done");
        let end = Instant::now() + CLOSING;
        while !self.link.connection.is_closed() && Instant::now() < end {
            self.link.send(&self.socket)?;
            self.wait(end)?;
            self.link.connection.on_timeout();
        }
        Ok(())
    }

    /// For a datagram, for a timer of the connection, or until this time.
    fn wait(&mut self, until: Instant) -> Result<()> {
        let until = self.link.next().map_or(until, |next| next.min(until));
        let nanos = until.saturating_duration_since(Instant::now()).as_nanos() as u64;
        sched::wait([self.socket.as_fd()], Some(nanos))?;
        let Dialogue { link, socket } = self;
        link::receive_all(socket, &mut [0; DATAGRAM_ROOM], |datagram, from| {
            link.receive(datagram, from);
            Ok(())
        })
    }
}
