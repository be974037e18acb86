// SPDX-License-Identifier: GPL-2.0-or-later
//! The daemon and command line of PEMI. All I/O lives here; what to do with the
//! packets is the business of [`pemi_engine`].

pub mod command;
pub mod config;
pub mod daemon;
pub mod datapath;
pub mod firewall;
pub(crate) mod log;
pub mod radio;
pub mod sidekick;
pub mod sys;
