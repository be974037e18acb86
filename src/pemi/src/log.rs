// SPDX-License-Identifier: GPL-2.0-or-later
//! What happened, as log lines and events, and the thread that writes them.

pub(crate) mod events;
pub(crate) mod item;
pub(crate) mod limit;
pub(crate) mod logger;
pub(crate) mod writer;
