// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the UDP datagram or the TCP segment is in an IP packet (RFC 791, RFC 8200, RFC 768).
//!
//! This is the only reader of IP and UDP headers in the project: the engine, and the
//! daemon for directions, checksums, copies and replayed captures, get the same answer
//! for every packet.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::ops::Range;

use crate::wire::segment;
pub use crate::wire::segment::Segment;

/// The protocol numbers of TCP and UDP.
const TCP: u8 = 6;
const UDP: u8 = 17;
/// Bytes of a UDP header.
const UDP_HEADER: usize = 8;
/// IPv6 extension headers looked through before giving up. Real packets carry
/// none or one; no sender needs a longer chain than this.
const MAX_EXTENSION_HEADERS: usize = 8;

/// What a packet turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A whole UDP datagram in one IP packet.
    Udp(Udp),
    /// A whole TCP segment in one IP packet.
    Tcp(Tcp),
    /// Well-formed, but neither of these, or a fragment.
    Other,
    /// Lengths that contradict each other, or no IP packet at all.
    Malformed,
}

impl Parsed {
    /// Source and destination port.
    pub fn ports(&self) -> Option<(u16, u16)> {
        match self {
            Parsed::Udp(udp) => Some(udp.ports()),
            Parsed::Tcp(Tcp { segment, .. }) => {
                Some((segment.source_port, segment.destination_port))
            }
            Parsed::Other | Parsed::Malformed => None,
        }
    }
}

/// The TCP segment of an IP packet, and between which addresses it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tcp {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// The segment.
    pub segment: Segment,
}

impl Tcp {
    /// Source and destination, each with its port.
    pub fn ends(&self) -> (SocketAddr, SocketAddr) {
        (
            SocketAddr::new(self.source, self.segment.source_port),
            SocketAddr::new(self.destination, self.segment.destination_port),
        )
    }
}

/// The UDP datagram of an IP packet: between which ends, and where in the packet.
/// It borrows nothing, so the packet may be changed while it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    start: usize,
    len: usize,
}

impl Udp {
    /// Source and destination, each with its port.
    pub fn ends(&self) -> (SocketAddr, SocketAddr) {
        (
            SocketAddr::new(self.source, self.source_port),
            SocketAddr::new(self.destination, self.destination_port),
        )
    }

    /// Source and destination port.
    pub fn ports(&self) -> (u16, u16) {
        (self.source_port, self.destination_port)
    }

    /// Where the UDP header and the payload are in the packet.
    pub fn datagram(&self) -> Range<usize> {
        self.start..self.start + self.len
    }

    /// The payload; `packet` is the one that this was found in.
    pub fn payload<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        packet.get(self.start + UDP_HEADER..self.start + self.len).unwrap_or_default()
    }
}

/// The UDP datagram in `packet`; `None` for everything else.
pub fn find(packet: &[u8]) -> Option<Udp> {
    match parse(packet) {
        Parsed::Udp(udp) => Some(udp),
        Parsed::Tcp(_) | Parsed::Other | Parsed::Malformed => None,
    }
}

/// To whom `packet` goes, if it is a whole UDP datagram or TCP segment.
pub fn destination(packet: &[u8]) -> Option<IpAddr> {
    match parse(packet) {
        Parsed::Udp(udp) => Some(udp.destination),
        Parsed::Tcp(tcp) => Some(tcp.destination),
        Parsed::Other | Parsed::Malformed => None,
    }
}

/// The TCP segment in `packet`; `None` for everything else.
pub(crate) fn segment(packet: &[u8]) -> Option<Segment> {
    match parse(packet) {
        Parsed::Tcp(tcp) => Some(tcp.segment),
        Parsed::Udp(_) | Parsed::Other | Parsed::Malformed => None,
    }
}

/// Reads the headers of `packet`; any bytes will do. What follows the length that the IP
/// header tells, the padding of a short Ethernet frame for one, is not part of it.
pub fn parse(packet: &[u8]) -> Parsed {
    match packet.first().map(|b| b >> 4) {
        Some(4) => parse_v4(packet),
        Some(6) => parse_v6(packet),
        _ => Parsed::Malformed,
    }
}

fn parse_v4(packet: &[u8]) -> Parsed {
    let Some(header) = packet.first_chunk::<20>() else {
        return Parsed::Malformed;
    };
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header_len < 20 || total_len < header_len {
        return Parsed::Malformed;
    }
    let Some(body) = packet.get(header_len..total_len) else {
        return Parsed::Malformed;
    };
    // A first fragment has the ports but not the whole datagram, the others
    // have neither: all go by untouched.
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let protocol = header[9];
    if !matches!(protocol, TCP | UDP) || fragment {
        return Parsed::Other;
    }
    let address = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]))
    };
    match protocol {
        TCP => parse_tcp(body, address(12), address(16)),
        _ => parse_udp(header_len, body, address(12), address(16)),
    }
}

fn parse_v6(packet: &[u8]) -> Parsed {
    let Some((header, rest)) = packet.split_first_chunk::<40>() else {
        return Parsed::Malformed;
    };
    let payload_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let Some(mut body) = rest.get(..payload_len) else {
        return Parsed::Malformed;
    };
    let mut next_header = header[6];
    // And that of UDP or TCP after them.
    for _ in 0..=MAX_EXTENSION_HEADERS {
        let len = match next_header {
            TCP | UDP => {
                let address = |at: usize| {
                    let mut octets = [0; 16];
                    octets.copy_from_slice(&header[at..at + 16]);
                    IpAddr::V6(Ipv6Addr::from(octets))
                };
                if next_header == TCP {
                    return parse_tcp(body, address(8), address(24));
                }
                let start = header.len() + payload_len - body.len();
                return parse_udp(start, body, address(8), address(24));
            }
            // Hop-by-hop options, routing, destination options.
            0 | 43 | 60 => match body.get(1) {
                Some(len) => (usize::from(*len) + 1) * 8,
                None => return Parsed::Malformed,
            },
            // Fragment header: only an atomic fragment (RFC 6946) is whole.
            44 => match body.first_chunk::<8>() {
                Some(h) if u16::from_be_bytes([h[2], h[3]]) & 0xfff9 == 0 => 8,
                Some(_) => return Parsed::Other,
                None => return Parsed::Malformed,
            },
            _ => return Parsed::Other,
        };
        next_header = match body.first() {
            Some(next) => *next,
            None => return Parsed::Malformed,
        };
        body = match body.get(len..) {
            Some(rest) => rest,
            None => return Parsed::Malformed,
        };
    }
    Parsed::Other
}

/// Reads the TCP segment that `body` is. One that makes no sense is the receiver's business, as is
/// everything else that is not looked into.
fn parse_tcp(body: &[u8], source: IpAddr, destination: IpAddr) -> Parsed {
    let tcp = |segment| Parsed::Tcp(Tcp { source, destination, segment });
    segment::read(body).map_or(Parsed::Other, tcp)
}

/// Reads the UDP header with which `body`, from byte `start` of the packet on, begins.
fn parse_udp(start: usize, body: &[u8], source: IpAddr, destination: IpAddr) -> Parsed {
    let Some(header) = body.first_chunk::<UDP_HEADER>() else {
        return Parsed::Malformed;
    };
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if !(UDP_HEADER..=body.len()).contains(&len) {
        return Parsed::Malformed;
    }
    Parsed::Udp(Udp {
        source,
        destination,
        source_port: u16::from_be_bytes([header[0], header[1]]),
        destination_port: u16::from_be_bytes([header[2], header[3]]),
        start,
        len,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::wire::segment::tests::segment;
    use alloc::vec;
    use alloc::vec::Vec;

    /// An IPv4 packet with a UDP datagram.
    pub(crate) fn v4(payload: &[u8]) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
        p.extend([10, 0, 1, 2, 192, 0, 2, 9]);
        p.extend([0xc3, 0x50, 0x01, 0xbb]);
        p.extend(((payload.len() + 8) as u16).to_be_bytes());
        p.extend([0, 0]);
        p.extend(payload);
        let total = (p.len() as u16).to_be_bytes();
        p[2..4].copy_from_slice(&total);
        p
    }

    /// An IPv4 packet with a TCP segment.
    pub(crate) fn v4_tcp(segment: &[u8]) -> Vec<u8> {
        let mut p = v4(&[]);
        p.truncate(20);
        p[9] = TCP;
        p.extend(segment);
        let total = (p.len() as u16).to_be_bytes();
        p[2..4].copy_from_slice(&total);
        p
    }

    /// The same the other way.
    pub(crate) fn v4_back(payload: &[u8]) -> Vec<u8> {
        let mut p = v4(payload);
        p[12..20].rotate_left(4);
        p[20..24].rotate_left(2);
        p
    }

    fn v6(next: u8, body: &[u8]) -> Vec<u8> {
        let mut p = vec![0x60, 0, 0, 0];
        p.extend((body.len() as u16).to_be_bytes());
        p.extend([next, 64]);
        p.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        p.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        p.extend(body);
        p
    }

    const UDP_BODY: [u8; 11] = [0x01, 0xbb, 0xc3, 0x50, 0, 11, 0, 0, 7, 8, 9];

    fn payload(packet: &[u8]) -> Option<&[u8]> {
        find(packet).map(|udp| udp.payload(packet))
    }

    #[test]
    fn ipv4_with_options_and_padding() {
        let mut p = v4(b"abc");
        assert_eq!(payload(&p), Some(&b"abc"[..]));
        // Ethernet padding after the datagram is not part of it.
        p.extend([0; 10]);
        assert_eq!(payload(&p), Some(&b"abc"[..]));
        // One word of options.
        p.truncate(31);
        p[0] = 0x46;
        p[3] += 4;
        p.splice(20..20, [1, 1, 1, 0]);
        assert_eq!(payload(&p), Some(&b"abc"[..]));
    }

    #[test]
    fn ends_and_the_place_of_the_datagram() {
        let p = v4(b"abc");
        let udp = find(&p).unwrap();
        assert_eq!(alloc::format!("{:?}", udp.ends()), "(10.0.1.2:50000, 192.0.2.9:443)");
        assert_eq!((udp.ports(), udp.datagram()), ((50000, 443), 20..31));
        assert_eq!(udp.payload(&p[..30]), b"", "of another packet");
        let mut body = vec![17, 0, 0, 0, 1, 2, 3, 4];
        body.extend(UDP_BODY);
        let udp = find(&v6(44, &body)).unwrap();
        assert_eq!(alloc::format!("{:?}", udp.ends()), "([2001:db8::1]:443, [2001:db8::2]:50000)");
        assert_eq!(udp.datagram(), 48..59);
    }

    #[test]
    fn what_follows_the_ip_packet_is_no_part_of_it() {
        // A datagram that reaches into the padding contradicts the header of the packet.
        let mut p = v4(b"abc");
        p.extend([0; 10]);
        p[25] += 1;
        assert_eq!(parse(&p), Parsed::Malformed);
        let mut p = v6(17, &UDP_BODY);
        p.extend([0; 10]);
        assert_eq!(payload(&p), Some(&[7, 8, 9][..]));
        p[45] += 1;
        assert_eq!(parse(&p), Parsed::Malformed);
        // One that is shorter than its packet leaves the rest out.
        let mut p = v4(b"abc");
        p[25] -= 1;
        assert_eq!(payload(&p), Some(&b"ab"[..]));
    }

    #[test]
    fn fragments_and_other_protocols_are_passed_by() {
        let mut p = v4(b"abc");
        p[6] = 0x20;
        assert_eq!(parse(&p), Parsed::Other);
        p[6..8].copy_from_slice(&[0, 3]);
        assert_eq!(parse(&p), Parsed::Other);
        p[6..8].copy_from_slice(&[0, 0]);
        p[9] = 1;
        assert_eq!(parse(&p), Parsed::Other);
    }

    #[test]
    fn a_tcp_segment_is_found_wherever_a_datagram_is() {
        let body = segment(0x10, 5, 900, &[], 3);
        let mut fragment = v4_tcp(&body);
        let found = |packet: &[u8]| match parse(packet) {
            Parsed::Tcp(tcp) => (alloc::format!("{:?}", tcp.ends()), tcp.segment.length),
            other => panic!("{other:?}"),
        };
        let of_v4 = "(10.0.1.2:50000, 192.0.2.9:443)";
        assert_eq!(found(&fragment), (of_v4.into(), 3));
        assert_eq!(parse(&fragment).ports(), Some((50000, 443)));
        assert_eq!(find(&fragment), None);
        assert_eq!(destination(&fragment), Some([192, 0, 2, 9].into()));
        // Ethernet's padding would be data.
        fragment.extend([0; 6]);
        assert_eq!(found(&fragment), (of_v4.into(), 3));
        fragment[6] = 0x20;
        assert_eq!(parse(&fragment), Parsed::Other);
        let of_v6 = "([2001:db8::1]:50000, [2001:db8::2]:443)";
        assert_eq!(found(&v6(6, &body)), (of_v6.into(), 3));
        let mut extended = vec![6, 0, 1, 4, 0, 0, 0, 0];
        extended.extend(&body);
        assert_eq!(found(&v6(0, &extended)), (of_v6.into(), 3));
        assert_eq!(parse(&v6(6, &body[..19])), Parsed::Other);
        assert_eq!(parse(&v6(44, &[6, 0, 0, 1, 0, 0, 0, 0])), Parsed::Other);
    }

    #[test]
    fn ipv6_extension_headers() {
        assert_eq!(payload(&v6(17, &UDP_BODY)), Some(&[7, 8, 9][..]));
        let mut body = vec![60, 0, 1, 4, 0, 0, 0, 0, 17, 1];
        body.extend([0; 14]);
        body.extend(UDP_BODY);
        assert_eq!(payload(&v6(0, &body)), Some(&[7, 8, 9][..]));
        let mut atomic = vec![17, 0, 0, 0, 1, 2, 3, 4];
        atomic.extend(UDP_BODY);
        assert_eq!(payload(&v6(44, &atomic)), Some(&[7, 8, 9][..]));
        atomic[3] = 1;
        assert_eq!(parse(&v6(44, &atomic)), Parsed::Other);
        // As many as the daemon's own reader takes, and one more.
        let mut many = [0; 8].repeat(7);
        many.extend([17, 0, 0, 0, 0, 0, 0, 0]);
        many.extend(UDP_BODY);
        assert_eq!(payload(&v6(0, &many)), Some(&[7, 8, 9][..]));
        many.splice(..0, [0; 8]);
        assert_eq!(parse(&v6(0, &many)), Parsed::Other);
        let endless = [0, 0, 0, 0, 0, 0, 0, 0].repeat(20);
        assert_eq!(parse(&v6(0, &endless)), Parsed::Other);
    }

    #[test]
    fn contradicting_lengths_are_malformed() {
        let good = v4(b"abc");
        for cut in 0..good.len() {
            assert_eq!(parse(&good[..cut]), Parsed::Malformed, "cut at {cut}");
        }
        for (at, value) in [(0, 0x44), (3, 19), (25, 7), (25, 40), (0, 0x25)] {
            let mut p = good.clone();
            p[at] = value;
            assert_eq!(parse(&p), Parsed::Malformed, "byte {at} = {value}");
        }
        let good = v6(17, &UDP_BODY);
        for cut in 0..good.len() {
            assert_eq!(parse(&good[..cut]), Parsed::Malformed, "cut at {cut}");
        }
        assert_eq!(parse(&v6(0, &[17, 200, 0, 0])), Parsed::Malformed);
    }
}
