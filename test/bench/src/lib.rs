// SPDX-License-Identifier: GPL-2.0-or-later
//! What the benchmarks share.

pub mod datagrams;
pub mod load;
