// SPDX-License-Identifier: GPL-2.0-or-later
//! The firewall rules: as text, and in the kernel.

mod batch;
pub(crate) mod clean;
pub(crate) mod nft;
mod recall;
mod rest;
pub mod rules;
pub(crate) mod table;
