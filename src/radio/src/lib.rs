// SPDX-License-Identifier: GPL-2.0-or-later
//! What the access points of this machine know of their stations: who is there, and how
//! many packets were lost on the air after all retries.
//!
//! [`radio`] and [`route`] ask the kernel and hear events, over [`kernel`]'s sockets. Everything
//! else is without I/O and without a clock: [`netlink`], [`family`], [`nl80211`], [`interface`],
//! [`station`], [`event`], [`link`] and [`neighbour`] read and write messages, [`counting`] and
//! [`meter`] make losses of what drivers count, [`history`] and [`stations`] remember them,
//! [`schedule`] says when to ask, [`solicit`] when a client is to be asked for its address. Times are durations since a moment of the caller's choice, which never go back.

#![deny(unsafe_code)]

pub mod counting;
pub mod event;
pub mod family;
pub mod history;
pub mod interface;
pub mod kernel;
pub mod link;
pub mod mac;
pub mod meter;
pub mod neighbour;
pub mod netlink;
pub mod nl80211;
pub mod radio;
pub mod route;
pub mod schedule;
pub mod solicit;
pub mod station;
pub mod stations;
