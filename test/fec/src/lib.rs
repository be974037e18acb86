// SPDX-License-Identifier: GPL-2.0-or-later
//! A systematic erasure code under datagrams that know nothing of it: a shim at both
//! ends of a path.
//!
//! [`wire`] is what a packet looks like; [`encoder`] and [`decoder`] are the code, in
//! the caller's time and without I/O; [`shim`] connects them with sockets.

pub mod cli;
pub mod decoder;
pub mod encoder;
pub mod shim;
pub mod totals;
pub mod wire;
