// SPDX-License-Identifier: GPL-2.0-or-later
//! Generic netlink, as much as one family with plain attributes needs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result, bail};
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
    sockopt,
};

/// The controller's family, of which the numbers of all others are asked.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
/// Length of the headers: netlink's, then generic netlink's.
const NETLINK_HEADER: usize = 16;
const HEADERS: usize = NETLINK_HEADER + 4;
const ATTRIBUTE_HEADER: usize = 4;
/// The kernel may mark a type as nested or in network order; neither matters here.
const TYPE_MASK: u16 = 0x3fff;

/// Several hundred frames of the air may be told before the medium gets to run.
const BUFFER_BYTES: usize = 8 << 20;

/// A message under construction.
pub struct Message(Vec<u8>);

impl Message {
    /// A request of a family; `acknowledged`: the kernel is to answer whether it did it.
    pub fn new(family: u16, command: u8, acknowledged: bool) -> Message {
        let flags = NLM_F_REQUEST | if acknowledged { NLM_F_ACK } else { 0 };
        let mut bytes = vec![0; HEADERS];
        bytes[4..6].copy_from_slice(&family.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes[16] = command;
        bytes[17] = 1;
        Message(bytes)
    }

    /// With one more attribute.
    #[must_use]
    pub fn with(mut self, kind: u16, value: &[u8]) -> Message {
        let length = u16::try_from(ATTRIBUTE_HEADER + value.len()).expect("attributes are short");
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// With one more attribute that is a number.
    #[must_use]
    pub fn with_u32(self, kind: u16, value: u32) -> Message {
        self.with(kind, &value.to_ne_bytes())
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("messages are short");
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// One message that the kernel sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Which family's it is.
    pub family: u16,
    /// What of the family's.
    pub command: u8,
    attributes: &'a [u8],
}

impl<'a> Received<'a> {
    /// The attributes, as type and value, in the order in which they came.
    pub fn attributes(&self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut rest = self.attributes;
        std::iter::from_fn(move || {
            let length = usize::from(u16_at(rest, 0)?);
            let kind = u16_at(rest, 2)? & TYPE_MASK;
            let value = rest.get(ATTRIBUTE_HEADER..length)?;
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
            Some((kind, value))
        })
    }
}

/// The messages of one datagram. Those of netlink itself that say that a request was
/// refused are errors.
pub fn messages(datagram: &[u8]) -> impl Iterator<Item = io::Result<Received<'_>>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        loop {
            let length = u32_at(rest, 0)? as usize;
            let family = u16_at(rest, 4)?;
            let body = rest.get(NETLINK_HEADER..length)?;
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
            if family == NLMSG_ERROR {
                match u32_at(body, 0)?.cast_signed() {
                    0 => continue,
                    error => return Some(Err(io::Error::from_raw_os_error(-error))),
                }
            }
            let command = *body.first()?;
            let attributes = body.get(HEADERS - NETLINK_HEADER..)?;
            return Some(Ok(Received { family, command, attributes }));
        }
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// A socket to the kernel's generic netlink.
pub struct Socket(OwnedFd);

impl Socket {
    /// Opens one with an address that the kernel chooses.
    pub fn open() -> Result<Socket> {
        let flags = SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(GENERIC))?;
        bind(&fd, &SocketAddrNetlink::new(0, 0))?;
        sockopt::set_socket_recv_buffer_size_force(&fd, BUFFER_BYTES)
            .context("a large receive buffer")?;
        Ok(Socket(fd))
    }

    /// The number of a family.
    pub fn family(&self, name: &str) -> Result<u16> {
        let mut value = name.as_bytes().to_vec();
        value.push(0);
        self.send(Message::new(CONTROLLER, GET_FAMILY, false).with(FAMILY_NAME, &value))?;
        let mut buffer = [0; 8192];
        let length = self.receive(&mut buffer, RecvFlags::empty())?;
        for message in messages(&buffer[..length]) {
            let message = message.with_context(|| format!("no generic netlink family {name}"))?;
            for (kind, value) in message.attributes() {
                if let (FAMILY_ID, Some(id)) = (kind, u16_at(value, 0)) {
                    return Ok(id);
                }
            }
        }
        bail!("the kernel told no number for the family {name}")
    }

    /// Sends it; the kernel has acted on it on return.
    pub fn send(&self, message: Message) -> io::Result<()> {
        let bytes = message.finish();
        send(&self.0, &bytes, SendFlags::empty())?;
        Ok(())
    }

    /// Waits for a datagram, unless told not to.
    pub fn receive(&self, buffer: &mut [u8], flags: RecvFlags) -> io::Result<usize> {
        let (length, _) = recv(&self.0, buffer, flags)?;
        Ok(length)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let bytes =
            Message::new(27, 3, false).with(5, b"five!").with_u32(6, 600).with(7, &[]).finish();
        let all: Vec<_> = messages(&bytes).map(Result::unwrap).collect();
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].family, all[0].command), (27, 3));
        let six = 600_u32.to_ne_bytes();
        let attributes: Vec<_> = all[0].attributes().collect();
        assert_eq!(attributes, [(5, &b"five!"[..]), (6, &six[..]), (7, &[][..])]);
    }

    #[test]
    fn a_refusal_is_an_error_and_an_acknowledgement_nothing() {
        let answer = |error: i32| {
            let mut bytes = vec![0; 36];
            bytes[..4].copy_from_slice(&36_u32.to_ne_bytes());
            bytes[4..6].copy_from_slice(&NLMSG_ERROR.to_ne_bytes());
            bytes[16..20].copy_from_slice(&error.to_ne_bytes());
            bytes
        };
        assert_eq!(messages(&answer(0)).count(), 0);
        let refused = answer(-1);
        let error = messages(&refused).next().unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn a_message_that_is_cut_off_is_left_out() {
        let bytes = Message::new(27, 3, false).with(5, b"five!").finish();
        for end in 0..bytes.len() {
            assert_eq!(messages(&bytes[..end]).count(), 0, "{end}");
        }
    }
}
