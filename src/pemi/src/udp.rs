//! As much of IP and UDP as the daemon itself has to know: the ports, to tell
//! directions apart, and the checksum, where hardware was to fill it in.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
/// IPv6 extension headers that are skipped: hop-by-hop, routing, destination.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
/// More of them than any honest packet has.
const MAX_EXTENSIONS: usize = 8;

/// Where the UDP datagram of an unfragmented IP packet is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The addresses, which the checksum covers.
    addresses: Range<usize>,
    /// UDP header and payload.
    udp: Range<usize>,
    /// Source and destination port.
    pub ports: (u16, u16),
}

impl Datagram {
    /// Source and destination in `packet`, the one it was found in.
    pub fn ends(&self, packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
        let (source, destination) = self.ports;
        let addresses = packet.get(self.addresses.clone())?;
        let (from, to) = addresses.split_at(addresses.len() / 2);
        Some((SocketAddr::new(ip(from)?, source), SocketAddr::new(ip(to)?, destination)))
    }

    /// Where its payload is.
    pub fn payload(&self) -> Range<usize> {
        self.udp.start + UDP_HEADER..self.udp.end
    }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = |bytes| <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    let v6 = |bytes| <[u8; 16]>::try_from(bytes).map(IpAddr::from);
    v4(bytes).or_else(|_| v6(bytes)).ok()
}

/// Finds the UDP datagram in an IP packet; `None` for everything else.
pub fn find(packet: &[u8]) -> Option<Datagram> {
    let (addresses, start) = match packet.first()? >> 4 {
        4 => {
            let header = usize::from(packet[0] & 15) * 4;
            let fragment = u16_at(packet, 6)? & 0x3fff;
            if header < 20 || fragment != 0 || *packet.get(9)? != UDP {
                return None;
            }
            (12..20, header)
        }
        6 => {
            let mut next = *packet.get(6)?;
            let mut at = 40;
            let mut left = MAX_EXTENSIONS;
            while EXTENSIONS.contains(&next) {
                left = left.checked_sub(1)?;
                next = *packet.get(at)?;
                at += (usize::from(*packet.get(at + 1)?) + 1) * 8;
            }
            if next != UDP {
                return None;
            }
            (8..40, at)
        }
        _ => return None,
    };
    let ports = (u16_at(packet, start)?, u16_at(packet, start + 2)?);
    let len = usize::from(u16_at(packet, start + 4)?);
    let udp = start..start + len;
    (len >= UDP_HEADER && udp.end <= packet.len()).then_some(Datagram { addresses, udp, ports })
}

/// Fills in the checksum.
pub fn fill_checksum(packet: &mut [u8], datagram: &Datagram) {
    let at = datagram.udp.start + 6;
    packet[at..at + 2].fill(0);
    let pseudo =
        sum(&packet[datagram.addresses.clone()]) + u64::from(UDP) + datagram.udp.len() as u64;
    let checksum = match fold(pseudo + sum(&packet[datagram.udp.clone()])) {
        // Zero would say that there is none.
        0 => 0xffff,
        checksum => checksum,
    };
    packet[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// The Internet checksum (RFC 1071) of a message that begins at an even byte.
pub fn checksum(message: &[u8]) -> u16 {
    fold(sum(message))
}

fn sum(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks_exact(2);
    let last = pairs.remainder().first().map_or(0, |byte| u64::from(*byte) << 8);
    pairs.map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]]))).sum::<u64>() + last
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn u16_at(packet: &[u8], at: usize) -> Option<u16> {
    packet.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 192.0.2.1:443 to 192.0.2.2:50000 with a wrong checksum.
    fn v4(payload: &[u8]) -> Vec<u8> {
        let len = 8 + payload.len() as u16;
        let mut packet =
            vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        packet[2..4].copy_from_slice(&(20 + len).to_be_bytes());
        packet.extend([0x01, 0xbb, 0xc3, 0x50]);
        packet.extend(len.to_be_bytes());
        packet.extend([0xde, 0xad]);
        packet.extend(payload);
        packet
    }

    fn v6(extension: bool, payload: &[u8]) -> Vec<u8> {
        let len = 8 + payload.len() as u16;
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, if extension { 0 } else { 17 }, 64];
        packet[4..6].copy_from_slice(&(len + if extension { 8 } else { 0 }).to_be_bytes());
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        if extension {
            packet.extend([17, 0, 1, 4, 0, 0, 0, 0]);
        }
        packet.extend([0xc3, 0x50, 0x01, 0xbb]);
        packet.extend(len.to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        packet
    }

    fn verify(packet: &[u8]) -> bool {
        let datagram = find(packet).unwrap();
        let pseudo = sum(&packet[datagram.addresses.clone()]) + 17 + datagram.udp.len() as u64;
        fold(pseudo + sum(&packet[datagram.udp])) == 0
    }

    #[test]
    fn known_checksum() {
        // The example of RFC 1071, section 3.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn checksums_verify() {
        for payload in [&b"pemi!"[..], b"", b"even", &[0xff; 1401]] {
            for mut packet in [v4(payload), v6(false, payload), v6(true, payload)] {
                let datagram = find(&packet).unwrap();
                assert!(!verify(&packet));
                fill_checksum(&mut packet, &datagram);
                assert!(verify(&packet));
            }
        }
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_ones() {
        let mut packet = v4(&[0, 0]);
        let datagram = find(&packet).unwrap();
        fill_checksum(&mut packet, &datagram);
        let wanted: [u8; 2] = packet[26..28].try_into().unwrap();
        // A payload equal to the checksum makes the checksum of the whole zero.
        packet[28..30].copy_from_slice(&wanted);
        fill_checksum(&mut packet, &datagram);
        assert_eq!(packet[26..28], [0xff, 0xff]);
        assert!(verify(&packet));
    }

    #[test]
    fn ports_are_found() {
        assert_eq!(find(&v4(b"")).unwrap().ports, (443, 50000));
        assert_eq!(find(&v6(false, b"")).unwrap().ports, (50000, 443));
        assert_eq!(find(&v6(true, b"x")).unwrap().ports, (50000, 443));
    }

    #[test]
    fn ends_and_payload_are_found() {
        let ends = |packet: &[u8]| {
            let datagram = find(packet).unwrap();
            assert_eq!(packet[datagram.payload()], *b"payload");
            let (source, destination) = datagram.ends(packet).unwrap();
            format!("{source} {destination}")
        };
        assert_eq!(ends(&v4(b"payload")), "192.0.2.1:443 192.0.2.2:50000");
        assert_eq!(ends(&v6(true, b"payload")), "[2001:db8::1]:50000 [2001:db8::2]:443");
    }

    #[test]
    fn what_is_not_whole_udp_is_none() {
        let whole = v4(b"payload");
        for cut in 0..whole.len() {
            assert_eq!(find(&whole[..cut]), None);
        }
        let whole = v6(true, b"payload");
        for cut in 0..whole.len() {
            assert_eq!(find(&whole[..cut]), None);
        }
        let mut tcp = v4(b"x");
        tcp[9] = 6;
        assert_eq!(find(&tcp), None);
        let mut fragment = v4(b"x");
        fragment[6] = 0x20;
        assert_eq!(find(&fragment), None);
        let mut endless = vec![0x60, 0, 0, 0, 0, 0, 0, 64];
        endless.resize(400, 0);
        assert_eq!(find(&endless), None);
    }
}
