// SPDX-License-Identifier: GPL-2.0-or-later
//! What of the Wi-Fi guest is not Linux': the air between the radios of mac80211_hwsim,
//! and a stream of packets that measures it.

pub mod frame80211;
pub mod genl;
pub mod hwsim;
pub mod log;
pub mod medium;
pub mod txq;
