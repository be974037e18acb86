//! QUIC applications that the experiments run: downloads and real-time video.
//!
//! [`download`] and [`video`] say what is asked for, sent, checked and measured,
//! whatever the stack. [`goodput`] and [`rtc`] do it with quinn.

pub mod download;
pub mod endpoint;
pub mod goodput;
pub mod options;
pub mod output;
pub mod pattern;
pub mod program;
pub mod rtc;
pub mod socket;
pub mod video;

/// What both sides of every application speak.
pub const ALPN: &[u8] = b"pemi-test";
/// The name that clients ask for.
pub const HOST: &str = "pemi-test";
