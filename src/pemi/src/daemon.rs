// SPDX-License-Identifier: GPL-2.0-or-later
//! `pemi run`: what the main thread does, and what it answers to whoever asks.

pub mod benefit;
pub(crate) mod clients;
pub mod control;
pub(crate) mod gates;
pub(crate) mod helped;
pub mod history;
pub(crate) mod kept;
pub(crate) mod names;
pub(crate) mod object;
pub(crate) mod open;
pub mod request;
pub mod run;
pub(crate) mod seeing;
pub(crate) mod serve;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod teller;
pub mod trend;
pub mod ubus;
pub(crate) mod words;
