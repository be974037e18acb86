// SPDX-License-Identifier: GPL-2.0-or-later
//! Power-sum quACKs, as in the Sidekick paper (NSDI '24, section 3): a receiver
//! keeps a few sums over the identifiers of the packets it got; from them a
//! sender that knows what it sent computes exactly which packets are missing.
//!
//! No I/O, no clock, no `unsafe`; same results on every architecture. What it
//! costs and the bytes on the wire are in the crate's README.
//!
//! ```
//! use core::num::NonZeroU8;
//! use pemi_quack::{DecodeError, Quack};
//!
//! let threshold = NonZeroU8::new(8).expect("not zero");
//! // The sender: sums over everything sent, and a log of it.
//! let log: [u32; 6] = [0x9e37_79b9, 3, 0xffff_ff00, 77, 1 << 30, 12];
//! let mut sent = Quack::new(threshold);
//! log.iter().for_each(|&id| sent.insert(id));
//! // The receiver missed two; the last one is still under way.
//! let mut received = Quack::new(threshold);
//! [log[0], log[2], log[4]].iter().for_each(|&id| received.insert(id));
//! let mut bytes = Vec::new();
//! received.write(threshold, &mut bytes);
//!
//! let quack = Quack::parse(&bytes).expect("as it was written");
//! let missing = sent.decode(&log, &quack)?;
//! assert_eq!(missing.lost, [1, 3]);
//! assert_eq!(missing.settled, 5);
//! # Ok::<(), DecodeError>(())
//! ```
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

mod any;
mod decode;
mod error;
mod field;
mod message;
mod polynomial;
mod quack;
mod wire;

pub use any::{AnyQuack, Width};
pub use decode::{Difference, Missing, REORDERED};
pub use error::{DecodeError, MessageError, ParseError};
pub use message::{Hello, Interval, Message, PORT, PROTOCOL, Reason, Token};
pub use quack::{Identifier, Quack};
pub use wire::VERSION;
