// SPDX-License-Identifier: GPL-2.0-or-later
//! Measuring the round trip to a client with an echo request of our own.
//!
//! Nothing is remembered between request and reply: the request carries its
//! time and a keyed hash of time and client, so that a reply that was not asked
//! for, or comes from somebody else, is seen through.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use pemi_engine::{Nanos, SEC, Time};

use crate::sys::poll::Interest;
use crate::sys::{checksum, socket};

const HEADER: usize = 8;
/// Time and hash.
const MESSAGE: usize = HEADER + 16;
const ECHO_REQUEST_V4: u8 = 8;
const ECHO_REPLY_V4: u8 = 0;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;
/// A reply that comes later says nothing about the hop.
const MAX_AGE: Nanos = 2 * SEC;
/// From the kernel's headers; not in every libc's.
const SOL_RAW: libc::c_int = 255;
const ICMP_FILTER: libc::c_int = 1;
const ICMP6_FILTER: libc::c_int = 1;
/// The replies to our requests are few, but those to other programs on the router come to
/// these sockets as well.
const RECEIVE_BUFFER: u32 = 64 << 10;
/// Messages taken from a socket before packets have their turn. Replies to our requests are
/// a few a second for each client, and a flood of other ones must not keep the thread busy.
pub const REPLIES: usize = 16;

/// Counters of echo requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests sent.
    pub sent: u32,
    /// Replies to them.
    pub answered: u32,
    /// Requests that could not be sent.
    pub errors: u32,
}

/// A validated reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Who replied.
    pub client: IpAddr,
    /// After how long.
    pub rtt: Nanos,
}

/// Raw ICMP sockets.
#[derive(Debug)]
pub struct Prober {
    v4: OwnedFd,
    /// Absent where the kernel has no IPv6.
    v6: Option<OwnedFd>,
    key: RandomState,
    identifier: u16,
    sequence: u16,
    counters: Counters,
}

impl Prober {
    /// Opens the sockets.
    pub fn open(mark: u32) -> io::Result<Prober> {
        let v4 = open(libc::AF_INET, libc::IPPROTO_ICMP, mark)?;
        socket::set_option(v4.as_fd(), SOL_RAW, ICMP_FILTER, &[!(1 << ECHO_REPLY_V4)])?;
        let v6 = open(libc::AF_INET6, libc::IPPROTO_ICMPV6, mark).and_then(|fd| {
            let mut blocked = [u32::MAX; 8];
            blocked[usize::from(ECHO_REPLY_V6 / 32)] &= !(1 << (ECHO_REPLY_V6 % 32));
            socket::set_option(fd.as_fd(), libc::IPPROTO_ICMPV6, ICMP6_FILTER, &blocked)?;
            Ok(fd)
        });
        let key = RandomState::new();
        let identifier = key.hash_one("identifier") as u16;
        Ok(Prober { v4, v6: v6.ok(), key, identifier, sequence: 0, counters: Counters::default() })
    }

    /// The sockets that replies come to.
    pub fn sockets(&self) -> impl Iterator<Item = &OwnedFd> {
        [Some(&self.v4), self.v6.as_ref()].into_iter().flatten()
    }

    /// Sends a request to a client.
    pub fn send(&mut self, now: Time, client: IpAddr) {
        let mut message = [0; MESSAGE];
        message[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        message[6..8].copy_from_slice(&self.sequence.to_be_bytes());
        message[8..16].copy_from_slice(&now.as_nanos().to_be_bytes());
        message[16..].copy_from_slice(&self.hash(now.as_nanos(), client).to_be_bytes());
        self.sequence = self.sequence.wrapping_add(1);
        let sent = match (client, &self.v6) {
            (IpAddr::V4(_), _) => {
                message[0] = ECHO_REQUEST_V4;
                let checksum = checksum::internet(&message);
                message[2..4].copy_from_slice(&checksum.to_be_bytes());
                socket::send_to(self.v4.as_fd(), &message, client)
            }
            (IpAddr::V6(_), Some(v6)) => {
                // The kernel, which chooses the source address, fills in the
                // checksum over it.
                message[0] = ECHO_REQUEST_V6;
                socket::send_to(v6.as_fd(), &message, client)
            }
            (IpAddr::V6(_), None) => Err(io::ErrorKind::Unsupported.into()),
        };
        let counter =
            if sent.is_ok() { &mut self.counters.sent } else { &mut self.counters.errors };
        *counter = counter.saturating_add(1);
    }

    /// Takes what has come to those of the sockets that are ready, at most [`REPLIES`] messages of
    /// each, and gives the replies to our requests to `on_reply`.
    pub fn receive(&mut self, now: Time, ready: &[Interest], mut on_reply: impl FnMut(Reply)) {
        let mut buffer = [0; 256];
        let sockets = [Some(&self.v4), self.v6.as_ref()].into_iter().flatten();
        for (fd, _) in sockets.zip(ready).filter(|(_, ready)| ready.is_ready()) {
            for _ in 0..REPLIES {
                let received = socket::receive_from(fd.as_fd(), &mut buffer);
                let Ok((len, client)) = received else { break };
                if let Some(rtt) = self.validate(now, client, &buffer[..len]) {
                    self.counters.answered = self.counters.answered.saturating_add(1);
                    on_reply(Reply { client, rtt });
                }
            }
        }
    }

    /// How it goes.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn validate(&self, now: Time, client: IpAddr, data: &[u8]) -> Option<Nanos> {
        let (message, kind) = match client {
            // A raw IPv4 socket hands over the IP header as well.
            IpAddr::V4(_) => (data.get(usize::from(data.first()? & 15) * 4..)?, ECHO_REPLY_V4),
            IpAddr::V6(_) => (data, ECHO_REPLY_V6),
        };
        let message: &[u8; MESSAGE] = message.try_into().ok()?;
        let sent = u64::from_be_bytes(*message[8..].first_chunk()?);
        let hash = u64::from_be_bytes(*message[16..].first_chunk()?);
        let ours =
            message[0] == kind && message[1] == 0 && message[4..6] == self.identifier.to_be_bytes();
        let rtt = now.since(Time::from_nanos(sent));
        (ours && hash == self.hash(sent, client) && (1..MAX_AGE).contains(&rtt)).then_some(rtt)
    }

    fn hash(&self, sent: u64, client: IpAddr) -> u64 {
        self.key.hash_one((sent, client))
    }
}

fn open(family: libc::c_int, protocol: libc::c_int, mark: u32) -> io::Result<OwnedFd> {
    let fd = socket::raw(family, protocol)?;
    socket::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_MARK, &[mark])?;
    socket::set_buffer(fd.as_fd(), socket::Buffer::Receive, RECEIVE_BUFFER);
    Ok(fd)
}
