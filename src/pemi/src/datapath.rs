// SPDX-License-Identifier: GPL-2.0-or-later
//! The way of the packets: capture, engine, copies, and the guard beside them.

pub mod bridge;
pub(crate) mod capture;
pub(crate) mod direction;
pub(crate) mod error;
pub(crate) mod guard;
pub mod inject;
pub mod nfqueue;
pub(crate) mod outlet;
pub mod probe;
pub(crate) mod reporter;
pub(crate) mod teller;
pub(crate) mod ways;
pub(crate) mod worker;
pub(crate) mod workers;
