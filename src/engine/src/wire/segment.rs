// SPDX-License-Identifier: GPL-2.0-or-later
//! What the header of a TCP segment says (RFC 9293, section 3.1), as far as repairs ask for it.

/// Bytes of the header without options.
const HEADER: usize = 20;
/// Bits of the control field.
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// Options (RFC 9293, section 3.2; RFC 2018): the end of the list, one byte of nothing, and
/// selective acknowledgements. All but the first two have a length.
const END: u8 = 0;
const NOTHING: u8 = 1;
const SELECTIVE: u8 = 5;

/// A TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// The first sequence number after it.
    pub end: u32,
    /// How many it takes: its bytes, and one each for SYN and FIN.
    pub length: u32,
    /// The first sequence number that its sender has not got yet.
    pub acknowledges: u32,
    /// It does nothing but acknowledge: no data, no control bit beside ACK, so that nothing is
    /// said with it that could not wait (ECN's bits among that, RFC 3168).
    pub pure: bool,
    /// It tells of what its sender has got beyond a hole, or twice (RFC 2018, RFC 2883).
    pub selective: bool,
}

/// Reads the segment that is `body`; none if its lengths contradict each other.
pub(crate) fn read(body: &[u8]) -> Option<Segment> {
    let header = body.first_chunk::<HEADER>()?;
    let options_end = usize::from(header[12] >> 4) * 4;
    let options = body.get(HEADER..options_end)?;
    let word = |at: usize| u32::from_be_bytes([0, 1, 2, 3].map(|byte| header[at + byte]));
    let control = header[13];
    let length = (body.len() - options_end) as u32
        + u32::from(control & SYN != 0)
        + u32::from(control & FIN != 0);
    Some(Segment {
        source_port: u16::from_be_bytes([header[0], header[1]]),
        destination_port: u16::from_be_bytes([header[2], header[3]]),
        end: word(4).wrapping_add(length),
        length,
        acknowledges: word(8),
        pure: length == 0 && control == ACK,
        selective: has_selective(options),
    })
}

fn has_selective(mut options: &[u8]) -> bool {
    while let [kind, rest @ ..] = options {
        options = match *kind {
            END => return false,
            SELECTIVE => return true,
            NOTHING => rest,
            // The length counts kind and length as well.
            _ => match rest.first().and_then(|len| options.get(usize::from(*len).max(2)..)) {
                Some(next) => next,
                None => return false,
            },
        };
    }
    false
}

/// Whether a sequence number is `other` or later, as they wrap around.
pub(crate) fn reaches(number: u32, other: u32) -> bool {
    number.wrapping_sub(other).cast_signed() >= 0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// A segment between ports 50000 and 443.
    pub(crate) fn segment(
        control: u8,
        sequence: u32,
        acknowledges: u32,
        options: &[u8],
        data: usize,
    ) -> Vec<u8> {
        let mut bytes = [0xc3, 0x50, 0x01, 0xbb].to_vec();
        bytes.extend(sequence.to_be_bytes());
        bytes.extend(acknowledges.to_be_bytes());
        bytes.extend([((20 + options.len()) << 2) as u8, control, 0x20, 0, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes.resize(bytes.len() + data, 7);
        bytes
    }

    #[test]
    fn acknowledgements_and_what_they_tell() {
        let plain = read(&segment(ACK, 5, 900, &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], 0)).unwrap();
        assert!(plain.pure && !plain.selective);
        assert_eq!((plain.acknowledges, plain.end, plain.length), (900, 5, 0));
        assert_eq!((plain.source_port, plain.destination_port), (50000, 443));
        let timestamps = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        let hole = [&timestamps[..], &[1, 1, 5, 10, 0, 0, 4, 0, 0, 0, 8, 0]].concat();
        let hole = read(&segment(ACK, 5, 900, &hole, 0)).unwrap();
        assert!(hole.pure && hole.selective);
    }

    #[test]
    fn what_more_than_acknowledges_is_not_pure() {
        // FIN, SYN, RST, PSH, URG, ECE, CWR, and no ACK.
        for control in [0x11, 0x12, 0x14, 0x18, 0x30, 0x50, 0x90, 0x00, 0x04] {
            assert!(!read(&segment(control, 5, 900, &[], 0)).unwrap().pure, "{control:#x}");
        }
        let data = read(&segment(ACK, 5, 900, &[], 100)).unwrap();
        assert!(!data.pure);
        assert_eq!((data.end, data.length), (105, 100));
        let first = read(&segment(SYN, u32::MAX, 0, &[2, 4, 5, 0xb4], 0)).unwrap();
        assert_eq!((first.end, first.length), (0, 1));
        assert_eq!(read(&segment(FIN | ACK, 5, 0, &[], 3)).unwrap().end, 9);
    }

    #[test]
    fn contradicting_lengths_are_none() {
        let good = segment(ACK, 5, 900, &[1, 1, 1, 1], 0);
        assert!((0..good.len()).all(|cut| read(&good[..cut]).is_none()));
        let mut short = good;
        short[12] = 4 << 4;
        assert_eq!(read(&short), None, "a header shorter than a header");
        // Options with lengths that lead nowhere.
        for options in [&[8, 0, 0, 0][..], &[8, 200, 5, 5], &[8, 1, 1, 0], &[1, 1, 1, 8]] {
            let read = read(&segment(ACK, 0, 0, options, 0)).unwrap();
            assert!(!read.selective, "{options:?}");
        }
    }

    #[test]
    fn sequence_numbers_wrap_around() {
        assert!(reaches(7, 7) && reaches(8, 7) && !reaches(6, 7));
        assert!(reaches(3, u32::MAX - 3) && !reaches(u32::MAX - 3, 3));
    }
}
