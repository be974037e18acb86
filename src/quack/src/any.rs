// SPDX-License-Identifier: GPL-2.0-or-later
//! For receivers that are told the size of identifiers while they run.

use alloc::vec::Vec;
use core::num::NonZeroU8;

use crate::error::ParseError;
use crate::quack::Quack;
use crate::wire::identifier_size;

/// Bits of an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 16 bits.
    Bits16,
    /// 32 bits, what the paper recommends.
    Bits32,
    /// 64 bits.
    Bits64,
}

impl Width {
    /// The width of so many bytes: 2, 4 or 8.
    pub fn from_bytes(bytes: usize) -> Option<Width> {
        match bytes {
            2 => Some(Width::Bits16),
            4 => Some(Width::Bits32),
            8 => Some(Width::Bits64),
            _ => None,
        }
    }

    /// Bytes of an identifier.
    pub fn bytes(self) -> usize {
        match self {
            Width::Bits16 => 2,
            Width::Bits32 => 4,
            Width::Bits64 => 8,
        }
    }
}

/// A [`Quack`] of any width.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AnyQuack {
    /// Of 16 bits.
    Bits16(Quack<u16>),
    /// Of 32 bits.
    Bits32(Quack<u32>),
    /// Of 64 bits.
    Bits64(Quack<u64>),
}

impl AnyQuack {
    /// Of no packets; see [`Quack::new`].
    pub fn new(width: Width, threshold: NonZeroU8) -> AnyQuack {
        match width {
            Width::Bits16 => AnyQuack::Bits16(Quack::new(threshold)),
            Width::Bits32 => AnyQuack::Bits32(Quack::new(threshold)),
            Width::Bits64 => AnyQuack::Bits64(Quack::new(threshold)),
        }
    }

    /// Bits of an identifier.
    pub fn width(&self) -> Width {
        match self {
            AnyQuack::Bits16(_) => Width::Bits16,
            AnyQuack::Bits32(_) => Width::Bits32,
            AnyQuack::Bits64(_) => Width::Bits64,
        }
    }

    /// Counts the packet whose identifier starts at `bytes`, in network order.
    /// False, and nothing happens, if there are fewer than an identifier has.
    pub fn insert(&mut self, bytes: &[u8]) -> bool {
        let found = match self {
            AnyQuack::Bits16(quack) => {
                bytes.first_chunk().map(|id| quack.insert(u16::from_be_bytes(*id)))
            }
            AnyQuack::Bits32(quack) => {
                bytes.first_chunk().map(|id| quack.insert(u32::from_be_bytes(*id)))
            }
            AnyQuack::Bits64(quack) => {
                bytes.first_chunk().map(|id| quack.insert(u64::from_be_bytes(*id)))
            }
        };
        found.is_some()
    }

    /// How many packets are in it, modulo 65,536.
    pub fn count(&self) -> u16 {
        match self {
            AnyQuack::Bits16(quack) => quack.count(),
            AnyQuack::Bits32(quack) => quack.count(),
            AnyQuack::Bits64(quack) => quack.count(),
        }
    }

    /// Nothing in it any more.
    pub fn clear(&mut self) {
        match self {
            AnyQuack::Bits16(quack) => quack.clear(),
            AnyQuack::Bits32(quack) => quack.clear(),
            AnyQuack::Bits64(quack) => quack.clear(),
        }
    }

    /// Appends its bytes; see [`Quack::write`].
    pub fn write(&self, threshold: NonZeroU8, out: &mut Vec<u8>) {
        match self {
            AnyQuack::Bits16(quack) => quack.write(threshold, out),
            AnyQuack::Bits32(quack) => quack.write(threshold, out),
            AnyQuack::Bits64(quack) => quack.write(threshold, out),
        }
    }

    /// Reads one of the width that it says it has.
    ///
    /// # Errors
    ///
    /// As of [`Quack::parse`].
    pub fn parse(bytes: &[u8]) -> Result<AnyQuack, ParseError> {
        match Width::from_bytes(usize::from(identifier_size(bytes)?)) {
            Some(Width::Bits16) => Quack::parse(bytes).map(AnyQuack::Bits16),
            Some(Width::Bits64) => Quack::parse(bytes).map(AnyQuack::Bits64),
            // What is no width at all is refused there.
            Some(Width::Bits32) | None => Quack::parse(bytes).map(AnyQuack::Bits32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_of_the_width() {
        let threshold = NonZeroU8::new(3).expect("not zero");
        for (width, last) in [(Width::Bits16, 2), (Width::Bits32, 4), (Width::Bits64, 8)] {
            let mut quack = AnyQuack::new(width, threshold);
            assert_eq!((quack.width(), width.bytes()), (width, last));
            assert!(quack.insert(&[0, 1, 2, 3, 4, 5, 6, 7, 8]));
            assert!(!quack.insert(&[1, 2, 3, 4, 5, 6, 7, 8][..last - 1]));
            assert_eq!(quack.count(), 1);
            let mut bytes = Vec::new();
            quack.write(threshold, &mut bytes);
            assert_eq!(&bytes[5..5 + last], &[0, 1, 2, 3, 4, 5, 6, 7][..last]);
            assert_eq!(AnyQuack::parse(&bytes), Ok(quack.clone()));
            bytes[1] = 0x83;
            assert_eq!(AnyQuack::parse(&bytes), Err(ParseError::Format(0x83)));
            quack.clear();
            assert_eq!(quack, AnyQuack::new(width, threshold));
        }
    }
}
