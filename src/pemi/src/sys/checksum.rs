// SPDX-License-Identifier: GPL-2.0-or-later
//! The checksum of UDP, where hardware was to fill it in, and that of ICMP.

use std::net::IpAddr;

use pemi_engine::packet::Udp;

/// The protocol number, a part of the pseudo header (RFC 768).
const UDP: u64 = 17;
/// Where the checksum is in the UDP header.
const CHECKSUM: usize = 6;

/// Fills in the checksum of the datagram that was found in `packet`.
pub fn fill(packet: &mut [u8], udp: &Udp) {
    let Some(datagram) = packet.get_mut(udp.datagram()) else { return };
    datagram[CHECKSUM..CHECKSUM + 2].fill(0);
    let checksum = match fold(pseudo_header(udp) + sum(datagram)) {
        // Zero would say that there is none.
        0 => 0xffff,
        checksum => checksum,
    };
    datagram[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// The sum over what the checksum covers beside the datagram.
fn pseudo_header(udp: &Udp) -> u64 {
    let address = |address| match address {
        IpAddr::V4(ip) => sum(&ip.octets()),
        IpAddr::V6(ip) => sum(&ip.octets()),
    };
    address(udp.source) + address(udp.destination) + UDP + udp.datagram().len() as u64
}

/// The Internet checksum (RFC 1071) of a message that begins at an even byte.
pub fn internet(message: &[u8]) -> u16 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use pemi_engine::packet::find;

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

    /// Hop-by-hop options, or an atomic fragment (RFC 6946).
    const EXTENSIONS: [(u8, [u8; 8]); 2] =
        [(0, [17, 0, 1, 4, 0, 0, 0, 0]), (44, [17, 0, 0, 0, 1, 2, 3, 4])];

    fn v6(extension: Option<(u8, [u8; 8])>, payload: &[u8]) -> Vec<u8> {
        let len = 8 + payload.len() as u16;
        let next = extension.map_or(17, |(next, _)| next);
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 64];
        packet[4..6]
            .copy_from_slice(&(len + if extension.is_some() { 8 } else { 0 }).to_be_bytes());
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        packet.extend(extension.iter().flat_map(|(_, header)| header));
        packet.extend([0xc3, 0x50, 0x01, 0xbb]);
        packet.extend(len.to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        packet
    }

    fn verify(packet: &[u8]) -> bool {
        let datagram = find(packet).unwrap();
        let addresses = if packet[0] >> 4 == 4 { 12..20 } else { 8..40 };
        let pseudo = sum(&packet[addresses]) + 17 + datagram.datagram().len() as u64;
        fold(pseudo + sum(&packet[datagram.datagram()])) == 0
    }

    #[test]
    fn known_checksum() {
        // The example of RFC 1071, section 3.
        assert_eq!(internet(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    }

    #[test]
    fn checksums_verify() {
        for payload in [&b"pemi!"[..], b"", b"even", &[0xff; 1401]] {
            let [options, fragment] = EXTENSIONS.map(|extension| v6(Some(extension), payload));
            for mut packet in [v4(payload), v6(None, payload), options, fragment] {
                // Padding is no part of the datagram.
                packet.extend([0xff; 3]);
                let datagram = find(&packet).unwrap();
                assert!(!verify(&packet));
                fill(&mut packet, &datagram);
                assert!(verify(&packet));
            }
        }
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_ones() {
        let mut packet = v4(&[0, 0]);
        let datagram = find(&packet).unwrap();
        fill(&mut packet, &datagram);
        let wanted: [u8; 2] = packet[26..28].try_into().unwrap();
        // A payload equal to the checksum makes the checksum of the whole zero.
        packet[28..30].copy_from_slice(&wanted);
        fill(&mut packet, &datagram);
        assert_eq!(packet[26..28], [0xff, 0xff]);
        assert!(verify(&packet));
    }
}
