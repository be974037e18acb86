// SPDX-License-Identifier: GPL-2.0-or-later
//! Sending packets of which the access point reports whether the client has acknowledged them.
//!
//! A report has no number of ours: the kernel hands back the frame. So what was sent is
//! remembered by a keyed hash of the beginning of its datagram, which is encrypted and thus
//! another one for each packet (of TCP the sequence number is); only copies are alike, and the older
//! of them is reported first.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use pemi_engine::packet::destination;
use pemi_engine::{Fate, Ticket};

use crate::datapath::inject::{IPV6_HDRINCL, Injector, open};
use crate::sys::error_queue::{self, Inbox};
use crate::sys::socket::{self, Buffer};

/// Packets remembered, by their hash in sets of a few: those of ten stations with as many as the
/// engine lets one have.
const SETS: usize = 128;
const SET: usize = 8;
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

/// Sockets that want to know what became of packets.
#[derive(Debug)]
pub(crate) struct Reporter {
    way: Way,
    /// By which of its sockets something was sent that is reported of.
    used: [bool; 2],
    key: RandomState,
    sent: Sent,
    inbox: Inbox,
}

/// How packets leave.
#[derive(Debug)]
enum Way {
    Routed {
        v4: OwnedFd,
        /// Absent where the kernel has no IPv6.
        v6: Option<OwnedFd>,
        mark: u32,
    },
    /// By the socket for the ports of the bridge, of which this is another handle. Reports of what
    /// else it sends are of packets that nobody knows.
    Bridged(OwnedFd),
}

/// Packets that were sent, each set from the oldest to the newest. Those of which no report came
/// are overwritten some day.
#[derive(Debug)]
struct Sent(Box<[Set; SETS]>);

/// Hashes with their tickets.
type Set = [Option<(u64, Ticket)>; SET];

impl Sent {
    fn new() -> Sent {
        Sent(Box::new([[None; SET]; SETS]))
    }

    fn set(&mut self, hash: u64) -> &mut Set {
        &mut self.0[hash as usize % SETS]
    }

    fn put(&mut self, hash: u64, ticket: Ticket) {
        let set = self.set(hash);
        let free = set.iter().position(Option::is_none).unwrap_or(0);
        set[free..].rotate_left(1);
        set[SET - 1] = Some((hash, ticket));
    }

    fn take(&mut self, hash: u64) -> Option<Ticket> {
        let of_hash = |one: &&mut Option<(u64, Ticket)>| one.is_some_and(|(it, _)| it == hash);
        self.set(hash).iter_mut().find(of_hash)?.take().map(|(_, ticket)| ticket)
    }
}

impl Reporter {
    /// Of packets that are routed: opens the sockets; what they send carries this mark.
    pub fn open(mark: u32) -> io::Result<Reporter> {
        let v4 = open(libc::AF_INET, mark, libc::IPPROTO_IP, libc::IP_HDRINCL)?;
        let v6 = open(libc::AF_INET6, mark, libc::IPPROTO_IPV6, IPV6_HDRINCL);
        let v6 = v6.and_then(reporting).ok();
        Ok(Reporter::of(Way::Routed { v4: reporting(v4)?, v6, mark }))
    }

    /// Of packets that leave by the ports of a bridge, through this socket.
    pub fn bridged(socket: &OwnedFd) -> io::Result<Reporter> {
        Ok(Reporter::of(Way::Bridged(reporting(socket.try_clone()?)?)))
    }

    fn of(way: Way) -> Reporter {
        Reporter {
            used: [matches!(way, Way::Bridged(_)), false],
            way,
            key: RandomState::new(),
            sent: Sent::new(),
            inbox: Inbox::new(),
        }
    }

    /// Sends a packet by this interface (0: that of its route), or on a bridge as `injector` does,
    /// at once or not at all; gives whether it was sent.
    pub fn send(
        &mut self,
        ticket: Ticket,
        packet: &[u8],
        device: u32,
        injector: &mut Injector,
    ) -> bool {
        let Some(to) = destination(packet) else { return false };
        let sent = match &self.way {
            Way::Bridged(_) => injector.send_by(device, packet),
            Way::Routed { v4, v6, mark } => {
                self.used[usize::from(to.is_ipv6())] = true;
                let fd = if to.is_ipv4() { Some(v4) } else { v6.as_ref() };
                fd.is_some_and(|fd| socket::send_by(fd.as_fd(), packet, to, device, *mark).is_ok())
            }
        };
        if !sent {
            return false;
        }
        if let Some(telling) = telling(packet) {
            self.sent.put(self.key.hash_one(telling), ticket);
        }
        true
    }

    /// The sockets of which reports may come.
    pub fn sockets(&self) -> impl Iterator<Item = &OwnedFd> {
        self.way.used(self.used)
    }

    /// Takes the reports that have come.
    pub fn receive(&mut self, mut on_report: impl FnMut(Ticket, Fate)) {
        let Reporter { way, used, key, sent, inbox } = self;
        for fd in way.used(*used) {
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

impl Way {
    fn sockets(&self) -> impl Iterator<Item = &OwnedFd> {
        let (first, second) = match self {
            Way::Routed { v4, v6, .. } => (v4, v6.as_ref()),
            Way::Bridged(fd) => (fd, None),
        };
        std::iter::once(first).chain(second)
    }

    /// Those of them that are `used`.
    fn used(&self, used: [bool; 2]) -> impl Iterator<Item = &OwnedFd> {
        self.sockets().zip(used).filter(|(_, used)| *used).map(|(fd, _)| fd)
    }
}

/// Has the kernel report of what this socket sends.
fn reporting(fd: OwnedFd) -> io::Result<OwnedFd> {
    error_queue::want_wifi_status(fd.as_fd())?;
    socket::set_buffer(fd.as_fd(), Buffer::Receive, RECEIVE_BUFFER);
    Ok(fd)
}

/// The ticket of the packet that is in this frame.
fn recognise(key: &RandomState, sent: &mut Sent, frame: &[u8]) -> Option<Ticket> {
    let usual = std::iter::once(ETHERNET);
    usual
        .chain((0..LONGEST_HEADER).step_by(2))
        .find_map(|start| sent.take(key.hash_one(telling(frame.get(start..)?)?)))
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
        let mut known = Sent::new();
        for (packet, n) in sent.iter().zip(0..) {
            known.put(key.hash_one(telling(packet).unwrap()), Ticket(n));
        }
        let find = |frame: &Vec<u8>| recognise(&key, &mut known, frame).map(|Ticket(n)| n);
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
    fn those_without_a_report_make_room_for_newer_ones() {
        let mut sent = Sent::new();
        let alike = |n: u32| u64::from(n) * SETS as u64;
        (0..12).for_each(|n| sent.put(alike(n), Ticket(n)));
        assert_eq!((sent.take(alike(3)), sent.take(alike(6))), (None, Some(Ticket(6))));
        sent.put(alike(12), Ticket(12));
        assert_eq!(sent.take(alike(4)), Some(Ticket(4)), "the free place was taken");
        assert_eq!(sent.take(alike(12)), Some(Ticket(12)));
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
