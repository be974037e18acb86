// SPDX-License-Identifier: GPL-2.0-or-later
//! What a client's encrypted replies say: their sizes and their rhythm.

pub(crate) mod aim;
pub(crate) mod floor;
pub(crate) mod restless;
pub(crate) mod rhythm;
pub(crate) mod sign;
pub(crate) mod sizes;
pub(crate) mod stall;
pub(crate) mod tally;
