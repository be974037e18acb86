// SPDX-License-Identifier: GPL-2.0-or-later
//! Ethernet frames: what is in them, and how they are taken from a packet socket
//! and given to another.

/// The kernel's `struct virtio_net_hdr` in front of each frame of our sockets:
/// what an interface's offloads have left undone.
pub const VNET_BYTES: usize = 10;
const VNET_NEEDS_CSUM: u8 = 1;
const ETHERNET_BYTES: usize = 14;
const VLAN_BYTES: usize = 4;

/// A VLAN tag that the kernel took out of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Protocol identifier, as 0x8100.
    pub tpid: u16,
    /// Priority and VLAN number.
    pub tci: u16,
}

/// Writes to `out` what a socket of the other interface takes: header and frame.
///
/// On a wire there are neither stripped tags nor unfinished checksums, so the tag
/// goes back in and the checksum is completed. Only a frame of several segments
/// (GSO, GRO) keeps its header, for the kernel to cut it where it must.
pub fn assemble(out: &mut Vec<u8>, received: &[u8], tag: Option<VlanTag>) {
    let (header, frame) = received.split_at(VNET_BYTES);
    out.clear();
    out.extend_from_slice(header);
    let mut moved = 0;
    match tag {
        Some(tag) if frame.len() >= ETHERNET_BYTES => {
            out.extend_from_slice(&frame[..12]);
            out.extend_from_slice(&tag.tpid.to_be_bytes());
            out.extend_from_slice(&tag.tci.to_be_bytes());
            out.extend_from_slice(&frame[12..]);
            moved = VLAN_BYTES as u16;
        }
        _ => out.extend_from_slice(frame),
    }
    // Fields: flags, gso_type, then in the machine's byte order hdr_len,
    // gso_size, csum_start, csum_offset.
    let field = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let (flags, gso_type) = (header[0], header[1]);
    let (header_len, start, offset) = (field(2), field(6), field(8));
    let start = start.saturating_add(moved);
    if gso_type != 0 {
        out[2..4].copy_from_slice(&header_len.saturating_add(moved).to_ne_bytes());
        out[6..8].copy_from_slice(&start.to_ne_bytes());
        return;
    }
    out[..VNET_BYTES].fill(0);
    if flags & VNET_NEEDS_CSUM != 0 {
        complete_checksum(&mut out[VNET_BYTES..], start.into(), offset.into());
    }
}

/// The kernel has left the sum of the pseudo header in the checksum field.
fn complete_checksum(frame: &mut [u8], start: usize, offset: usize) {
    let Some(covered) = frame.get_mut(start..) else {
        return;
    };
    let mut sum: u64 = 0;
    let mut words = covered.chunks_exact(2);
    for word in &mut words {
        sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
    }
    if let [last] = words.remainder() {
        sum += u64::from(*last) << 8;
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // 0 would mean "no checksum" to UDP; 0xffff is its equal in the arithmetic.
    let checksum = match !(sum as u16) {
        0 => 0xffff,
        checksum => checksum,
    };
    if let Some(field) = covered.get_mut(offset..offset + 2) {
        field.copy_from_slice(&checksum.to_be_bytes());
    }
}

/// What is in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    /// Bytes without the link header.
    pub network_bytes: usize,
    /// The IP protocol; 0: not IP.
    pub protocol: u8,
    /// Ports of UDP and TCP, else 0.
    pub ports: (u16, u16),
    /// Bytes of the UDP payload; of others the IP packet; of others the frame
    /// without its link header.
    pub length: usize,
    /// The UDP payload; of others the payload of the IP packet or of the frame.
    pub payload: &'a [u8],
    /// Is what the experiments measure, and no upkeep of the network itself.
    pub measured: bool,
}

const ICMP: u8 = 1;
const IGMP: u8 = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

impl View<'_> {
    /// Looks into a frame; what cannot be understood is "not IP".
    pub fn of(frame: &[u8]) -> View<'_> {
        let mut at = 12;
        let mut ether_type = be16(frame, at);
        at += 2;
        while let Some(0x8100 | 0x88a8) = ether_type {
            ether_type = be16(frame, at + 2);
            at += VLAN_BYTES;
        }
        let network = frame.get(at..).unwrap_or_default();
        let ip = match ether_type {
            Some(0x0800) => ipv4(network),
            Some(0x86dd) => ipv6(network),
            _ => None,
        };
        let Some(ip) = ip else {
            return View {
                network_bytes: network.len(),
                protocol: 0,
                ports: (0, 0),
                length: network.len(),
                payload: network,
                measured: false,
            };
        };
        let kind = ip.payload.first().copied().unwrap_or(0);
        let upkeep = match ip.protocol {
            ICMP => matches!(kind, 0 | 8),
            IGMP => true,
            // Echo, multicast listener and neighbour discovery, MLDv2 reports.
            ICMPV6 => matches!(kind, 128..=137 | 143),
            _ => false,
        };
        let mut view = View {
            network_bytes: network.len(),
            protocol: ip.protocol,
            ports: (0, 0),
            length: ip.bytes,
            payload: ip.payload,
            measured: !upkeep,
        };
        if ip.first_fragment && matches!(ip.protocol, TCP | UDP) {
            if let (Some(source), Some(destination)) = (be16(ip.payload, 0), be16(ip.payload, 2)) {
                view.ports = (source, destination);
            }
            if ip.protocol == UDP && ip.payload.len() >= 8 {
                view.payload = &ip.payload[8..];
                view.length = view.payload.len();
            }
        }
        view
    }
}

struct Ip<'a> {
    protocol: u8,
    bytes: usize,
    payload: &'a [u8],
    first_fragment: bool,
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    let pair = bytes.get(at..at + 2)?;
    Some(u16::from_be_bytes([pair[0], pair[1]]))
}

/// The packet without the padding of short frames. Segments too large for the
/// length field have 0 in it.
fn trimmed(network: &[u8], length: usize, none: usize) -> &[u8] {
    match length {
        length if length == none || length > network.len() => network,
        length => &network[..length],
    }
}

fn ipv4(network: &[u8]) -> Option<Ip<'_>> {
    let packet = trimmed(network, be16(network, 2)?.into(), 0);
    let header = usize::from(packet.first()? & 0x0f) * 4;
    Some(Ip {
        protocol: *packet.get(9)?,
        bytes: packet.len(),
        payload: packet.get(header.max(20)..)?,
        first_fragment: be16(packet, 6)? & 0x1fff == 0,
    })
}

fn ipv6(network: &[u8]) -> Option<Ip<'_>> {
    let packet = trimmed(network, 40 + usize::from(be16(network, 4)?), 40);
    let mut protocol = *packet.get(6)?;
    let mut payload = packet.get(40..)?;
    let mut first_fragment = true;
    loop {
        let bytes = match protocol {
            // Hop-by-hop, routing and destination options.
            0 | 43 | 60 => 8 * (1 + usize::from(*payload.get(1)?)),
            44 => {
                first_fragment &= be16(payload, 2)? & 0xfff8 == 0;
                8
            }
            _ => break,
        };
        protocol = *payload.first()?;
        payload = payload.get(bytes..)?;
    }
    Some(Ip { protocol, bytes: packet.len(), payload, first_fragment })
}

/// Equal payloads have equal hashes, in every run and on every machine; not for
/// payloads chosen by an adversary.
pub fn hash(payload: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let step = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let mut hash = payload.len() as u64;
    let (words, rest) = payload.as_chunks::<8>();
    for word in words {
        hash = step(hash, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    hash = step(hash, u64::from_le_bytes(last));
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethernet(ether_type: u16, network: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend(ether_type.to_be_bytes());
        frame.extend(network);
        frame
    }

    fn ipv4_packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 20];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        packet[9] = protocol;
        packet.extend(payload);
        packet
    }

    fn ipv6_packet(next_header: u8, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 40];
        packet[0] = 0x60;
        packet[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
        packet[6] = next_header;
        packet.extend(payload);
        packet
    }

    /// Ports 443 and 5000.
    fn udp(payload: &[u8]) -> Vec<u8> {
        let mut datagram = vec![1, 187, 0x13, 0x88];
        datagram.extend((8 + payload.len() as u16).to_be_bytes());
        datagram.extend([0, 0]);
        datagram.extend(payload);
        datagram
    }

    #[test]
    fn sees_udp_in_both_families_and_behind_vlan_tags() {
        let v4 = ipv4_packet(UDP, &udp(b"hello"));
        let v6 = ipv6_packet(UDP, &udp(b"hello"));
        let mut padded = ethernet(0x0800, &v4);
        padded.resize(60, 0);
        let mut tagged = vec![0, 5, 0x86, 0xdd];
        tagged.extend(&v6);
        for (frame, network_bytes) in
            [(padded, 46), (ethernet(0x86dd, &v6), 53), (ethernet(0x8100, &tagged), 53)]
        {
            assert_eq!(
                View::of(&frame),
                View {
                    network_bytes,
                    protocol: 17,
                    ports: (443, 5000),
                    length: 5,
                    payload: b"hello",
                    measured: true
                }
            );
        }
    }

    #[test]
    fn upkeep_of_the_network_is_not_measured() {
        let measured =
            |ether_type, network: &[u8]| View::of(&ethernet(ether_type, network)).measured;
        assert!(!measured(0x0806, &[0; 28]));
        assert!(!measured(0x88cc, &[0; 28]));
        assert!(!measured(0x0800, &ipv4_packet(ICMP, &[8, 0, 0, 0])));
        assert!(!measured(0x0800, &ipv4_packet(ICMP, &[0, 0, 0, 0])));
        assert!(measured(0x0800, &ipv4_packet(ICMP, &[3, 3, 0, 0])));
        assert!(measured(0x0800, &ipv4_packet(TCP, &[0; 20])));
        for (kind, expected) in [(135, false), (136, false), (128, false), (2, true)] {
            assert_eq!(measured(0x86dd, &ipv6_packet(ICMPV6, &[kind, 0, 0, 0])), expected);
        }
        // A listener report comes behind a hop-by-hop header.
        let report = [&[ICMPV6, 0, 5, 2, 0, 0, 1, 0][..], &[143, 0, 0, 0]].concat();
        assert!(!measured(0x86dd, &ipv6_packet(0, &report)));
    }

    #[test]
    fn later_fragments_have_no_ports() {
        let mut fragment = ipv4_packet(UDP, &udp(b"hello"));
        fragment[7] = 1;
        let frame = ethernet(0x0800, &fragment);
        let view = View::of(&frame);
        assert_eq!((view.ports, view.length), ((0, 0), 33));
    }

    #[test]
    fn cut_frames_do_no_harm() {
        let full = ethernet(0x86dd, &ipv6_packet(0, &[UDP, 0, 0, 0, 0, 0, 0, 0, 1, 187]));
        for length in 0..full.len() {
            View::of(&full[..length]);
        }
    }

    #[test]
    fn a_checksum_left_undone_is_completed() {
        let datagram = udp(b"abc");
        let mut packet = ipv4_packet(UDP, &datagram);
        // Pseudo header with both addresses 0: protocol and length.
        packet[26..28].copy_from_slice(&(17u16 + 11).to_be_bytes());
        let mut received = vec![1, 0, 0, 0, 0, 0];
        received.extend(34u16.to_ne_bytes());
        received.extend(6u16.to_ne_bytes());
        received.extend(ethernet(0x0800, &packet));
        let mut out = Vec::new();
        assemble(&mut out, &received, None);
        assert_eq!(out[..VNET_BYTES], [0; VNET_BYTES]);
        // RFC 768: all words of pseudo header and datagram add up to 0xffff.
        let words = out[VNET_BYTES + 34..].chunks(2);
        let mut sum: u32 = 17 + 11;
        for word in words {
            sum += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
        }
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }

    #[test]
    fn a_stripped_vlan_tag_goes_back() {
        let frame = ethernet(0x0800, &ipv4_packet(UDP, &udp(b"abc")));
        let received = [&[0; VNET_BYTES][..], &frame].concat();
        let mut out = Vec::new();
        let tag = VlanTag { tpid: 0x8100, tci: 7 };
        assemble(&mut out, &received, Some(tag));
        assert_eq!(out[VNET_BYTES + 12..][..4], [0x81, 0, 0, 7]);
        assert_eq!(out[VNET_BYTES + 16..], frame[12..]);
        assert_eq!(View::of(&out[VNET_BYTES..]).payload, b"abc");
    }

    #[test]
    fn frames_of_several_segments_keep_their_header() {
        let frame = ethernet(0x0800, &ipv4_packet(TCP, &[0; 3000]));
        let mut received = vec![1, 1];
        for field in [54u16, 1448, 34, 16] {
            received.extend(field.to_ne_bytes());
        }
        received.extend(&frame);
        let mut out = Vec::new();
        assemble(&mut out, &received, None);
        assert_eq!(out, received);
        let tag = VlanTag { tpid: 0x8100, tci: 7 };
        assemble(&mut out, &received, Some(tag));
        assert_eq!(out[2..4], 58u16.to_ne_bytes());
        assert_eq!(out[6..8], 38u16.to_ne_bytes());
    }

    #[test]
    fn hashes_tell_payloads_apart() {
        let payloads: [&[u8]; 6] = [b"", b"\0", b"\0\0", b"12345678", b"12345679", b"123456780"];
        let mut hashes: Vec<u64> = payloads.iter().map(|payload| hash(payload)).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), payloads.len());
    }
}
