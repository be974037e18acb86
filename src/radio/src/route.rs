// SPDX-License-Identifier: GPL-2.0-or-later
//! Asks the kernel of devices and neighbours, and hears when they change. No right is needed
//! for any of it but to have a neighbour asked.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::kernel::{Socket, Whom};
use crate::link::Link;
use crate::neighbour::Neighbour;
use crate::netlink::Messages;
use crate::radio::answer;

/// The kernel makes the parts of an answer as large as the room of its reader, up to 32 KiB; one
/// device takes up to 2.
const ROOM: usize = 16 * 1024;
/// Groups: of devices, of neighbours (RTNLGRP_LINK, RTNLGRP_NEIGH).
const LINKS: u32 = 1;
const NEIGHBOURS: u32 = 3;

/// For questions.
#[derive(Debug)]
pub struct Route {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Route {
    /// Fails where nobody may have sockets.
    pub fn open() -> io::Result<Route> {
        let socket = Socket::open(Whom::Route, true)?;
        Ok(Route { socket, sequence: 0, buffer: vec![0; ROOM] })
    }

    /// Calls `take` with each neighbour.
    pub fn neighbours(&mut self, mut take: impl FnMut(Neighbour)) -> io::Result<()> {
        let question = Neighbour::question(self.next());
        self.socket.send(&question)?;
        answer(&self.socket, &mut self.buffer, self.sequence, true, &mut |message| {
            if let Some(neighbour) = Neighbour::read(message) {
                take(neighbour);
            }
        })
    }

    /// Has the kernel ask a neighbour for its address. It takes the right to change the network
    /// (CAP_NET_ADMIN), and an error says that it is no neighbour any more.
    pub fn solicit(&mut self, neighbour: &Neighbour) -> io::Result<()> {
        for order in neighbour.solicitation([self.next(), self.next()]) {
            self.socket.send(&order)?;
        }
        // The second is refused if the first was.
        answer(&self.socket, &mut self.buffer, self.sequence, false, &mut |_| {})
    }

    /// The device of this name; nothing if there is none.
    pub fn link(&mut self, name: &str) -> Option<Link> {
        let question = Link::question(name, self.next());
        self.one(&question)
    }

    /// The device of this number.
    pub fn link_of(&mut self, index: u32) -> Option<Link> {
        let question = Link::question_for(index, self.next());
        self.one(&question)
    }

    /// Whatever the reason for which there is no answer, nothing is known then.
    fn one(&mut self, question: &[u8]) -> Option<Link> {
        self.socket.send(question).ok()?;
        let mut found = None;
        answer(&self.socket, &mut self.buffer, self.sequence, false, &mut |message| {
            found = Link::read(message);
        })
        .ok()?;
        found
    }

    /// The number of the next question.
    fn next(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }
}

/// What changes. Never waits: whoever wants that polls its descriptor.
#[derive(Debug)]
pub struct Changes {
    socket: Socket,
    buffer: Vec<u8>,
}

/// What was heard at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// Neighbours that are new, or were confirmed.
    pub neighbours: Vec<Neighbour>,
    /// A device came, went, or became another.
    pub links: bool,
    /// There was more than the socket could keep: ask for everything anew.
    pub missed: bool,
}

impl Changes {
    /// From now on.
    pub fn open() -> io::Result<Changes> {
        let socket = Socket::open(Whom::Route, false)?;
        socket.join(LINKS)?;
        socket.join(NEIGHBOURS)?;
        Ok(Changes { socket, buffer: vec![0; ROOM] })
    }

    /// What came since; nothing if there is nothing.
    pub fn hear(&mut self) -> io::Result<Option<Heard>> {
        match self.socket.receive(&mut self.buffer) {
            Ok(bytes) => {
                let mut heard = Heard::default();
                for message in Messages(bytes).flatten() {
                    heard.links |= Link::is_news(&message);
                    heard.neighbours.extend(Neighbour::read(&message));
                }
                Ok(Some(heard))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                Ok(Some(Heard { missed: true, ..Heard::default() }))
            }
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Changes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
