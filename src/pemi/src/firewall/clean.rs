// SPDX-License-Identifier: GPL-2.0-or-later
//! The sets of clean clients in our table: what is in them, and the message that says so.
//!
//! Each message empties the sets and fills them again, which is one transaction: packets meet
//! the old members or the new ones. So it does not matter what the kernel has by now, and those
//! who stay get their time anew, which older kernels give only to new members.

use std::io::{self, Read, Write};
use std::net::IpAddr;

use pemi_radio::netlink::Question;

use super::batch;
use super::rules::Family;

/// From the kernel's headers; not in every libc's.
const NEW_ELEMENTS: u8 = 12;
const DELETE_ELEMENTS: u8 = 14;
const CREATE: u16 = 0x400;
/// NFTA_SET_ELEM_LIST_*, of which the first is the table.
const LIST_SET: u16 = 2;
const LIST_ELEMENTS: u16 = 3;
/// NFTA_LIST_ELEM, NFTA_SET_ELEM_KEY and NFTA_DATA_VALUE: one in the other.
const ELEMENT: u16 = 1;
const KEY: u16 = 1;
const VALUE: u16 = 1;
const NESTED: u16 = 0x8000;

/// The sets, by their names as netlink writes them, and the lengths of their keys.
const SETS: [(&str, usize); 3] = [("clean4\0", 4), ("clean6\0", 16), ("clean\0", 6)];
const V4: u8 = 0;
const V6: u8 = 1;
const STATION: u8 = 2;

/// A client, as a set knows it: which of them, and the key. (A kind for each would be compared by
/// a kilobyte of code more.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    set: u8,
    key: [u8; 16],
}

impl Member {
    /// By the address of its radio.
    pub fn station(mac: [u8; 6]) -> Member {
        Member::new(STATION, &mac)
    }

    fn new(set: u8, bytes: &[u8]) -> Member {
        let mut key = [0; 16];
        key[..bytes.len()].copy_from_slice(bytes);
        Member { set, key }
    }
}

impl From<IpAddr> for Member {
    fn from(address: IpAddr) -> Member {
        match address {
            IpAddr::V4(address) => Member::new(V4, &address.octets()),
            IpAddr::V6(address) => Member::new(V6, &address.octets()),
        }
    }
}

/// Has the kernel know `members` and nobody else. Fails where there is no such table.
pub fn write(socket: impl Read + Write, family: Family, members: &[Member]) -> io::Result<()> {
    batch::carry_out(socket, &message(family, members))
}

fn message(family: Family, members: &[Member]) -> Vec<u8> {
    let sets = match family {
        Family::Inet => V4..STATION,
        Family::Bridge => STATION..STATION + 1,
    };
    let mut bytes = Vec::new();
    for set in sets {
        let (name, len) = SETS[usize::from(set)];
        // Without elements: all that there are.
        bytes.append(&mut about(DELETE_ELEMENTS, family, name).finish());
        let mut elements = Vec::new();
        for member in members {
            if member.set == set {
                element(&mut elements, &member.key[..len]);
            }
        }
        if !elements.is_empty() {
            let new = about(NEW_ELEMENTS, family, name).flagged(CREATE);
            bytes.append(&mut new.with(NESTED | LIST_ELEMENTS, &elements).finish());
        }
    }
    bytes
}

/// A message about a set.
fn about(kind: u8, family: Family, set: &str) -> Question {
    batch::about(kind, family).with(LIST_SET, set.as_bytes())
}

/// Three attributes, one in the other, around a key. There are never so many clients that all of
/// them would be longer than 64 KiB.
fn element(bytes: &mut Vec<u8>, key: &[u8]) {
    let room = key.len().next_multiple_of(4);
    for (len, kind) in
        [(12 + room, NESTED | ELEMENT), (8 + room, NESTED | KEY), (4 + key.len(), VALUE)]
    {
        bytes.extend_from_slice(&(len as u16).to_ne_bytes());
        bytes.extend_from_slice(&kind.to_ne_bytes());
    }
    bytes.extend_from_slice(key);
    bytes.resize(bytes.len() + room - key.len(), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(mut bytes: &[u8]) -> Vec<u8> {
        let mut found = Vec::new();
        while let Some(len) = bytes.first_chunk() {
            found.push(u16::from_ne_bytes([bytes[4], bytes[5]]) as u8);
            bytes = &bytes[u32::from_ne_bytes(*len) as usize..];
        }
        found
    }

    #[test]
    fn sets_are_emptied_and_filled() {
        let members =
            [Member::from(IpAddr::from([192, 0, 2, 9])), Member::station([2, 0, 0, 0, 1, 0])];
        let bytes = message(Family::Inet, &members);
        assert_eq!(kinds(&bytes), [DELETE_ELEMENTS, NEW_ELEMENTS, DELETE_ELEMENTS]);
        assert!(bytes.windows(4).any(|part| part == [192, 0, 2, 9]));
        // An Ethernet address is no multiple of four.
        let bytes = message(Family::Bridge, &members);
        assert_eq!(kinds(&bytes), [DELETE_ELEMENTS, NEW_ELEMENTS]);
        assert!(bytes.windows(6).any(|part| part == [2, 0, 0, 0, 1, 0]));
        assert!(!bytes.windows(4).any(|part| part == [192, 0, 2, 9]));
        let nobody = message(Family::Inet, &[]);
        assert_eq!(kinds(&nobody), [DELETE_ELEMENTS, DELETE_ELEMENTS]);
    }

    #[test]
    fn as_many_as_are_known_fit_into_one_attribute() {
        let address = |number: u16| Member::from(IpAddr::from([number, 0, 0, 0, 0, 0, 0, 1]));
        let members: Vec<Member> = (0..1024).map(address).collect();
        let bytes = message(Family::Inet, &members);
        assert_eq!(kinds(&bytes), [DELETE_ELEMENTS, DELETE_ELEMENTS, NEW_ELEMENTS]);
        assert!(bytes.len() < 1 << 16);
    }
}
