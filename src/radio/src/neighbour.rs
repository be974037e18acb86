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
/// States: the neighbour has just answered, has not for a while, is being asked whether it is
/// still there (NUD_REACHABLE, NUD_STALE, NUD_PROBE).
const REACHABLE: u16 = 0x02;
const STALE: u16 = 0x04;
const PROBED: u16 = 0x10;
/// State: somebody has said so, for good (NUD_PERMANENT).
const PERMANENT: u16 = 0x80;
/// Those in which it is known whose the address is: these, and to be asked soon.
const KNOWN: u16 = REACHABLE | STALE | 0x08 | PROBED | PERMANENT;
/// Flag of a neighbour: another program looks after it (NTF_EXT_LEARNED).
const OF_OTHERS: u8 = 0x10;
/// Flag: the kernel is to say whether an order was carried out (NLM_F_ACK).
const ACKNOWLEDGE: u16 = 4;

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its address.
    pub address: IpAddr,
    /// Whose it is.
    pub mac: Mac,
    /// The number of the device behind which it is.
    pub device: u32,
    /// It has just answered.
    pub reachable: bool,
    /// That it is there was said by somebody and not found out, and asking it would undo that.
    pub fixed: bool,
}

impl Neighbour {
    /// The question for all of them.
    pub fn question(sequence: u32) -> Vec<u8> {
        // struct ndmsg: family (any), padding, device, state, flags, type.
        Question::all_headed(GET, sequence, &[0; 12]).finish()
    }

    /// The orders by which the kernel asks it at once for the address that it has: a request of ARP,
    /// or a neighbour solicitation, to it alone. One that is being asked already is asked once a
    /// second only, so it becomes stale first. It is an error if the kernel does not know it any more.
    pub fn solicitation(&self, sequences: [u32; 2]) -> [Vec<u8>; 2] {
        let (family, address) = match self.address {
            IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
            IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
        };
        let order = |state: u16, sequence| {
            let mut head = [0; 12];
            head[0] = family as u8;
            head[4..8].copy_from_slice(&self.device.to_ne_bytes());
            head[8..10].copy_from_slice(&state.to_ne_bytes());
            let order = Question::one_headed(NEW, sequence, &head).flagged(ACKNOWLEDGE);
            order.with(ADDRESS, &address).finish()
        };
        [order(STALE, sequences[0]), order(PROBED, sequences[1])]
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
        let device = u32::from_ne_bytes(*head[4..].first_chunk()?);
        let reachable = state & REACHABLE != 0;
        let fixed = state & PERMANENT != 0 || head[10] & OF_OTHERS != 0;
        Some(Neighbour { address: address?, mac: mac?, device, reachable, fixed })
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
