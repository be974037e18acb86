// SPDX-License-Identifier: GPL-2.0-or-later
//! What a schedule says is to be done.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// A quACK, now.
    pub quack: bool,
    /// Packets that were due and did not come.
    pub late: u32,
}
