// SPDX-License-Identifier: GPL-2.0-or-later
//! Neighbours: which address of the internet is whose on the link (ARP, neighbour discovery).

use std::net::{IpAddr, Ipv6Addr};

use crate::mac::Mac;
use crate::netlink::{Message, Question};

/// Messages: a neighbour is new or another, tell of them (RTM_NEWNEIGH, RTM_GETNEIGH).
const NEW: u16 = 28;
const GET: u16 = 30;
/// Attribute: the address asked for (NDA_DST).
const ADDRESS: u16 = 1;
/// Attribute: whose it is (NDA_LLADDR).
const MAC: u16 = 2;
/// States in which that is known: reachable, stale, to be asked again, being asked,
/// permanent (NUD_REACHABLE and so on).
const KNOWN: u16 = 0x02 | 0x04 | 0x08 | 0x10 | 0x80;

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its address.
    pub address: IpAddr,
    /// Whose it is.
    pub mac: Mac,
}

impl Neighbour {
    /// The question for all of them.
    pub fn question(sequence: u32) -> Vec<u8> {
        // struct ndmsg: family (any), padding, device, state, flags, type.
        Question::all_headed(GET, sequence, &[0; 12]).finish()
    }

    /// From an answer or an event. Nothing where it is not known whose the address is, nor of
    /// addresses for groups or of a link alone.
    pub fn read(message: &Message<'_>) -> Option<Neighbour> {
        let (head, attributes) = message.headed::<12>()?;
        let state = u16::from_ne_bytes([head[8], head[9]]);
        if message.kind != NEW || state & KNOWN == 0 {
            return None;
        }
        let (mut address, mut mac) = (None, None);
        for (kind, payload) in attributes {
            match kind {
                ADDRESS => address = read(payload),
                MAC => mac = Mac::read(payload),
                _ => {}
            }
        }
        Some(Neighbour { address: address?, mac: mac? })
    }
}

fn read(payload: &[u8]) -> Option<IpAddr> {
    let address = match payload.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(payload).ok()?),
        _ => IpAddr::from(<[u8; 16]>::try_from(payload).ok()?),
    };
    let of_link = matches!(address, IpAddr::V6(v6) if Ipv6Addr::is_unicast_link_local(&v6));
    (!of_link && !address.is_multicast() && !address.is_unspecified()).then_some(address)
}
