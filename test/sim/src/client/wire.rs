// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts of QUIC's wire format (RFC 9000) that a receiver needs.

use bytes::BufMut;

/// A reader that gives nothing instead of panicking.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// So many bytes.
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// One byte.
    pub fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    /// A variable-length integer (section 16).
    pub fn varint(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let rest = self.take((1 << (first >> 6)) - 1)?;
        Some(rest.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Bytes with a variable-length integer for their length in front.
    pub fn with_len(&mut self) -> Option<&'a [u8]> {
        let len = self.varint()?;
        self.take(usize::try_from(len).ok()?)
    }
}

/// Appends a variable-length integer.
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..0x40 => out.put_u8(value as u8),
        0x40..0x4000 => out.put_u16(value as u16 | 0x4000),
        0x4000..0x4000_0000 => out.put_u32(value as u32 | 0x8000_0000),
        _ => out.put_u64(value | 0xc000_0000_0000_0000),
    }
}

/// Which keys a packet is protected with; also its packet number space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Initial,
    Handshake,
    Data,
}

/// A packet with its protection removed.
#[derive(Debug)]
pub struct Packet<'a> {
    /// Its space.
    pub level: Level,
    /// The sender's connection ID, if the packet has one.
    pub source: Option<&'a [u8]>,
    /// Its number, truncated, and the bytes of it.
    pub number: u64,
    /// How many bytes of the number were sent.
    pub number_len: usize,
    /// Its frames.
    pub frames: &'a [u8],
    /// The whole number by the end of its authentication tag ([`crate::session`]).
    pub authentic: u64,
}

/// The packets of a datagram whose connection IDs are 8 bytes long.
pub fn packets(datagram: &[u8], tag_len: usize) -> Vec<Packet<'_>> {
    let mut packets = Vec::new();
    let mut reader = Reader(datagram);
    while let Some(packet) = packet(&mut reader, tag_len) {
        packets.push(packet);
    }
    packets
}

fn packet<'a>(reader: &mut Reader<'a>, tag_len: usize) -> Option<Packet<'a>> {
    let first = reader.byte()?;
    let number_len = usize::from(first & 3) + 1;
    let (level, source, body) = if first & 0x80 == 0 {
        reader.take(8)?;
        let rest = reader.0;
        reader.0 = &[];
        (Level::Data, None, rest)
    } else {
        reader.take(4)?;
        let len = usize::from(reader.byte()?);
        reader.take(len)?;
        let len = usize::from(reader.byte()?);
        let source = reader.take(len)?;
        let level = match first >> 4 & 3 {
            0 => Level::Initial,
            2 => Level::Handshake,
            _ => return None,
        };
        if level == Level::Initial {
            reader.with_len()?;
        }
        (level, Some(source), reader.with_len()?)
    };
    let mut body = Reader(body);
    let number = body.take(number_len)?.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
    let authentic = body.0.last_chunk().copied().map_or(0, u64::from_be_bytes);
    let frames = body.0.get(..body.0.len().checked_sub(tag_len)?)?;
    Some(Packet { level, source, number, number_len, frames, authentic })
}

/// The whole packet number (RFC 9000, appendix A.3).
pub fn expand(expected: u64, truncated: u64, len: usize) -> u64 {
    let window = 1u64 << (8 * len);
    let candidate = expected & !(window - 1) | truncated;
    if candidate + window / 2 <= expected {
        candidate + window
    } else if candidate > expected + window / 2 && candidate >= window {
        candidate - window
    } else {
        candidate
    }
}

/// A frame that a receiver heeds; the others are skipped.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// PADDING: asks for nothing.
    Padding,
    /// Ranges of numbers, largest first, both ends included.
    Ack(Vec<(u64, u64)>),
    Crypto {
        offset: u64,
        data: &'a [u8],
    },
    Stream {
        id: u64,
        offset: u64,
        data: &'a [u8],
        last: bool,
    },
    HandshakeDone,
    Close,
    /// Wants to be acknowledged, and nothing else.
    Other,
}

/// Takes one frame (RFC 9000, section 19).
pub fn frame<'a>(reader: &mut Reader<'a>) -> Option<Frame<'a>> {
    let kind = reader.varint()?;
    let varints = match kind {
        0x00 => return Some(Frame::Padding),
        0x02 | 0x03 => return ack(reader, kind == 0x03),
        0x06 => {
            let offset = reader.varint()?;
            return Some(Frame::Crypto { offset, data: reader.with_len()? });
        }
        0x07 => {
            reader.with_len()?;
            0
        }
        0x08..=0x0f => return stream(reader, kind as u8),
        0x18 => {
            reader.varint()?;
            reader.varint()?;
            let len = usize::from(reader.byte()?);
            reader.take(len + 16)?;
            0
        }
        0x1a | 0x1b => {
            reader.take(8)?;
            0
        }
        0x1c | 0x1d => return Some(Frame::Close),
        0x1e => return Some(Frame::HandshakeDone),
        0x01 => 0,
        0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => 1,
        0x05 | 0x11 | 0x15 => 2,
        0x04 => 3,
        _ => return None,
    };
    for _ in 0..varints {
        reader.varint()?;
    }
    Some(Frame::Other)
}

fn ack<'a>(reader: &mut Reader<'_>, ecn: bool) -> Option<Frame<'a>> {
    let largest = reader.varint()?;
    reader.varint()?;
    let count = reader.varint()?;
    let mut start = largest.checked_sub(reader.varint()?)?;
    let mut ranges = vec![(start, largest)];
    for _ in 0..count {
        let end = start.checked_sub(reader.varint()? + 2)?;
        start = end.checked_sub(reader.varint()?)?;
        ranges.push((start, end));
    }
    if ecn {
        for _ in 0..3 {
            reader.varint()?;
        }
    }
    Some(Frame::Ack(ranges))
}

fn stream<'a>(reader: &mut Reader<'a>, kind: u8) -> Option<Frame<'a>> {
    let id = reader.varint()?;
    let offset = if kind & 4 != 0 { reader.varint()? } else { 0 };
    let data = if kind & 2 != 0 { reader.with_len()? } else { std::mem::take(&mut reader.0) };
    Some(Frame::Stream { id, offset, data, last: kind & 1 != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_the_rfc() {
        // RFC 9000, appendix A.1.
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ] {
            assert_eq!(Reader(bytes).varint(), Some(value));
            let mut written = Vec::new();
            put_varint(&mut written, value);
            assert_eq!(written, bytes);
        }
    }

    #[test]
    fn numbers_of_the_rfc() {
        assert_eq!(expand(0xa82f_30ea + 1, 0x9b32, 2), 0xa82f_9b32);
        assert_eq!(expand(256, 0xff, 1), 255);
        assert_eq!(expand(0, 0, 1), 0);
    }

    #[test]
    fn acknowledged_ranges() {
        let mut bytes = vec![0x02];
        for value in [20, 0, 1, 4, 1, 2] {
            put_varint(&mut bytes, value);
        }
        let read = frame(&mut Reader(&bytes));
        assert_eq!(read, Some(Frame::Ack(vec![(16, 20), (11, 13)])));
    }
}
