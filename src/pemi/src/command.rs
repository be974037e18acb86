// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line, and the commands that are not the daemon.

pub(crate) mod arguments;
pub mod ask;
pub mod bench;
pub mod check;
pub mod cli;
pub mod options;
#[cfg(feature = "replay")]
pub mod replay;
pub mod show;
