// SPDX-License-Identifier: GPL-2.0-or-later
//! What the quACK is tested against and measured beside: the definition,
//! written down without any thought of speed, and set differences.

pub mod oracle;
pub mod plain;
pub mod scene;
