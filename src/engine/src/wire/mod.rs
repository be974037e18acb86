// SPDX-License-Identifier: GPL-2.0-or-later
//! What can be read on the wire: IP, UDP, TCP, and what QUIC leaves in the clear.

pub mod packet;
pub(crate) mod quic;
pub(crate) mod recognise;
pub(crate) mod segment;
pub(crate) mod spin;
