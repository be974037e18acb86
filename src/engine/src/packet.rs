//! Borrowed views of IP packets that carry UDP (RFC 791, RFC 8200, RFC 768).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const UDP: u8 = 17;
/// IPv6 extension headers looked through before giving up. Real packets carry
/// none or one; a chain longer than this is somebody playing.
const MAX_EXTENSION_HEADERS: usize = 8;

/// What a packet turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    Udp(Udp<'a>),
    /// Well-formed, but not an unfragmented UDP datagram.
    Other,
    /// Lengths that contradict each other, or no IP packet at all.
    Malformed,
}

/// A UDP datagram in its IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Udp<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
    pub payload: &'a [u8],
}

pub(crate) fn parse(packet: &[u8]) -> Parsed<'_> {
    match packet.first().map(|b| b >> 4) {
        Some(4) => parse_v4(packet),
        Some(6) => parse_v6(packet),
        _ => Parsed::Malformed,
    }
}

fn parse_v4(packet: &[u8]) -> Parsed<'_> {
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
    if header[9] != UDP || fragment {
        return Parsed::Other;
    }
    let address = |at: usize| {
        IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]))
    };
    parse_udp(body, address(12), address(16))
}

fn parse_v6(packet: &[u8]) -> Parsed<'_> {
    let Some((header, rest)) = packet.split_first_chunk::<40>() else {
        return Parsed::Malformed;
    };
    let payload_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let Some(mut body) = rest.get(..payload_len) else {
        return Parsed::Malformed;
    };
    let mut next_header = header[6];
    for _ in 0..MAX_EXTENSION_HEADERS {
        let len = match next_header {
            UDP => {
                let address = |at: usize| {
                    let mut octets = [0; 16];
                    octets.copy_from_slice(&header[at..at + 16]);
                    IpAddr::V6(Ipv6Addr::from(octets))
                };
                return parse_udp(body, address(8), address(24));
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

fn parse_udp(body: &[u8], source: IpAddr, destination: IpAddr) -> Parsed<'_> {
    let Some(header) = body.first_chunk::<8>() else {
        return Parsed::Malformed;
    };
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    if len < 8 {
        return Parsed::Malformed;
    }
    let Some(payload) = body.get(8..len) else {
        return Parsed::Malformed;
    };
    Parsed::Udp(Udp {
        source,
        destination,
        source_port: u16::from_be_bytes([header[0], header[1]]),
        destination_port: u16::from_be_bytes([header[2], header[3]]),
        payload,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
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

    fn payload<'a>(parsed: Parsed<'a>) -> Option<&'a [u8]> {
        match parsed {
            Parsed::Udp(udp) => Some(udp.payload),
            _ => None,
        }
    }

    #[test]
    fn ipv4_with_options_and_padding() {
        let mut p = v4(b"abc");
        assert_eq!(payload(parse(&p)), Some(&b"abc"[..]));
        // Ethernet padding after the datagram is not part of it.
        p.extend([0; 10]);
        assert_eq!(payload(parse(&p)), Some(&b"abc"[..]));
        // One word of options.
        p.truncate(31);
        p[0] = 0x46;
        p[3] += 4;
        p.splice(20..20, [1, 1, 1, 0]);
        assert_eq!(payload(parse(&p)), Some(&b"abc"[..]));
    }

    #[test]
    fn fragments_and_other_protocols_are_passed_by() {
        let mut p = v4(b"abc");
        p[6] = 0x20;
        assert_eq!(parse(&p), Parsed::Other);
        p[6..8].copy_from_slice(&[0, 3]);
        assert_eq!(parse(&p), Parsed::Other);
        p[6..8].copy_from_slice(&[0, 0]);
        p[9] = 6;
        assert_eq!(parse(&p), Parsed::Other);
    }

    #[test]
    fn ipv6_extension_headers() {
        assert_eq!(payload(parse(&v6(17, &UDP_BODY))), Some(&[7, 8, 9][..]));
        let mut body = vec![60, 0, 1, 4, 0, 0, 0, 0, 17, 1];
        body.extend([0; 14]);
        body.extend(UDP_BODY);
        assert_eq!(payload(parse(&v6(0, &body))), Some(&[7, 8, 9][..]));
        let mut atomic = vec![17, 0, 0, 0, 1, 2, 3, 4];
        atomic.extend(UDP_BODY);
        assert_eq!(payload(parse(&v6(44, &atomic))), Some(&[7, 8, 9][..]));
        atomic[3] = 1;
        assert_eq!(parse(&v6(44, &atomic)), Parsed::Other);
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
