// SPDX-License-Identifier: GPL-2.0-or-later
//! From a captured frame to the IP packet in it. Numbers and headers are those of
//! the LINKTYPE registry (draft-ietf-opsawg-pcaplinktype, tcpdump.org/linktypes).

use super::input::Order;

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const RAW: u16 = 101;
const LOOP: u16 = 108;
const SLL: u16 = 113;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const SLL2: u16 = 276;

/// The link types that are understood, for messages.
pub const SUPPORTED: &str = "Ethernet (1), raw IP (101, 228, 229), Linux cooked (113, 276), \
                             BSD loopback (0, 108)";

const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
/// IEEE 802.1Q, 802.1ad.
const TYPES_VLAN: [u16; 2] = [0x8100, 0x88a8];
const VLAN_TAG: usize = 4;
/// An outer and an inner one.
const MAX_TAGS: usize = 2;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A whole IP packet, without the padding of short frames: as the kernel
    /// hands it to a netfilter queue.
    Ip(&'a [u8]),
    /// The beginning of an IP packet: captured with a snap length.
    Cut,
    /// Something else.
    Other,
}

/// Looks into a frame; `None` if the link type is not one of [`SUPPORTED`].
pub fn content(link: u16, frame: &[u8]) -> Option<Content<'_>> {
    let (ether_type, start) = match link {
        // The family's numbers differ from system to system; the packet tells it.
        NULL | LOOP => (None, 4),
        RAW | IPV4 | IPV6 => (None, 0),
        ETHERNET => (Some(12), 14),
        SLL => (Some(14), 16),
        SLL2 => (Some(0), 20),
        _ => return None,
    };
    let network = match ether_type {
        None => frame.get(start..),
        Some(at) => network(Order::Big.u16(frame, at), frame.get(start..).unwrap_or_default()),
    };
    Some(network.map_or(Content::Other, ip))
}

/// What follows the VLAN tags, if it is IP.
fn network(mut ether_type: u16, mut rest: &[u8]) -> Option<&[u8]> {
    for _ in 0..MAX_TAGS {
        if !TYPES_VLAN.contains(&ether_type) {
            break;
        }
        ether_type = Order::Big.u16(rest, 2);
        rest = rest.get(VLAN_TAG..)?;
    }
    [TYPE_IPV4, TYPE_IPV6].contains(&ether_type).then_some(rest)
}

fn ip(bytes: &[u8]) -> Content<'_> {
    let (header, len) = match bytes.first().map(|byte| byte >> 4) {
        Some(4) => (20, usize::from(Order::Big.u16(bytes, 2))),
        Some(6) => (40, usize::from(Order::Big.u16(bytes, 4)) + 40),
        _ => return Content::Other,
    };
    if bytes.len() < header {
        return Content::Cut;
    }
    match bytes.get(..len) {
        Some(packet) if len >= header => Content::Ip(packet),
        Some(_) => Content::Other,
        None => Content::Cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 28];
        packet.resize(28, 7);
        packet
    }

    fn ipv6() -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 8];
        packet.resize(48, 7);
        packet
    }

    fn frame(link: u16, ether_type: [u8; 2], packet: &[u8]) -> Vec<u8> {
        let header = match link {
            ETHERNET => [&[2; 12][..], &ether_type].concat(),
            SLL => [&[0, 4, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0][..], &ether_type].concat(),
            SLL2 => [&ether_type[..], &[0; 18]].concat(),
            NULL => vec![2, 0, 0, 0],
            LOOP => vec![0, 0, 0, 30],
            _ => vec![],
        };
        [&header, packet].concat()
    }

    #[test]
    fn every_link_type() {
        for link in [NULL, ETHERNET, RAW, LOOP, SLL, IPV4, IPV6, SLL2] {
            for (ether_type, packet) in [([8, 0], ipv4()), ([0x86, 0xdd], ipv6())] {
                let frame = frame(link, ether_type, &packet);
                assert_eq!(content(link, &frame), Some(Content::Ip(&packet)), "{link}");
                for cut in 0..frame.len() {
                    let content = content(link, &frame[..cut]).unwrap();
                    assert!(!matches!(content, Content::Ip(_)), "{link} cut at {cut}");
                }
            }
        }
        assert_eq!(content(127, &[0; 60]), None);
    }

    #[test]
    fn tags_and_padding_come_off() {
        let packet = ipv4();
        for tags in [&[0x81, 0, 0, 7][..], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9]] {
            let mut bytes = [&[2; 12][..], tags, &[8, 0], &packet].concat();
            bytes.extend([0; 18]);
            assert_eq!(content(ETHERNET, &bytes), Some(Content::Ip(&packet)));
        }
        let three = [&[2; 12][..], &[0x81, 0, 0, 7].repeat(3), &[8, 0], &packet].concat();
        assert_eq!(content(ETHERNET, &three), Some(Content::Other));
    }

    #[test]
    fn what_is_no_whole_ip_packet() {
        let arp = frame(ETHERNET, [8, 6], &[0; 28]);
        assert_eq!(content(ETHERNET, &arp), Some(Content::Other));
        assert_eq!(content(RAW, &[0x45; 12]), Some(Content::Cut));
        assert_eq!(content(RAW, &ipv4()[..27]), Some(Content::Cut));
        let mut short = ipv4();
        short[3] = 19;
        assert_eq!(content(RAW, &short), Some(Content::Other));
    }
}
