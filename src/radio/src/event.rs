// SPDX-License-Identifier: GPL-2.0-or-later
//! What the kernel tells without being asked.

use crate::interface::Interface;
use crate::mac::Mac;
use crate::netlink::{Message, number32};
use crate::nl80211::{DEL_INTERFACE, DEL_STATION, IFINDEX, MAC, NEW_STATION};

/// Something changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A station associated, or did so again.
    Joined {
        /// With this interface.
        interface: u32,
        /// Who.
        mac: Mac,
    },
    /// A station is no longer there.
    Left {
        /// On this interface.
        interface: u32,
        /// Who.
        mac: Mac,
    },
    /// An interface is new, or became something else.
    Interface(Interface),
    /// The interface of this number is gone.
    InterfaceGone(u32),
    /// nl80211 itself came or went: open and ask for everything anew.
    Family,
    /// There were more than the socket could keep: ask for everything anew.
    Missed,
}

impl Event {
    /// Nothing if it is about something else.
    pub fn read(message: &Message<'_>) -> Option<Event> {
        if let Some(interface) = Interface::read(message) {
            return Some(Event::Interface(interface));
        }
        let (mut index, mut mac) = (None, None);
        for (kind, payload) in message.attributes() {
            match kind {
                IFINDEX => index = number32(payload),
                MAC => mac = Mac::read(payload),
                _ => {}
            }
        }
        let interface = index?;
        match message.command()? {
            NEW_STATION => Some(Event::Joined { interface, mac: mac? }),
            DEL_STATION => Some(Event::Left { interface, mac: mac? }),
            DEL_INTERFACE => Some(Event::InterfaceGone(interface)),
            _ => None,
        }
    }
}
