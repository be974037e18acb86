//! Both ends of Sidekick (NSDI '24) without I/O: time and messages come in as arguments,
//! messages to send come out. What they say is in the README of [`pemi_quack`].
#![forbid(unsafe_code)]

pub use pemi_quack::Interval;

pub mod router;
pub mod sender;
