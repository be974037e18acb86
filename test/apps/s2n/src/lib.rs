// SPDX-License-Identifier: GPL-2.0-or-later
//! [`pemi_apps::download`] with s2n-quic, whose clients pad their acknowledgements.

mod endpoint;
pub mod goodput;
mod sender;

pub use endpoint::run;
