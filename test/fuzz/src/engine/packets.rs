// SPDX-License-Identifier: GPL-2.0-or-later
//! QUIC-looking packets, made without much ado: most of a run's time is to be the
//! engine's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use pemi_engine::Direction;

const PORT: u16 = 443;
const UDP: usize = 8;
/// In a packet with a short header: first byte and connection ID.
const NUMBER_AT: usize = 9;
/// What a packet has after its length field if another one follows.
const SMALL: usize = 20;

/// Kinds of packets with a long header, numbered as in version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Long {
    Initial = 0,
    ZeroRtt = 1,
    Handshake = 2,
    Retry = 3,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Flow {
    n: u8,
    pub client: IpAddr,
    server: IpAddr,
    port: u16,
}

const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9));

/// Two of one client, one of another, one over IPv6.
pub(super) const FLOWS: [Flow; 4] = [
    Flow { n: 0, client: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), server: SERVER, port: 40_000 },
    Flow { n: 1, client: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), server: SERVER, port: 40_001 },
    Flow { n: 2, client: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3)), server: SERVER, port: 40_000 },
    Flow {
        n: 3,
        client: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)),
        server: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9)),
        port: 40_000,
    },
];

impl Flow {
    /// Its bit in a set of flows.
    pub fn bit(&self) -> u8 {
        1 << self.n
    }

    /// Puts headers of IP and UDP into `packet`, and gives the payload of `size` zeroes.
    fn payload<'a>(
        &self,
        packet: &'a mut Vec<u8>,
        direction: Direction,
        size: usize,
    ) -> &'a mut [u8] {
        let client = SocketAddr::new(self.client, self.port);
        let server = SocketAddr::new(self.server, PORT);
        let (from, to) = match direction {
            Direction::Down => (server, client),
            Direction::Up => (client, server),
        };
        let len = (size + UDP) as u16;
        let header = if self.client.is_ipv4() { 20 } else { 40 };
        let start = packet.len();
        packet.reserve(header + UDP + size);
        match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                packet.extend_from_slice(&[0x45, 0]);
                packet.extend_from_slice(&(len + 20).to_be_bytes());
                packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
                packet.extend_from_slice(&from.octets());
                packet.extend_from_slice(&to.octets());
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                packet.extend_from_slice(&[0x60, 0, 0, 0]);
                packet.extend_from_slice(&len.to_be_bytes());
                packet.extend_from_slice(&[17, 64]);
                packet.extend_from_slice(&from.octets());
                packet.extend_from_slice(&to.octets());
            }
            _ => unreachable!("both ends have addresses of one family"),
        }
        packet.extend_from_slice(&from.port().to_be_bytes());
        packet.extend_from_slice(&to.port().to_be_bytes());
        packet.extend_from_slice(&len.to_be_bytes());
        packet.extend_from_slice(&[0, 0]);
        let start = start + header + UDP;
        packet.resize(start + size, 0);
        &mut packet[start..]
    }

    /// Adds one with a short header.
    pub fn short(
        &self,
        packet: &mut Vec<u8>,
        direction: Direction,
        size: usize,
        number: u64,
        spin: bool,
    ) {
        let payload = self.payload(packet, direction, size.max(NUMBER_AT + 8));
        payload[0] = 0x40 | u8::from(spin) << 5;
        payload[1..NUMBER_AT].fill(self.n ^ direction as u8 ^ 0x5a);
        payload[NUMBER_AT..NUMBER_AT + 8].copy_from_slice(&number.to_be_bytes());
    }

    /// Adds one with a long header, of which `size` bytes are left to the datagram. If
    /// `more`, one with a short header follows in the same datagram.
    pub fn long(
        &self,
        packet: &mut Vec<u8>,
        direction: Direction,
        (version, kind, more): (u32, Long, bool),
        size: usize,
        number: u64,
    ) {
        let mut head = [0; 32];
        let bits = if version == 1 { kind as u8 } else { (kind as u8 + 1) & 3 };
        head[0] = 0xc0 | bits << 4;
        head[1..5].copy_from_slice(&version.to_be_bytes());
        // Connection IDs of eight and no bytes, then, in an Initial, an empty token.
        head[5] = 8;
        head[6..14].copy_from_slice(&number.to_be_bytes());
        let length_at = if kind == Long::Initial { 16 } else { 15 };
        let rest = if more { SMALL } else { size.saturating_sub(length_at + 2) };
        head[length_at..length_at + 2].copy_from_slice(&(0x4000 | rest as u16).to_be_bytes());
        let payload = self.payload(packet, direction, size);
        let len = size.min(head.len());
        payload[..len].copy_from_slice(&head[..len]);
        if more && let Some(first) = payload.get_mut(length_at + 2 + SMALL) {
            *first = 0x40;
        }
    }
}
