// SPDX-License-Identifier: GPL-2.0-or-later
//! Interfaces, and which of them have stations.

use crate::mac::Mac;
use crate::netlink::{Message, number32, text};
use crate::nl80211::{
    IFINDEX, IFNAME, IFTYPE, MAC, NEW_INTERFACE, SET_INTERFACE, WIPHY, WIPHY_FREQ,
};

/// What an interface is, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An access point, also the one of a Wi-Fi Direct group.
    AccessPoint,
    /// Stations of an access point that are in a network of their own, or are bridges
    /// (4-address frames).
    AccessPointVlan,
    /// Anything else: a client, a monitor, a mesh point.
    Other,
}

/// An interface of a radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The number of its radio (phy0 is 0).
    pub radio: Option<u32>,
    /// What it is.
    pub kind: Kind,
    /// Its address.
    pub mac: Option<Mac>,
    /// The frequency of its channel, in MHz, which tells the band.
    pub mhz: Option<u32>,
}

impl Interface {
    /// Whether stations are associated with it.
    pub fn has_stations(&self) -> bool {
        self.kind != Kind::Other
    }

    /// From an answer or an event.
    pub fn read(message: &Message<'_>) -> Option<Interface> {
        if !matches!(message.command()?, NEW_INTERFACE | SET_INTERFACE) {
            return None;
        }
        let mut index = None;
        let mut interface = Interface {
            index: 0,
            name: String::new(),
            radio: None,
            kind: Kind::Other,
            mac: None,
            mhz: None,
        };
        for (kind, payload) in message.attributes() {
            match kind {
                IFINDEX => index = number32(payload),
                IFNAME => interface.name = text(payload),
                WIPHY => interface.radio = number32(payload),
                MAC => interface.mac = Mac::read(payload),
                WIPHY_FREQ => interface.mhz = number32(payload),
                // NL80211_IFTYPE_AP and _P2P_GO, _AP_VLAN.
                IFTYPE => {
                    interface.kind = match number32(payload) {
                        Some(3 | 9) => Kind::AccessPoint,
                        Some(4) => Kind::AccessPointVlan,
                        _ => Kind::Other,
                    }
                }
                _ => {}
            }
        }
        Some(Interface { index: index?, ..interface })
    }
}
