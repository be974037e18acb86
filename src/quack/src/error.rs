// SPDX-License-Identifier: GPL-2.0-or-later
//! What can be wrong with a quACK, and with the messages around it.

use core::error::Error;
use core::fmt;

/// Why a quACK does not tell which packets are missing. After any of these a
/// sender can [`Quack::resync`](crate::Quack::resync).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// More packets are missing than there are sums.
    TooMany {
        /// Packets missing, as far as a count of 16 bits tells.
        missing: u16,
        /// The smaller threshold of both sides.
        threshold: u8,
    },
    /// The receiver counted more packets than were sent: duplicates or a
    /// stranger's.
    Ahead {
        /// How many more.
        by: u16,
    },
    /// The packet that the receiver got last is not in the log.
    LastUnknown,
    /// The sums are not those of a part of the log: something else was
    /// inserted, a packet was forgotten, or bits are wrong.
    NotInLog,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DecodeError::TooMany { missing, threshold } => {
                write!(f, "{missing} packets are missing, the threshold is {threshold}")
            }
            DecodeError::Ahead { by } => write!(f, "the receiver got {by} more than were sent"),
            DecodeError::LastUnknown => f.write_str("what the receiver got last is not in the log"),
            DecodeError::NotInLog => f.write_str("what is missing is not in the log"),
        }
    }
}

impl Error for DecodeError {}

/// Why bytes are not a quACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// Another number of bytes than the header says, or not even a header.
    Length {
        /// Bytes given.
        got: usize,
        /// Bytes that it takes, as far as is known.
        wanted: usize,
    },
    /// Byte 0 names a version that is not known.
    Version(u8),
    /// Byte 1 names another size of identifiers than was asked for, or one
    /// that there is not, or has a bit that means nothing.
    Format(u8),
    /// Byte 2, the threshold, is zero.
    Threshold,
    /// A sum is not below the prime.
    Sum {
        /// Which one, from 0 on.
        index: usize,
    },
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ParseError::Length { got, wanted } => write!(f, "length: {got} bytes, not {wanted}"),
            ParseError::Version(version) => write!(f, "version: {version} is unknown"),
            ParseError::Format(byte) => write!(f, "format: {byte:#04x} is not what is expected"),
            ParseError::Threshold => f.write_str("threshold: 0"),
            ParseError::Sum { index } => write!(f, "sum {index}: not below the prime"),
        }
    }
}

impl Error for ParseError {}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// Another number of bytes than the type has.
    Length {
        /// Bytes given.
        got: usize,
        /// Bytes that it takes, at least.
        wanted: usize,
    },
    /// Byte 0 names a version that is not known.
    Version(u8),
    /// Byte 1 names a type that is not known.
    Type(u8),
    /// A field has a value that means nothing.
    Field(&'static str),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            MessageError::Length { got, wanted } => write!(f, "length: {got} bytes, not {wanted}"),
            MessageError::Version(version) => write!(f, "version: {version} is unknown"),
            MessageError::Type(kind) => write!(f, "type: {kind} is unknown"),
            MessageError::Field(name) => write!(f, "{name}: not a value that it can have"),
        }
    }
}

impl Error for MessageError {}
