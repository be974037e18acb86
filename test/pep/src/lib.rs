// SPDX-License-Identifier: GPL-2.0-or-later
//! A transparent split-TCP proxy: every connection that the router's rules hand to it
//! is answered here and made anew towards the server, with the client's address.
//!
//! [`sockets`] are what is special about its sockets, [`relay`] one connection's two
//! halves, [`serve`] all of them.

pub mod cli;
pub mod relay;
pub mod serve;
pub mod sockets;
