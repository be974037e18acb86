// SPDX-License-Identifier: GPL-2.0-or-later
//! The bytes of a quACK; the crate's README has them one by one.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::num::NonZeroU8;

use crate::error::ParseError;
use crate::quack::{Identifier, Quack};

/// Of the bytes that [`Quack::write`] makes and [`Quack::parse`] takes.
pub const VERSION: u8 = 1;

/// Version, format, threshold, count.
const HEADER: usize = 5;
/// In the format byte, beside the size of identifiers: there is a last one.
const HAS_LAST: u8 = 0x80;

/// The size of identifiers that a format byte names, whatever it is.
fn size(format: u8) -> u8 {
    format & !HAS_LAST
}

/// The header's fields, but for the version.
struct Header {
    format: u8,
    threshold: NonZeroU8,
    count: u16,
}

fn header(bytes: &[u8]) -> Result<(Header, &[u8]), ParseError> {
    let short = ParseError::Length { got: bytes.len(), wanted: HEADER };
    let (&[version, format, threshold, high, low], rest) =
        bytes.split_first_chunk::<HEADER>().ok_or(short)?;
    if version != VERSION {
        return Err(ParseError::Version(version));
    }
    let threshold = NonZeroU8::new(threshold).ok_or(ParseError::Threshold)?;
    Ok((Header { format, threshold, count: u16::from_be_bytes([high, low]) }, rest))
}

/// The size of the identifiers of a quACK, in bytes; other than 2, 4 or 8 if
/// it is none.
pub(crate) fn identifier_size(bytes: &[u8]) -> Result<u8, ParseError> {
    header(bytes).map(|(header, _)| size(header.format))
}

impl<I: Identifier> Quack<I> {
    /// Appends the quACK with `threshold` sums, or all if it has fewer: at
    /// most 5 + (1 + threshold) * [`Identifier::SIZE`] bytes. With fewer sums
    /// it costs fewer bytes and can tell of fewer missing packets; the
    /// receiver's bookkeeping stays the same.
    pub fn write(&self, threshold: NonZeroU8, out: &mut Vec<u8>) {
        let sums = self.sums.get(..usize::from(threshold.get())).unwrap_or(&self.sums);
        let last = if self.last.is_some() { HAS_LAST } else { 0 };
        let [high, low] = self.count.to_be_bytes();
        out.reserve(HEADER + (1 + sums.len()) * I::SIZE);
        out.extend_from_slice(&[VERSION, I::SIZE as u8 | last, sums.len() as u8, high, low]);
        for id in self.last.iter().chain(sums) {
            id.with_bytes(|bytes| out.extend_from_slice(bytes));
        }
    }

    /// Reads one; every quACK has exactly one form.
    ///
    /// # Errors
    ///
    /// Bytes that [`Quack::write`] would not make for this type of
    /// identifiers: what is wrong first of header's length, version, threshold, format,
    /// length and sums.
    pub fn parse(bytes: &[u8]) -> Result<Quack<I>, ParseError> {
        let (header, mut rest) = header(bytes)?;
        if usize::from(size(header.format)) != I::SIZE {
            return Err(ParseError::Format(header.format));
        }
        let has_last = header.format & HAS_LAST != 0;
        let ids = usize::from(header.threshold.get()) + usize::from(has_last);
        let wanted = HEADER + ids * I::SIZE;
        if bytes.len() != wanted {
            return Err(ParseError::Length { got: bytes.len(), wanted });
        }
        let mut last = None;
        if has_last && let Some((first, others)) = rest.split_at_checked(I::SIZE) {
            (last, rest) = (I::from_bytes(first), others);
        }
        let mut sums = Vec::with_capacity(ids);
        for (index, sum) in rest.chunks_exact(I::SIZE).enumerate() {
            let below = I::from_bytes(sum).filter(|sum| *sum < I::MODULUS);
            sums.push(below.ok_or(ParseError::Sum { index })?);
        }
        Ok(Quack { sums: Box::from(sums), count: header.count, last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn threshold(n: u8) -> NonZeroU8 {
        NonZeroU8::new(n).expect("not zero")
    }

    fn quack<I: Identifier>(sums: u8, ids: &[I]) -> Quack<I> {
        let mut quack = Quack::new(threshold(sums));
        ids.iter().for_each(|&id| quack.insert(id));
        quack
    }

    fn bytes<I: Identifier>(quack: &Quack<I>) -> Vec<u8> {
        let mut out = Vec::new();
        quack.write(threshold(255), &mut out);
        out
    }

    #[test]
    fn byte_by_byte() {
        let sent = quack::<u16>(2, &[0x0102, 0xffff]);
        // 0xffff is 14: 0x102 + 14, 0x102^2 + 14^2 mod 65521.
        let expected = [1, 0x82, 2, 0, 2, 0xff, 0xff, 0x01, 0x10, 0x04, 0xd7];
        assert_eq!(bytes(&sent), expected);
        assert_eq!(bytes(&quack::<u32>(1, &[])), [1, 4, 1, 0, 0, 0, 0, 0, 0]);
        let expected = [1, 0x88, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 7];
        assert_eq!(bytes(&quack::<u64>(1, &[7])), expected);
    }

    #[test]
    fn there_and_back() {
        let sent = quack::<u64>(255, &[u64::MAX, 1, 99]);
        assert_eq!(Quack::parse(&bytes(&sent)), Ok(sent.clone()));
        let mut fewer = Vec::new();
        sent.write(threshold(3), &mut fewer);
        let fewer = Quack::<u64>::parse(&fewer).expect("a quACK");
        assert_eq!((fewer.sums(), fewer.last()), (&sent.sums()[..3], sent.last()));
    }

    #[test]
    fn errors_name_the_field() {
        let good = bytes(&quack::<u32>(2, &[5, 6]));
        let error = |at: usize, byte: u8| {
            let mut bad = good.clone();
            bad[at] = byte;
            Quack::<u32>::parse(&bad).expect_err("malformed")
        };
        assert_eq!(error(0, 0), ParseError::Version(0));
        assert_eq!(error(1, 0x82), ParseError::Format(0x82));
        assert_eq!(error(1, 0xc4), ParseError::Format(0xc4));
        assert_eq!(error(1, 0x04), ParseError::Length { got: 17, wanted: 13 });
        assert_eq!(error(2, 0), ParseError::Threshold);
        assert_eq!(error(2, 3), ParseError::Length { got: 17, wanted: 21 });
        let mut bad = good.clone();
        bad[13..].fill(0xff);
        assert_eq!(Quack::<u32>::parse(&bad), Err(ParseError::Sum { index: 1 }));
        for cut in 0..good.len() {
            let error = Quack::<u32>::parse(&good[..cut]).expect_err("cut");
            assert!(error.to_string().starts_with("length: "), "{error}");
        }
        bad = good;
        bad.push(0);
        assert_eq!(Quack::<u32>::parse(&bad), Err(ParseError::Length { got: 18, wanted: 17 }));
    }
}
