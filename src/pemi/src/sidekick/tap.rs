// SPDX-License-Identifier: GPL-2.0-or-later
//! A look at what clients send through the router. Packets pass as they do without.

use std::ffi::c_int;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pemi_engine::packet::find;

use super::envelope::Envelope;
use super::filter;
use crate::sys::{packet, socket};

/// For a thread that does not get its turn at once.
const BUFFER: u32 = 512 << 10;
/// The largest that packets are merged to, with their headers.
const LARGEST: usize = 66_000;
/// virtio_net_hdr, before every frame.
const MERGED: usize = 10;
/// In it, where it says how packets were merged, and of which length each was.
const KIND: usize = 1;
const SEGMENT: usize = 4;
const UDP_SEGMENTS: u8 = 5;

/// A UDP datagram, or several of a flow that were merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen<'a> {
    /// The index of the device that it came in by.
    pub device: u32,
    /// Source.
    pub from: SocketAddr,
    /// Destination.
    pub to: SocketAddr,
    /// One payload, or several.
    pub payload: &'a [u8],
    /// Bytes of each but the last; 0: it is one.
    pub segment: usize,
}

/// A packet socket.
pub struct Tap {
    fd: OwnedFd,
    buffer: Vec<u8>,
    envelope: Envelope,
}

impl Tap {
    /// One that sees the packets of these devices and source ports.
    pub fn open(flows: &[(u32, u16)]) -> io::Result<Tap> {
        // No protocol: nothing comes before the filter is there.
        let fd = socket::raw(libc::AF_PACKET, 0)?;
        let set = |name: c_int| socket::set_option(fd.as_fd(), libc::SOL_PACKET, name, &[1]);
        set(libc::PACKET_VNET_HDR)?;
        set(libc::PACKET_AUXDATA)?;
        // Not before Linux 4.20. The filter drops those, too.
        let _ = set(libc::PACKET_IGNORE_OUTGOING);
        socket::set_buffer(fd.as_fd(), socket::Buffer::Receive, BUFFER);
        let tap = Tap { fd, buffer: vec![0; LARGEST], envelope: Envelope::new() };
        tap.watch(flows)?;
        packet::listen(tap.fd.as_fd(), 0)?;
        Ok(tap)
    }

    /// Sees the packets of these devices and source ports from now on.
    pub fn watch(&self, flows: &[(u32, u16)]) -> io::Result<()> {
        packet::attach_filter(self.fd.as_fd(), &filter::program(flows))
    }

    /// How many packets were not seen since this was asked last: there was no room.
    pub fn dropped(&self) -> u32 {
        packet::dropped(self.fd.as_fd())
    }

    /// The next packet that has come; `None` inside: one that is of no use. An error of
    /// kind `InvalidInput`: merged packets that this kernel cannot tell apart.
    pub fn receive(&mut self) -> io::Result<Option<Seen<'_>>> {
        let len = self.envelope.receive(self.fd.as_fd(), &mut self.buffer)?;
        let address: Option<libc::sockaddr_ll> = self.envelope.name(libc::AF_PACKET);
        let aux: Option<libc::tpacket_auxdata> =
            self.envelope.control(libc::SOL_PACKET, libc::PACKET_AUXDATA);
        let found = address.zip(aux).zip(self.buffer.get(..len));
        Ok(found.and_then(|((address, aux), bytes)| {
            see(address.sll_ifindex.cast_unsigned(), bytes, usize::from(aux.tp_net))
        }))
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Reads what the kernel hands over: how packets were merged, then a frame with its IP
/// header at `network`.
pub fn see(device: u32, bytes: &[u8], network: usize) -> Option<Seen<'_>> {
    let (merged, frame) = bytes.split_first_chunk::<MERGED>()?;
    let packet = frame.get(network..)?;
    let udp = find(packet)?;
    let ((from, to), payload) = (udp.ends(), udp.payload(packet));
    let segment = match merged[KIND] {
        UDP_SEGMENTS => usize::from(u16::from_ne_bytes([merged[SEGMENT], merged[SEGMENT + 1]])),
        _ => 0,
    };
    Some(Seen { device, from, to, payload, segment })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, segment: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; MERGED + 14];
        bytes[KIND] = kind;
        bytes[SEGMENT..SEGMENT + 2].copy_from_slice(&segment.to_ne_bytes());
        let len = payload.len() as u16;
        let mut ip = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        ip[2..4].copy_from_slice(&(28 + len).to_be_bytes());
        bytes.extend(ip);
        bytes.extend([0xc3, 0x50, 1, 187]);
        bytes.extend((8 + len).to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn a_datagram_and_several_merged_ones() {
        let (from, to) = ("192.0.2.1:50000".parse().unwrap(), "192.0.2.2:443".parse().unwrap());
        let payload = &[1, 2, 3, 4, 5];
        let seen = Seen { device: 7, from, to, payload, segment: 0 };
        assert_eq!(see(7, &frame(0, 0, payload), 14), Some(seen));
        let seen = Seen { segment: 2, ..seen };
        assert_eq!(see(7, &frame(UDP_SEGMENTS, 2, payload), 14), Some(seen));
        // Another kind of merging says nothing about UDP.
        assert_eq!(see(7, &frame(1, 2, payload), 14).map(|seen| seen.segment), Some(0));
        // Padding at the end of a short frame is no payload.
        let mut padded = frame(0, 0, payload);
        padded.extend([0; 20]);
        assert_eq!(see(7, &padded, 14).map(|seen| seen.payload), Some(&payload[..]));
        for len in 0..padded.len() - 20 {
            assert_eq!(see(7, &padded[..len], 14), None);
        }
        assert_eq!(see(7, &padded, usize::MAX), None);
    }
}
