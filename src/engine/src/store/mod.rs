// SPDX-License-Identifier: GPL-2.0-or-later
//! Bounded memory: packets, tables, deadlines, the last few of something.

pub(crate) mod cache;
pub(crate) mod least;
pub(crate) mod recent;
pub(crate) mod table;
pub(crate) mod tickets;
pub(crate) mod timers;
