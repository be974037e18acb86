// SPDX-License-Identifier: GPL-2.0-or-later
//! Both ends of Sidekick (NSDI '24) without I/O: time and messages come in as arguments,
//! messages to send come out. What they say is in the README of [`pemi_quack`].
#![forbid(unsafe_code)]

pub use pemi_quack::Interval;

pub mod router;
pub mod sender;

/// The README's program has to compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
