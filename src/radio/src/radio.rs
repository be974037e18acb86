// SPDX-License-Identifier: GPL-2.0-or-later
//! Asks the kernel, and hears what it tells. No right is needed for any of it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use crate::event::Event;
use crate::family::{FAMILIES, Family};
use crate::interface::Interface;
use crate::kernel::{Socket, Whom};
use crate::mac::Mac;
use crate::netlink::{Malformed, Message, Messages, Role};
use crate::nl80211;
use crate::station::Station;

/// The kernel makes answers of up to 32 KiB if a reader has the room.
const ROOM: usize = 32 * 1024;

/// For questions. Each call sleeps until the kernel has answered, which may take a while: the
/// radio's lock may be taken, or its firmware asked.
#[derive(Debug)]
pub struct Radio {
    socket: Socket,
    family: Family,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Radio {
    /// The error is `NotFound` where the kernel has no nl80211.
    pub fn open() -> io::Result<Radio> {
        let socket = Socket::open(Whom::Generic, true)?;
        let mut buffer = vec![0; ROOM];
        socket.send(&Family::question(0))?;
        let mut family = None;
        answer(&socket, &mut buffer, 0, false, &mut |message| family = Family::read(message))?;
        let family = family.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Radio { socket, family, sequence: 0, buffer })
    }

    /// All interfaces of all radios in this network namespace.
    pub fn interfaces(&mut self) -> io::Result<Vec<Interface>> {
        let mut found = Vec::new();
        let question = nl80211::interfaces(self.family.id, self.next());
        self.ask(&question, true, &mut |message| found.extend(Interface::read(message)))?;
        Ok(found)
    }

    /// Calls `take` with each station of an interface. Says whether that is there: it may have
    /// gone before its event was heard.
    pub fn stations(&mut self, interface: u32, mut take: impl FnMut(&Station)) -> io::Result<bool> {
        let question = nl80211::stations(self.family.id, self.next(), interface);
        is_there(self.ask(&question, true, &mut |message| {
            if let Some(station) = Station::read(message) {
                take(&station);
            }
        }))
    }

    /// One station; nothing if it is not there.
    pub fn station(&mut self, interface: u32, mac: Mac) -> io::Result<Option<Station>> {
        let mut found = None;
        let question = nl80211::station(self.family.id, self.next(), interface, mac);
        is_there(self.ask(&question, false, &mut |message| found = Station::read(message)))?;
        Ok(found)
    }

    /// What happens from now on.
    pub fn events(&self) -> io::Result<Events> {
        let Family { id, config, mlme } = self.family;
        Events::open(id, [Some(FAMILIES), config, mlme].into_iter().flatten())
    }

    /// The number of the next question.
    fn next(&mut self) -> u32 {
        self.sequence = self.sequence.wrapping_add(1);
        self.sequence
    }

    fn ask(
        &mut self,
        question: &[u8],
        all: bool,
        take: &mut dyn FnMut(&Message<'_>),
    ) -> io::Result<()> {
        self.socket.send(question)?;
        answer(&self.socket, &mut self.buffer, self.sequence, all, take)
    }
}

/// Reads one answer to its end. What is left of an earlier one has another number.
pub(crate) fn answer(
    socket: &Socket,
    buffer: &mut [u8],
    sequence: u32,
    all: bool,
    take: &mut dyn FnMut(&Message<'_>),
) -> io::Result<()> {
    loop {
        for message in Messages(socket.receive(buffer)?) {
            let message = message.map_err(malformed)?;
            if message.sequence != sequence {
                continue;
            }
            match message.role() {
                Role::Content => take(&message),
                Role::Done => return Ok(()),
                Role::Failed(number) => return Err(io::Error::from_raw_os_error(number)),
            }
            if !all {
                return Ok(());
            }
        }
    }
}

/// False if what was asked about is not there.
fn is_there(answered: io::Result<()>) -> io::Result<bool> {
    match answered {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn malformed(error: Malformed) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Events of interfaces and stations. Never waits: whoever wants that polls its descriptor.
#[derive(Debug)]
pub struct Events {
    socket: Socket,
    family: u16,
    heard: VecDeque<Event>,
    buffer: Vec<u8>,
}

impl Events {
    /// Where there is no nl80211: hears when it comes, which is [`Event::Family`].
    pub fn without_radio() -> io::Result<Events> {
        // No family has this number.
        Events::open(0, [FAMILIES].into_iter())
    }

    fn open(family: u16, groups: impl Iterator<Item = u32>) -> io::Result<Events> {
        let socket = Socket::open(Whom::Generic, false)?;
        for group in groups {
            socket.join(group)?;
        }
        Ok(Events { socket, family, heard: VecDeque::new(), buffer: vec![0; ROOM] })
    }

    /// The next event; nothing if there is none yet.
    pub fn hear(&mut self) -> io::Result<Option<Event>> {
        while self.heard.is_empty() {
            match self.socket.receive(&mut self.buffer) {
                Ok(bytes) => {
                    let event = |message: Message<'_>| match message.kind == self.family {
                        true => Event::read(&message),
                        false => Family::is_news(&message).then_some(Event::Family),
                    };
                    self.heard.extend(Messages(bytes).flatten().filter_map(event));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    return Ok(Some(Event::Missed));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(self.heard.pop_front())
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
