// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's interfaces, thinly, and the checksum of its packets.

pub(crate) mod channel;
pub mod checksum;
pub(crate) mod child;
pub mod clock;
pub(crate) mod entropy;
pub(crate) mod error_queue;
pub(crate) mod file;
pub mod poll;
pub(crate) mod privileges;
pub(crate) mod reply;
pub(crate) mod sched;
pub(crate) mod seccomp;
pub(crate) mod signals;
pub mod socket;
pub(crate) mod thread;
