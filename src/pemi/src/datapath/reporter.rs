// SPDX-License-Identifier: GPL-2.0-or-later
//! Sending packets of which the access point reports whether the client has acknowledged them.
//!
//! A report has no number of ours: the kernel hands back the frame. So what was sent is
//! remembered by a keyed hash of the beginning of its datagram, which is encrypted and thus
//! another one for each packet; only copies are alike, and the older of them is reported first.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use pemi_engine::packet::find;
use pemi_engine::{Fate, Ticket};

use crate::datapath::inject::{IPV6_HDRINCL, open};
use crate::sys::error_queue::{self, Inbox};
use crate::sys::socket::{self, Buffer};

/// Packets remembered: those of ten stations with as many as the engine lets one have.
const SENT: usize = 1024;
/// Reports wait with their frames until they are read.
const RECEIVE_BUFFER: u32 = 1 << 20;
/// Bytes of a datagram that tell it from every other one: ports, length, checksum, and more of
/// what is encrypted than two packets have in common.
const TELLING: usize = 72;
/// Where in a frame its IP packet may begin: after Ethernet's header, with or without tags, and
/// after any header of 802.11.
const ETHERNET: usize = 14;
const LONGEST_HEADER: usize = 64;
const UDP: u8 = 17;

/// Raw sockets that want to know what became of packets.
#[derive(Debug)]
pub(crate) struct Reporter {
    v4: OwnedFd,
    /// Absent where the kernel has no IPv6.
    v6: Option<OwnedFd>,
    key: RandomState,
    sent: VecDeque<(u64, Ticket)>,
    inbox: Inbox,
}

impl Reporter {
    /// Opens the sockets; what they send carries this mark.
    pub fn open(mark: u32) -> io::Result<Reporter> {
        let reporting = |fd: OwnedFd| {
            error_queue::want_wifi_status(fd.as_fd())?;
            socket::set_buffer(fd.as_fd(), Buffer::Receive, RECEIVE_BUFFER);
            Ok(fd)
        };
        let v4 = open(libc::AF_INET, mark, libc::IPPROTO_IP, libc::IP_HDRINCL)?;
        let v6 = open(libc::AF_INET6, mark, libc::IPPROTO_IPV6, IPV6_HDRINCL);
        Ok(Reporter {
            v4: reporting(v4)?,
            v6: v6.and_then(reporting).ok(),
            key: RandomState::new(),
            sent: VecDeque::with_capacity(SENT),
            inbox: Inbox::new(),
        })
    }

    /// Sends a packet, at once or not at all; gives whether it was sent.
    pub fn send(&mut self, ticket: Ticket, packet: &[u8]) -> bool {
        let Some(udp) = find(packet) else { return false };
        let to = udp.destination;
        let fd = if to.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        if !fd.is_some_and(|fd| socket::send_to(fd.as_fd(), packet, to).is_ok()) {
            return false;
        }
        if let Some(telling) = telling(packet) {
            if self.sent.len() >= SENT {
                self.sent.pop_front();
            }
            self.sent.push_back((self.key.hash_one(telling), ticket));
        }
        true
    }

    /// The sockets, so that somebody can wait for reports.
    pub fn sockets(&self) -> impl Iterator<Item = &OwnedFd> {
        [Some(&self.v4), self.v6.as_ref()].into_iter().flatten()
    }

    /// Takes the reports that have come.
    pub fn receive(&mut self, mut on_report: impl FnMut(Ticket, Fate)) {
        let Reporter { v4, v6, key, sent, inbox } = self;
        for fd in [Some(&*v4), v6.as_ref()].into_iter().flatten() {
            let mut take = |frame: &[u8], acknowledged: bool| {
                if let Some(ticket) = recognise(key, sent, frame) {
                    on_report(ticket, if acknowledged { Fate::Arrived } else { Fate::Lost });
                }
            };
            // No more reports come than packets were sent.
            while inbox.fill(fd.as_fd(), &mut take).is_ok_and(|got| got == error_queue::BATCH) {}
        }
    }
}

/// The ticket of the packet that is in this frame.
fn recognise(
    key: &RandomState,
    sent: &mut VecDeque<(u64, Ticket)>,
    frame: &[u8],
) -> Option<Ticket> {
    let usual = std::iter::once(ETHERNET);
    usual.chain((0..LONGEST_HEADER).step_by(2)).find_map(|start| {
        let hash = key.hash_one(telling(frame.get(start..)?)?);
        let place = sent.iter().position(|(known, _)| *known == hash)?;
        sent.remove(place).map(|(_, ticket)| ticket)
    })
}

/// What tells an IP packet from every other one, if it looks like one with a UDP datagram.
fn telling(packet: &[u8]) -> Option<&[u8]> {
    let start = match (packet.first()? >> 4, packet.get(9), packet.get(6)) {
        (4, Some(&UDP), _) => usize::from(packet[0] & 0x0f) * 4,
        (6, _, Some(&UDP)) => 40,
        _ => return None,
    };
    let datagram = packet.get(start..)?;
    let length = usize::from(u16::from_be_bytes([*datagram.get(4)?, *datagram.get(5)?]));
    datagram.get(..length.min(TELLING))
}
