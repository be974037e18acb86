// SPDX-License-Identifier: GPL-2.0-or-later
//! The questions, and the numbers of linux/nl80211.h that several files need.

use crate::mac::Mac;
use crate::netlink::Question;

const GET_INTERFACE: u8 = 5;
const GET_STATION: u8 = 17;

pub(crate) const SET_INTERFACE: u8 = 6;
pub(crate) const NEW_INTERFACE: u8 = 7;
pub(crate) const DEL_INTERFACE: u8 = 8;
pub(crate) const NEW_STATION: u8 = 19;
pub(crate) const DEL_STATION: u8 = 20;

/// A radio's number.
pub(crate) const WIPHY: u16 = 1;
/// An interface's number.
pub(crate) const IFINDEX: u16 = 3;
/// An interface's name.
pub(crate) const IFNAME: u16 = 4;
/// What an interface is.
pub(crate) const IFTYPE: u16 = 5;
/// An address: of a station, or of the interface if nothing else is meant.
pub(crate) const MAC: u16 = 6;
/// What is known of a station.
pub(crate) const STA_INFO: u16 = 21;
/// A channel's frequency.
pub(crate) const WIPHY_FREQ: u16 = 38;

/// Which interfaces are there?
pub fn interfaces(family: u16, sequence: u32) -> Vec<u8> {
    Question::all(family, GET_INTERFACE, sequence).finish()
}

/// Which stations has this interface?
pub fn stations(family: u16, sequence: u32, interface: u32) -> Vec<u8> {
    let question = Question::all(family, GET_STATION, sequence);
    question.with(IFINDEX, &interface.to_ne_bytes()).finish()
}

/// What of this station?
pub fn station(family: u16, sequence: u32, interface: u32, mac: Mac) -> Vec<u8> {
    let question = Question::one(family, GET_STATION, sequence);
    question.with(IFINDEX, &interface.to_ne_bytes()).with(MAC, &mac.0).finish()
}
