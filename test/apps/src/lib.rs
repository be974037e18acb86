//! QUIC applications that the experiments run: [`goodput`] and [`rtc`].

pub mod common;
pub mod goodput;
pub mod pattern;
pub mod rtc;
