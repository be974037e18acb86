// SPDX-License-Identifier: GPL-2.0-or-later
//! What is measured of the way: round trips, queues, and who is congested.

pub(crate) mod belief;
pub(crate) mod bottleneck;
pub(crate) mod bursts;
pub(crate) mod counts;
pub(crate) mod cumulative;
pub(crate) mod doubt;
pub(crate) mod guard;
pub(crate) mod habit;
pub(crate) mod hop;
pub(crate) mod link;
pub(crate) mod margin;
pub(crate) mod pace;
pub(crate) mod reports;
pub(crate) mod retries;
pub(crate) mod rtt;
pub(crate) mod sender;
pub(crate) mod tolerance;
pub(crate) mod train;
pub(crate) mod transfer;
pub(crate) mod uplink;
pub(crate) mod worth;
