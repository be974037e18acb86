// SPDX-License-Identifier: GPL-2.0-or-later
//! What the tests of pemi-engine share: packets, a router around the engine
//! that checks every promise on the way, and a client behind a lossy hop.

pub mod heap;
pub mod hop;
pub mod packets;
pub mod random;
pub mod router;
