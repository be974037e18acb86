// SPDX-License-Identifier: GPL-2.0-or-later
//! What is done about a loss, and what bounds it.

pub(crate) mod budget;
pub(crate) mod ceiling;
pub(crate) mod conceal;
pub(crate) mod exact;
pub(crate) mod expected;
pub(crate) mod gap;
pub(crate) mod gaps;
pub(crate) mod governor;
pub(crate) mod legible;
pub(crate) mod missed;
pub(crate) mod naming;
pub(crate) mod pairs;
pub(crate) mod plan;
pub(crate) mod proof;
pub(crate) mod start;
pub(crate) mod tail;
pub(crate) mod unheard;
