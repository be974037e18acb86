// SPDX-License-Identifier: GPL-2.0-or-later
//! Packets as a router sees them: QUIC in UDP in IPv4 or IPv6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use pemi_engine::Direction;

use crate::random::Random;

/// QUIC version 1.
pub const V1: u32 = 1;
/// QUIC version 2.
pub const V2: u32 = 0x6b33_43cf;

/// Kinds of packets with a long header, numbered as in version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Long {
    /// The first flight of either side.
    Initial = 0,
    /// Early data of the client.
    ZeroRtt = 1,
    /// What follows the Initial.
    Handshake = 2,
    /// The server asks for a token.
    Retry = 3,
}

/// One connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flow {
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
}

impl Flow {
    /// The flow of that number, over IPv4; 200 flows for one client.
    pub fn v4(n: u32) -> Flow {
        let client = IpAddr::V4(Ipv4Addr::from(0x0a00_0002 + n / 200));
        let server = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9));
        let port = 40_000 + (n % 200) as u16;
        Flow { client: SocketAddr::new(client, port), server: SocketAddr::new(server, 443) }
    }

    /// The same over IPv6.
    pub fn v6(n: u32) -> Flow {
        let host = |n: u32| {
            let low = u128::from(n);
            IpAddr::V6(Ipv6Addr::from(0x2001_0db8_0000_0000_0000_0000_0000_0000_u128 | low))
        };
        let port = 40_000 + (n % 200) as u16;
        let client = SocketAddr::new(host(0x1_0000 + n / 200), port);
        Flow { client, server: SocketAddr::new(host(9), 443) }
    }

    /// An IP packet of this flow around `payload`. Checksums are left empty:
    /// the engine does not look at them.
    pub fn datagram(&self, direction: Direction, payload: &[u8]) -> Vec<u8> {
        let len = u16::try_from(payload.len() + 8).expect("fits a datagram");
        let rest = [&len.to_be_bytes()[..], &[0, 0], payload].concat();
        self.packet(direction, 17, &rest)
    }

    /// The same with TCP.
    pub fn segment(&self, direction: Direction, tcp: &Tcp<'_>) -> Vec<u8> {
        let mut rest = tcp.sequence.to_be_bytes().to_vec();
        rest.extend(tcp.acknowledges.to_be_bytes());
        rest.extend([((20 + tcp.options.len()) << 2) as u8, tcp.control, 0x20, 0, 0, 0, 0, 0]);
        rest.extend(tcp.options);
        rest.resize(rest.len() + tcp.data, 7);
        self.packet(direction, 6, &rest)
    }

    /// With what follows the ports.
    fn packet(&self, direction: Direction, protocol: u8, rest: &[u8]) -> Vec<u8> {
        let (from, to) = match direction {
            Direction::Down => (self.server, self.client),
            Direction::Up => (self.client, self.server),
        };
        let len = u16::try_from(rest.len() + 4).expect("fits a packet");
        let mut packet = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let mut p = vec![0x45, 0];
                p.extend((len + 20).to_be_bytes());
                p.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
                p.extend(from.octets());
                p.extend(to.octets());
                p
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let mut p = vec![0x60, 0, 0, 0];
                p.extend(len.to_be_bytes());
                p.extend([protocol, 64]);
                p.extend(from.octets());
                p.extend(to.octets());
                p
            }
            _ => panic!("both ends have addresses of one family"),
        };
        packet.extend(from.port().to_be_bytes());
        packet.extend(to.port().to_be_bytes());
        packet.extend(rest);
        packet
    }
}

/// What a TCP segment says, beside its ports.
#[derive(Clone, Copy, Debug)]
pub struct Tcp<'a> {
    /// The first byte's number.
    pub sequence: u32,
    /// The number of the byte that is expected.
    pub acknowledges: u32,
    /// FIN, SYN and so on.
    pub control: u8,
    /// As they are on the wire, a multiple of four bytes.
    pub options: &'a [u8],
    /// How many bytes follow.
    pub data: usize,
}

/// An acknowledgement, and nothing else.
pub const ACK: Tcp<'static> =
    Tcp { sequence: 0, acknowledges: 0, control: 0x10, options: &[], data: 0 };

/// The two ends of an IPv4 or IPv6 packet with UDP and no extension headers.
pub fn flow_of(packet: &[u8], direction: Direction) -> Option<Flow> {
    let (from, to, ports) = match packet.first()? >> 4 {
        4 => {
            let at = usize::from(packet[0] & 15) * 4;
            let from = <[u8; 4]>::try_from(packet.get(12..16)?).ok()?;
            let to = <[u8; 4]>::try_from(packet.get(16..20)?).ok()?;
            (IpAddr::from(from), IpAddr::from(to), at)
        }
        6 if *packet.get(6)? == 17 => {
            let from = <[u8; 16]>::try_from(packet.get(8..24)?).ok()?;
            let to = <[u8; 16]>::try_from(packet.get(24..40)?).ok()?;
            (IpAddr::from(from), IpAddr::from(to), 40)
        }
        _ => return None,
    };
    let port = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let from = SocketAddr::new(from, port(ports)?);
    let to = SocketAddr::new(to, port(ports + 2)?);
    Some(match direction {
        Direction::Down => Flow { client: to, server: from },
        Direction::Up => Flow { client: from, server: to },
    })
}

/// A packet with a long header and `body` bytes after its length field.
pub fn long(version: u32, kind: Long, body: usize) -> Vec<u8> {
    let bits = if version == V2 { (kind as u8 + 1) & 3 } else { kind as u8 };
    let mut p = vec![0xc0 | bits << 4];
    p.extend(version.to_be_bytes());
    p.extend([8, 1, 2, 3, 4, 5, 6, 7, 8, 4, 9, 9, 9, 9]);
    if kind == Long::Initial {
        p.push(0);
    }
    if kind != Long::Retry {
        p.extend((0x4000 | body as u16).to_be_bytes());
    }
    let start = p.len();
    p.resize(start + body, 0);
    Random(body as u64).fill(&mut p[start..]);
    p
}

/// Where a packet of [`short`] carries its number.
const NUMBER_AT: usize = 9;

/// A packet with a short header, an 8-byte connection ID, and its number where
/// a simulated client can read it.
pub fn short(connection: u64, number: u64, len: usize) -> Vec<u8> {
    let mut p = vec![0; len.max(NUMBER_AT + 8 + 16)];
    Random(connection ^ number << 20).fill(&mut p);
    p[0] = 0x40 | (p[0] & 0x3f);
    p[1..9].copy_from_slice(&connection.to_be_bytes());
    set_number(&mut p, number);
    p
}

/// Gives a packet of [`short`] another number.
pub fn set_number(payload: &mut [u8], number: u64) {
    payload[NUMBER_AT..NUMBER_AT + 8].copy_from_slice(&number.to_be_bytes());
}

/// The number in a packet of [`short`].
pub fn number(payload: &[u8]) -> Option<u64> {
    if payload.first()? & 0x80 != 0 {
        return None;
    }
    Some(u64::from_be_bytes(payload.get(NUMBER_AT..NUMBER_AT + 8)?.try_into().ok()?))
}
