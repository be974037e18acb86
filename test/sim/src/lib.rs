// SPDX-License-Identifier: GPL-2.0-or-later
//! QUIC endpoints, links and the engine in virtual time: same seed, same result.

pub mod ablation;
pub mod air;
pub mod bars;
pub mod captures;
pub mod client;
pub mod counts;
pub mod endpoint;
pub mod export;
mod gathering;
pub mod host;
mod line;
pub mod links;
pub mod matrix;
pub mod quinn;
pub mod random;
pub mod ranges;
pub mod real;
pub mod report;
pub mod reports;
pub mod router;
pub mod run;
pub mod scenario;
pub mod senders;
pub mod session;
pub mod sweep;
pub mod tcp;
pub mod timeline;
pub mod trace;
pub mod trace_file;
pub mod truth;
pub mod tunables;
pub mod unseen;
pub mod why;
pub mod world;
