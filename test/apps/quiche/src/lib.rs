// SPDX-License-Identifier: GPL-2.0-or-later
//! The applications of [`pemi_apps`] with quiche on both sides.
//!
//! quiche does no I/O: [`link`] is a connection on a socket, [`client`] and [`server`]
//! are the loops, [`goodput`] and [`rtc`] what is said.

pub mod client;
pub mod config;
pub mod goodput;
pub mod link;
pub mod rtc;
pub mod server;

use std::time::Instant;

use anyhow::Result;
use quiche::Connection;

/// What one side of an application does with its connection.
pub trait Side {
    /// Called once the handshake is done, whenever something may have come or may be
    /// sent, and when the time of [`Side::next`] has come.
    fn advance(&mut self, connection: &mut Connection) -> Result<()>;

    /// When it wants to be called again, whatever comes.
    fn next(&self) -> Option<Instant> {
        None
    }
}
