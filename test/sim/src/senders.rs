// SPDX-License-Identifier: GPL-2.0-or-later
//! Congestion controllers of senders that quinn-proto does not have, as models: what a router in the
//! way of their packets notices of them, and no more.

mod bbr3;
mod hystart;
mod rate;
mod rollback;

pub use bbr3::Bbr3Config;
pub use hystart::HystartConfig;
pub use rollback::RollbackConfig;

/// Bytes of a packet that windows are counted in (RFC 9002, section 7.2).
pub(crate) const PACKET: u64 = 1200;
/// The initial window (RFC 9002, section 7.2).
const INITIAL_WINDOW: u64 = 10 * PACKET;
