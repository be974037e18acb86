// SPDX-License-Identifier: GPL-2.0-or-later
//! The air between radios, in virtual time and without I/O.
//!
//! [`channel`] is one Wi-Fi channel: stations hand it frames, it decides who sends
//! when, what goes into an aggregate, what is lost and repeated, and tells the fate
//! of each frame. It knows nothing of block ack sessions or of reordering: under
//! `mac80211_hwsim` the kernels do those. [`hop`] adds them, for packets that cross
//! without a kernel's 802.11. [`settings`] are the parameters, with
//! presets that other programs name.
//!
//! The same calls with the same seed give the same fates.

pub mod airtime;
pub mod channel;
pub mod errors;
pub mod frame;
pub mod hop;
pub mod probe;
mod queues;
pub mod random;
pub mod settings;

/// Nanoseconds of the caller's clock.
pub type Nanos = u64;

/// One microsecond.
pub const US: Nanos = 1_000;

/// One millisecond.
pub const MS: Nanos = 1_000_000;

/// Milliseconds as nanoseconds.
pub fn ms(value: f64) -> Nanos {
    (value * MS as f64).round() as Nanos
}
