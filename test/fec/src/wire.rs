// SPDX-License-Identifier: GPL-2.0-or-later
//! Packets between the two shims. Numbers are big endian.
//!
//! ```text
//! source:  0 | index (1) | group (4) | the datagram
//! repair:  1 | index (1) | group (4) | sources (1) | repairs (1) | symbol
//! ```
//!
//! A group is up to [`MAX_SOURCES`] datagrams, numbered as they were sent, and the
//! repairs made of them, `sources` and `repairs` telling how many of each there are.
//! For the code each source is a symbol: its length (2), the datagram, and zeros up to
//! the length of the group's longest, rounded up to an even number of bytes.

/// Of a code.
pub const MAX_SOURCES: usize = 32;
/// Of a code.
pub const MAX_REPAIRS: usize = 32;
const SOURCE_HEADER: usize = 6;
const REPAIR_HEADER: usize = 8;
/// Before the datagram in a symbol.
const LENGTH: usize = 2;

/// A packet as it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A datagram as it was given to us.
    Source {
        /// In which group.
        group: u32,
        /// As the how manieth of it.
        index: u8,
        /// What it holds.
        datagram: &'a [u8],
    },
    /// What a lost one is computed from.
    Repair {
        /// In which group.
        group: u32,
        /// As the how manieth repair of it.
        index: u8,
        /// How many datagrams the group has.
        sources: u8,
        /// How many repairs it has.
        repairs: u8,
        /// As long as the symbols of the group's datagrams.
        symbol: &'a [u8],
    },
}

impl<'a> Packet<'a> {
    /// None: not one of ours.
    pub fn parse(bytes: &'a [u8]) -> Option<Packet<'a>> {
        let (header, rest) = bytes.split_at_checked(SOURCE_HEADER)?;
        let index = header[1];
        let group = u32::from_be_bytes(header[2..].try_into().ok()?);
        match header[0] {
            0 if usize::from(index) < MAX_SOURCES => {
                Some(Packet::Source { group, index, datagram: rest })
            }
            1 => {
                let (&[sources, repairs], symbol) = rest.split_first_chunk()?;
                let valid = (1..=MAX_SOURCES).contains(&sources.into())
                    && usize::from(repairs) <= MAX_REPAIRS
                    && index < repairs
                    && symbol.len() > LENGTH
                    && symbol.len() % 2 == 0;
                valid.then_some(Packet::Repair { group, index, sources, repairs, symbol })
            }
            _ => None,
        }
    }

    /// As it is sent.
    pub fn to_bytes(self) -> Vec<u8> {
        let header = |kind: u8, index: u8, group: u32| {
            let [a, b, c, d] = group.to_be_bytes();
            [kind, index, a, b, c, d]
        };
        match self {
            Packet::Source { group, index, datagram } => {
                [&header(0, index, group)[..], datagram].concat()
            }
            Packet::Repair { group, index, sources, repairs, symbol } => {
                [&header(1, index, group)[..], &[sources, repairs], symbol].concat()
            }
        }
    }
}

/// The largest datagram whose repair still fits into a packet of so many bytes.
pub fn largest_datagram(packet: usize) -> usize {
    (packet.saturating_sub(REPAIR_HEADER) & !1).saturating_sub(LENGTH)
}

/// How long the symbols of a group are whose longest datagram has so many bytes.
pub fn symbol_length(longest: usize) -> usize {
    (LENGTH + longest).next_multiple_of(2).max(2 * LENGTH)
}

/// A datagram as a symbol; it has to fit.
pub fn symbol(datagram: &[u8], length: usize) -> Vec<u8> {
    let mut symbol = (datagram.len() as u16).to_be_bytes().to_vec();
    symbol.extend_from_slice(datagram);
    symbol.resize(length, 0);
    symbol
}

/// The datagram of a symbol; none if it is not one.
pub fn datagram(symbol: &[u8]) -> Option<&[u8]> {
    let (length, rest) = symbol.split_first_chunk()?;
    rest.get(..u16::from_be_bytes(*length).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_they_were_written() {
        for packet in [
            Packet::Source { group: 0x0102_0304, index: 5, datagram: b"what it holds" },
            Packet::Source { group: 0, index: 0, datagram: b"" },
            Packet::Repair { group: u32::MAX, index: 1, sources: 3, repairs: 2, symbol: b"four" },
        ] {
            assert_eq!(Packet::parse(&packet.to_bytes()), Some(packet));
        }
        let source = Packet::Source { group: 0x0102_0304, index: 5, datagram: b"x" };
        assert_eq!(source.to_bytes(), [0, 5, 1, 2, 3, 4, b'x']);
    }

    #[test]
    fn what_is_not_ours_is_no_packet() {
        let repair = |index, sources, repairs, symbol: &[u8]| {
            [&[1, index, 0, 0, 0, 0, sources, repairs], symbol].concat()
        };
        assert!(Packet::parse(&repair(0, 1, 1, b"even")).is_some());
        for bytes in [
            vec![],
            vec![0; 5],
            vec![2; 20],
            vec![0, 32, 0, 0, 0, 0],
            repair(1, 1, 1, b"even"),
            repair(0, 0, 1, b"even"),
            repair(0, 33, 1, b"even"),
            repair(0, 1, 33, b"even"),
            repair(0, 1, 1, b"odd"),
            repair(0, 1, 1, b""),
        ] {
            assert_eq!(Packet::parse(&bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_repair_of_the_largest_datagram_fits() {
        for packet in [1452, 1453, 1471, 1472] {
            let longest = largest_datagram(packet);
            assert!(REPAIR_HEADER + symbol_length(longest) <= packet);
            assert!(REPAIR_HEADER + symbol_length(longest + 1) > packet);
        }
        // QUIC stacks look for no more than this, and on IPv4 they find it.
        assert!(largest_datagram(1500 - 20 - 8) >= 1452);
    }

    #[test]
    fn symbols_hold_datagrams() {
        for length in 0..50 {
            let data = vec![7; length];
            let symbol = symbol(&data, symbol_length(49));
            assert_eq!(symbol.len(), 52);
            assert_eq!(datagram(&symbol), Some(&data[..]));
        }
        assert_eq!(datagram(&[0, 3, 1, 2]), None);
    }
}
