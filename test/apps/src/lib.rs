// SPDX-License-Identifier: GPL-2.0-or-later
//! Applications that the experiments run: downloads, real-time video, connections.
//!
//! [`download`] and [`video`] say what is asked for, sent, checked and measured,
//! whatever the stack. [`goodput`] and [`rtc`] do it with quinn, and [`connect`] measures
//! how soon there is an answer, also over [`tcp`].

pub mod connect;
pub mod download;
pub mod endpoint;
pub mod goodput;
pub mod media;
pub mod options;
pub mod output;
pub mod pattern;
pub mod program;
pub mod rtc;
pub mod sidekick;
pub mod socket;
pub mod summary;
pub mod tcp;
pub mod tls;
pub mod upload;
pub mod video;

/// What both sides of every application speak.
pub const ALPN: &[u8] = b"pemi-test";
/// The name that clients ask for.
pub const HOST: &str = "pemi-test";
/// How long a connection without any packet lives, of all stacks. Stacks give up after 30 s;
/// but bursts of loss that are counted in packets outlast a sender in backoff for longer, and a
/// connection that died gives no figure.
pub const IDLE: std::time::Duration = std::time::Duration::from_secs(120);
