// SPDX-License-Identifier: GPL-2.0-or-later
//! Sending packets of which the access point reports whether the client has acknowledged them.
//!
//! A report has no number of ours: the kernel hands back the frame. So what was sent is
//! remembered by a keyed hash of the beginning of its datagram, which is encrypted and thus
//! another one for each packet (of TCP the sequence number is); only copies are alike, and the older
//! of them is reported first.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use pemi_engine::packet::destination;
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
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Raw sockets that want to know what became of packets.
#[derive(Debug)]
pub(crate) struct Reporter {
    v4: OwnedFd,
    /// Absent where the kernel has no IPv6.
    v6: Option<OwnedFd>,
    mark: u32,
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
            mark,
            key: RandomState::new(),
            sent: VecDeque::with_capacity(SENT),
            inbox: Inbox::new(),
        })
    }

    /// Sends a packet by this interface (0: that of its route), at once or not at all; gives
    /// whether it was sent.
    pub fn send(&mut self, ticket: Ticket, packet: &[u8], device: u32) -> bool {
        let Some(to) = destination(packet) else { return false };
        let fd = if to.is_ipv4() { Some(&self.v4) } else { self.v6.as_ref() };
        let send = |fd: &OwnedFd| socket::send_by(fd.as_fd(), packet, to, device, self.mark);
        if fd.is_none_or(|fd| send(fd).is_err()) {
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
        let Reporter { v4, v6, key, sent, inbox, .. } = self;
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

/// What tells an IP packet from every other one, if it looks like one with a UDP datagram or a TCP
/// segment.
fn telling(packet: &[u8]) -> Option<&[u8]> {
    let length = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let (start, end) = match (packet.first()? >> 4, packet.get(9), packet.get(6)) {
        (4, Some(&(TCP | UDP)), _) => (usize::from(packet[0] & 0x0f) * 4, length(2)?.into()),
        (6, _, Some(&(TCP | UDP))) => (40, 40 + usize::from(length(4)?)),
        _ => return None,
    };
    packet.get(start..end.min(start + TELLING))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 28 + payload.len() as u8, 0, 0, 0x40, 0, 64, UDP, 0, 0];
        packet.extend([192, 0, 2, 1, 192, 0, 2, 9, 0x01, 0xbb, 0xc3, 0x50]);
        packet.extend([0, 8 + payload.len() as u8, 0, 0]);
        packet.extend(payload);
        packet
    }

    fn v6(payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8 + payload.len() as u8, UDP, 64];
        packet.extend([7; 32]);
        packet.extend(&v4(payload)[20..]);
        packet
    }

    /// What is recognised of these frames when `sent` was sent.
    fn found(sent: &[Vec<u8>], frames: &[Vec<u8>]) -> Vec<Option<u32>> {
        let key = RandomState::new();
        let hash = |packet: &Vec<u8>| key.hash_one(telling(packet).unwrap());
        let mut sent = sent.iter().zip(0..).map(|(it, n)| (hash(it), Ticket(n))).collect();
        let find = |frame: &Vec<u8>| recognise(&key, &mut sent, frame).map(|Ticket(n)| n);
        frames.iter().map(find).collect()
    }

    #[test]
    fn a_frame_tells_which_packet_is_in_it() {
        let framed = |header: usize, packet: &[u8]| [&vec![0xaa; header][..], packet].concat();
        let (a, b, c) = (v4(&[1; 60]), v4(&[2; 60]), v6(&[3; 90]));
        let sent = [a.clone(), b.clone(), c.clone(), a.clone()];
        let mut cut = framed(14, &c);
        cut.truncate(14 + 40 + TELLING);
        let frames = [
            framed(14, &b),
            cut,
            framed(34, &a),
            framed(0, &a),
            framed(14, &a),
            framed(14, &v4(&[4; 60])),
        ];
        // The older of two that are alike first, and each of them once.
        assert_eq!(found(&sent, &frames), [Some(1), Some(2), Some(0), Some(3), None, None]);
    }

    #[test]
    fn segments_of_tcp_are_told_apart() {
        let segment = |sequence: u8| {
            let mut packet = v4(&[sequence; 12]);
            packet[9] = TCP;
            packet
        };
        let framed = |packet: &[u8]| [&[0xaa; 14][..], packet, &[0; 20]].concat();
        let sent = [segment(1), segment(2)];
        let frames = [framed(&sent[1]), framed(&sent[0]), framed(&segment(3))];
        assert_eq!(found(&sent, &frames), [Some(1), Some(0), None], "padded by Ethernet");
    }

    #[test]
    fn headers_that_were_rewritten_make_no_difference() {
        let sent = v4(&[1; 60]);
        let mut frame = [&[0; 14], &sent[..]].concat();
        // The kernel chooses an identification where there is none, and the checksum.
        frame[14 + 4..14 + 6].copy_from_slice(&[0x12, 0x34]);
        frame[14 + 10..14 + 12].copy_from_slice(&[0x56, 0x78]);
        assert_eq!(found(&[sent], &[frame]), [Some(0)]);
    }

    #[test]
    fn any_bytes_are_no_packet_of_ours() {
        let sent = [v4(&[1; 60])];
        let mut state = 1u32;
        for length in 0..300 {
            let frame: Vec<u8> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
                    (state >> 24) as u8
                })
                .collect();
            assert_eq!(found(&sent, &[frame]), [None]);
        }
    }
}
