// SPDX-License-Identifier: GPL-2.0-or-later
//! Objects on OpenWrt's ubus, without libubus: an [`owner`] publishes one and answers
//! calls, a [`caller`] calls a method of another. Values are those of [`serde_json`].

#![forbid(unsafe_code)]

pub mod blob;
pub mod blobmsg;
pub mod caller;
pub mod link;
pub mod message;
pub mod owner;
pub mod status;
