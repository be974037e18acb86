// SPDX-License-Identifier: GPL-2.0-or-later
//! Reading netlink messages of the packet queue.

use std::ops::Range;

use crate::datapath::bridge::Header;

const NETLINK_HEADER: usize = 16;
const NFNETLINK_HEADER: usize = 4;
const ATTRIBUTE_HEADER: usize = 4;
/// The two upper bits of an attribute's type are flags.
const ATTRIBUTE_TYPE: u16 = 0x3fff;
const PACKET: u16 = ((libc::NFNL_SUBSYS_QUEUE as u16) << 8) | libc::NFQNL_MSG_PACKET as u16;

/// The UDP checksum of the packet is still to be filled in by the hardware.
pub(crate) const CHECKSUM_NOT_READY: u32 = 1;
/// The packet is several in one, longer than the link allows.
pub(crate) const GSO: u32 = 2;

/// A message from the kernel.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// A packet waits for its verdict.
    Packet(Packet),
    /// The answer to a request, 0 for success or an `errno` value.
    Answer(i32),
    /// Anything else.
    Other,
}

/// A packet that waits for its verdict.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// The kernel's name for it.
    pub id: u32,
    /// The packet mark so far.
    pub mark: u32,
    /// Index of the interface it came in by, or 0.
    pub indev: u32,
    /// Index of the interface it is to leave by, or 0.
    pub outdev: u32,
    /// Where these are bridges, the indexes of the ports, or 0.
    pub ports: (u32, u32),
    /// On a bridge, the link-layer header.
    pub header: Option<Header>,
    /// [`CHECKSUM_NOT_READY`], [`GSO`].
    pub info: u32,
    /// When it came by the wall clock, in nanoseconds since 1970; 0: nobody looked.
    pub stamp: u64,
    /// Not the whole packet was copied.
    pub truncated: bool,
    /// Where the IP packet is in the buffer.
    pub payload: Range<usize>,
}

/// Reads the message at `at` and says where the next one begins; `None` at
/// the end of the buffer or at a message that makes no sense.
pub fn next(buffer: &[u8], at: usize) -> Option<(Message, usize)> {
    let len = u32_at(buffer, at)? as usize;
    let end = at.checked_add(len)?;
    if len < NETLINK_HEADER || end > buffer.len() {
        return None;
    }
    let body = at + NETLINK_HEADER;
    let message = match u16_at(buffer, at + 4)? {
        kind if kind == libc::NLMSG_ERROR as u16 => {
            Message::Answer(u32_at(buffer, body)?.cast_signed().saturating_neg())
        }
        PACKET => packet(buffer.get(..end)?, body + NFNETLINK_HEADER)
            .map_or(Message::Other, Message::Packet),
        _ => Message::Other,
    };
    Some((message, align(end)))
}

/// The number of the packet in a message of which only the beginning was read. The kernel
/// puts it first.
pub(crate) fn packet_id(head: &[u8]) -> Option<u32> {
    let value = NETLINK_HEADER + NFNETLINK_HEADER + ATTRIBUTE_HEADER;
    let kind = u16_at(head, value - ATTRIBUTE_HEADER + 2)? & ATTRIBUTE_TYPE;
    let numbered = u16_at(head, 4)? == PACKET && i32::from(kind) == libc::NFQA_PACKET_HDR;
    be32(head.get(value..)?).filter(|_| numbered)
}

/// Reads the attributes from `at` to the end. A packet without a header
/// cannot be answered, so it is none.
fn packet(buffer: &[u8], at: usize) -> Option<Packet> {
    let mut packet = Packet::default();
    let mut named = false;
    let mut tag = None;
    let mut next = at;
    while let Some((kind, data)) = attribute(buffer, next) {
        next = align(data.end);
        let value = &buffer[data.clone()];
        match kind {
            libc::NFQA_PACKET_HDR => {
                packet.id = be32(value)?;
                named = true;
            }
            libc::NFQA_MARK => packet.mark = be32(value)?,
            libc::NFQA_IFINDEX_INDEV => packet.indev = be32(value)?,
            libc::NFQA_IFINDEX_OUTDEV => packet.outdev = be32(value)?,
            libc::NFQA_IFINDEX_PHYSINDEV => packet.ports.0 = be32(value)?,
            libc::NFQA_IFINDEX_PHYSOUTDEV => packet.ports.1 = be32(value)?,
            libc::NFQA_TIMESTAMP => packet.stamp = stamp(value)?,
            libc::NFQA_SKB_INFO => packet.info = be32(value)?,
            libc::NFQA_CAP_LEN => packet.truncated = true,
            libc::NFQA_PAYLOAD => packet.payload = data,
            libc::NFQA_VLAN => tag = Some(vlan(value)?),
            libc::NFQA_L2HDR => packet.header = Header::new(value),
            _ => {}
        }
    }
    if let Some((protocol, control)) = tag {
        packet.header = packet.header.and_then(|header| header.tagged(protocol, control));
    }
    named.then_some(packet)
}

/// Seconds and microseconds, of 64 bits each.
fn stamp(value: &[u8]) -> Option<u64> {
    let (seconds, rest) = value.split_first_chunk()?;
    let micros = u64::from_be_bytes(*rest.first_chunk()?);
    let seconds = u64::from_be_bytes(*seconds).wrapping_mul(1_000_000_000);
    Some(seconds.wrapping_add(micros.wrapping_mul(1000)))
}

/// The tag that the kernel keeps beside the packet: protocol and control bits.
fn vlan(value: &[u8]) -> Option<(u16, u16)> {
    let be16 = |wanted| {
        let mut at = 0;
        loop {
            let (kind, data) = attribute(value, at)?;
            if kind == wanted {
                return value[data].first_chunk().copied().map(u16::from_be_bytes);
            }
            at = align(data.end);
        }
    };
    Some((be16(libc::NFQA_VLAN_PROTO)?, be16(libc::NFQA_VLAN_TCI)?))
}

/// The attribute at `at`: its type, and where its value is. Packets have ten of them, so it is
/// worth its place where they are read.
#[inline(always)]
fn attribute(buffer: &[u8], at: usize) -> Option<(i32, Range<usize>)> {
    let [a, b, c, d] = *buffer.get(at..)?.first_chunk()?;
    let len = usize::from(u16::from_ne_bytes([a, b]));
    let end = at + len;
    (len >= ATTRIBUTE_HEADER && end <= buffer.len()).then(|| {
        (i32::from(u16::from_ne_bytes([c, d]) & ATTRIBUTE_TYPE), at + ATTRIBUTE_HEADER..end)
    })
}

#[inline(always)]
fn align(offset: usize) -> usize {
    offset.saturating_add(3) & !3
}

#[inline(always)]
fn be32(value: &[u8]) -> Option<u32> {
    value.first_chunk().copied().map(u32::from_be_bytes)
}

fn u16_at(buffer: &[u8], at: usize) -> Option<u16> {
    buffer.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

fn u32_at(buffer: &[u8], at: usize) -> Option<u32> {
    buffer.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
        message.extend((value.len() as u16 + 4).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(value);
        message.resize(align(message.len()), 0);
    }

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut message = (16 + body.len() as u32).to_ne_bytes().to_vec();
        message.extend(kind.to_ne_bytes());
        message.extend([0; 10]);
        message.extend(body);
        message
    }

    fn packet_message() -> Vec<u8> {
        let mut body = vec![2, 0, 0x15, 0x43];
        attribute(&mut body, 1, &[0, 0, 1, 2, 8, 0, 2]);
        attribute(&mut body, 3, &[0x10, 0, 0, 1]);
        attribute(&mut body, 4, &[0, 0, 0, 0, 0x6a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
        attribute(&mut body, 5, &[0, 0, 0, 7]);
        attribute(&mut body, 6, &[0, 0, 0, 9]);
        attribute(&mut body, 14, &[0, 0, 0, 1]);
        attribute(&mut body, 10 | 0x8000, b"packet");
        message(0x0300, &body)
    }

    #[test]
    fn the_beginning_tells_the_number() {
        let buffer = packet_message();
        assert_eq!(packet_id(&buffer[..32]), Some(0x102));
        assert_eq!(packet_id(&buffer[..28]), Some(0x102));
        assert_eq!(packet_id(&buffer[..27]), None);
        // The answer to a request, and a packet without a number.
        assert_eq!(packet_id(&message(2, &[0; 20])), None);
        let mut other = buffer;
        other[22..24].copy_from_slice(&3u16.to_ne_bytes());
        assert_eq!(packet_id(&other), None);
    }

    #[test]
    fn reads_a_packet() {
        let buffer = packet_message();
        let (Message::Packet(packet), end) = next(&buffer, 0).unwrap() else { panic!("no packet") };
        assert_eq!(end, buffer.len());
        assert_eq!((packet.id, packet.mark), (0x102, 0x1000_0001));
        assert_eq!((packet.indev, packet.outdev, packet.info), (7, 9, CHECKSUM_NOT_READY));
        assert_eq!(packet.stamp, 0x6a00_0000 * 1_000_000_000 + 7000);
        assert!(!packet.truncated);
        assert_eq!(&buffer[packet.payload], b"packet");
    }

    #[test]
    fn reads_messages_one_after_another() {
        let mut buffer = packet_message();
        let second = buffer.len();
        buffer.extend(message(libc::NLMSG_ERROR as u16, &(-libc::ENOENT).to_ne_bytes()));
        buffer.extend(message(0x0999, &[]));
        assert_eq!(next(&buffer, 0).unwrap().1, second);
        let (answer, third) = next(&buffer, second).unwrap();
        assert_eq!(answer, Message::Answer(libc::ENOENT));
        let (other, end) = next(&buffer, third).unwrap();
        assert_eq!(other, Message::Other);
        assert_eq!(next(&buffer, end), None);
    }

    #[test]
    fn reads_what_bridges_add() {
        let mut body = vec![7, 0, 0x15, 0x43];
        attribute(&mut body, 1, &[0, 0, 0, 1, 8, 0, 1]);
        attribute(&mut body, 7, &[0, 0, 0, 3]);
        attribute(&mut body, 8, &[0, 0, 0, 4]);
        let mut vlan = vec![];
        attribute(&mut vlan, 2, &[0x20, 5]);
        attribute(&mut vlan, 1, &[0x81, 0]);
        attribute(&mut body, 19 | 0x8000, &vlan);
        let ethernet: Vec<u8> = (1..=12).chain([0x08, 0]).collect();
        attribute(&mut body, 20, &ethernet);
        let buffer = message(0x0300, &body);
        let (Message::Packet(packet), _) = next(&buffer, 0).unwrap() else { panic!("no packet") };
        assert_eq!(packet.ports, (3, 4));
        let header = packet.header.unwrap();
        assert_eq!(header.bytes()[10..], [11, 12, 0x81, 0, 0x20, 5, 0x08, 0]);
        for cut in 0..buffer.len() {
            let mut short = buffer[..cut].to_vec();
            if cut >= 16 {
                short[..4].copy_from_slice(&(cut as u32).to_ne_bytes());
                next(&short, 0);
            }
        }
    }

    #[test]
    fn any_cut_is_survived() {
        let buffer = packet_message();
        for cut in 0..buffer.len() {
            assert_eq!(next(&buffer[..cut], 0), None);
            let mut short = buffer[..cut].to_vec();
            if cut >= 16 {
                short[..4].copy_from_slice(&(cut as u32).to_ne_bytes());
                if let Some((Message::Packet(packet), _)) = next(&short, 0) {
                    assert!(packet.payload.end <= cut);
                }
            }
        }
    }

    #[test]
    fn a_packet_without_a_name_is_none() {
        let mut body = vec![2, 0, 0, 1];
        attribute(&mut body, 10, b"packet");
        assert_eq!(next(&message(0x0300, &body), 0).unwrap().0, Message::Other);
    }

    #[test]
    fn a_truncated_copy_is_told() {
        let mut body = vec![2, 0, 0, 1];
        attribute(&mut body, 1, &[0, 0, 0, 1, 8, 0, 2]);
        attribute(&mut body, 13, &[0, 1, 0, 0]);
        let buffer = message(0x0300, &body);
        assert!(matches!(
            next(&buffer, 0),
            Some((Message::Packet(Packet { truncated: true, .. }), _))
        ));
    }
}
