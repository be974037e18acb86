// SPDX-License-Identifier: GPL-2.0-or-later
//! Capture files: which format it is, and the classic one (draft-ietf-opsawg-pcap).
//! The other is in `pcapng`.

use std::io::Read;

use pemi_engine::Time;

use super::input::{Error, Input, Order};
use super::packet::{Packet, captured};
use super::pcapng::{self, Section};

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// An open capture file.
#[derive(Debug)]
pub struct Capture<R> {
    input: Input<R>,
    format: Format,
}

#[derive(Debug)]
enum Format {
    Classic { order: Order, tick_ns: u64, link: u16 },
    Next(Section),
}

impl<R: Read> Capture<R> {
    /// Reads the header of the file.
    pub fn open(reader: R) -> Result<Capture<R>, Error> {
        let mut input = Input::new(reader);
        let magic = input.array("the magic number of a capture file")?;
        let format = match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
            (pcapng::SECTION_HEADER, _) => Format::Next(Section::begin(&mut input)?),
            (MICROSECONDS, _) => classic(&mut input, Order::Little, 1_000)?,
            (_, MICROSECONDS) => classic(&mut input, Order::Big, 1_000)?,
            (NANOSECONDS, _) => classic(&mut input, Order::Little, 1)?,
            (_, NANOSECONDS) => classic(&mut input, Order::Big, 1)?,
            (_, other) => {
                let what = format!("the magic number {other:08x} is not that of pcap or pcapng");
                return Err(Error::new(0, what));
            }
        };
        Ok(Capture { input, format })
    }

    /// The next packet; `None` at the end. After an error there is no going on:
    /// nothing tells where the next packet would begin.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, Error> {
        let (order, tick_ns, link) = match &mut self.format {
            Format::Classic { order, tick_ns, link } => (*order, *tick_ns, *link),
            Format::Next(section) => return section.next_packet(&mut self.input),
        };
        let offset = self.input.offset();
        let Some(header) = self.input.array_or_end::<16>("a packet header")? else {
            return Ok(None);
        };
        let field = |at| u64::from(order.u32(&header, at));
        let time = Time::from_nanos(field(0) * 1_000_000_000 + field(4) * tick_ns);
        let captured = captured(offset + 8, order.u32(&header, 8))?;
        self.input.fill(captured, "a packet")?;
        Ok(Some(Packet { time, link, frame: self.input.bytes(), offset }))
    }
}

fn classic<R: Read>(input: &mut Input<R>, order: Order, tick_ns: u64) -> Result<Format, Error> {
    let header = input.array::<20>("the file header")?;
    let version = (order.u16(&header, 0), order.u16(&header, 2));
    if version != (2, 4) {
        let what = format!("pcap version {}.{}; 2.4 expected", version.0, version.1);
        return Err(Error::new(4, what));
    }
    // The upper half tells of frame check sequences, which the length of the IP
    // packet cuts off anyway.
    let link = order.u32(&header, 16) as u16;
    Ok(Format::Classic { order, tick_ns, link })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Puts numbers down in one of the byte orders.
    pub(crate) fn put(order: Order, fields: &[u32]) -> Vec<u8> {
        let bytes = |field: &u32| match order {
            Order::Little => field.to_le_bytes(),
            Order::Big => field.to_be_bytes(),
        };
        fields.iter().flat_map(bytes).collect()
    }

    fn header(order: Order, magic: u32) -> Vec<u8> {
        let version = if order == Order::Big { 2 << 16 | 4 } else { 4 << 16 | 2 };
        put(order, &[magic, version, 0, 0, 65_535, 0x1400_0001])
    }

    fn record(order: Order, seconds: u32, fraction: u32, frame: &[u8]) -> Vec<u8> {
        let len = frame.len() as u32;
        [put(order, &[seconds, fraction, len, len]), frame.to_vec()].concat()
    }

    /// Times and frames up to the end or an error.
    pub(crate) fn read_all(file: &[u8]) -> (Vec<(u64, Vec<u8>)>, Option<Error>) {
        let mut packets = Vec::new();
        let mut capture = match Capture::open(file) {
            Ok(capture) => capture,
            Err(error) => return (packets, Some(error)),
        };
        loop {
            match capture.next_packet() {
                Ok(Some(packet)) => packets.push((packet.time.as_nanos(), packet.frame.to_vec())),
                Ok(None) => return (packets, None),
                Err(error) => return (packets, Some(error)),
            }
        }
    }

    #[test]
    fn both_byte_orders_and_both_resolutions() {
        for order in [Order::Little, Order::Big] {
            for (magic, nanos) in [(MICROSECONDS, 7_000_005_000), (NANOSECONDS, 7_000_000_005)] {
                let mut file = header(order, magic);
                file.extend(record(order, 7, 5, b"frame"));
                file.extend(record(order, 8, 0, b""));
                let (packets, error) = read_all(&file);
                assert_eq!(error, None);
                assert_eq!(packets, [(nanos, b"frame".to_vec()), (8_000_000_000, vec![])]);
                let mut capture = Capture::open(&file[..]).unwrap();
                assert_eq!(capture.next_packet().unwrap().unwrap().link, 1);
            }
        }
    }

    #[test]
    fn cut_anywhere_it_gives_what_was_whole() {
        let mut file = header(Order::Little, MICROSECONDS);
        let begin = file.len();
        file.extend(record(Order::Little, 1, 0, b"first"));
        let second = file.len();
        file.extend(record(Order::Little, 2, 0, b"second"));
        for cut in 0..file.len() {
            let (packets, error) = read_all(&file[..cut]);
            assert_eq!(packets.len(), usize::from(cut >= second), "cut at {cut}");
            assert_eq!(error.is_none(), cut == begin || cut == second, "cut at {cut}");
            assert!(error.is_none_or(|e| e.offset <= cut as u64 && e.what.contains("expected")));
        }
    }

    #[test]
    fn nonsense_is_named() {
        let absurd = [header(Order::Big, MICROSECONDS), put(Order::Big, &[1, 1, u32::MAX, 60])];
        let (_, error) = read_all(&absurd.concat());
        assert_eq!(
            error.unwrap().to_string(),
            "offset 32: captured length 4294967295; at most 262144 expected"
        );
        let (_, error) = read_all(b"GIF89a");
        assert_eq!(
            error.unwrap().to_string(),
            "offset 0: the magic number 47494638 is not that of pcap or pcapng"
        );
        let mut old = header(Order::Little, MICROSECONDS);
        old[4] = 1;
        assert_eq!(read_all(&old).1.unwrap().what, "pcap version 1.4; 2.4 expected");
    }
}
