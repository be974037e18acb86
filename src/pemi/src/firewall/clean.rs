// SPDX-License-Identifier: GPL-2.0-or-later
//! The sets of clean clients in our table: what is in them, and the message that says so.
//!
//! Each message empties the sets and fills them again, which is one transaction: packets meet
//! the old members or the new ones. So it does not matter what the kernel has by now, and those
//! who stay get their time anew, which older kernels give only to new members.

use std::io::{self, Read, Write};
use std::net::IpAddr;

use pemi_radio::netlink::{Messages, Question, Role};

use super::rules::Family;

/// From the kernel's headers; not in every libc's.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u8 = 10;
const NEW_ELEMENTS: u16 = (SUBSYSTEM as u16) << 8 | 12;
const DELETE_ELEMENTS: u16 = (SUBSYSTEM as u16) << 8 | 14;
const CREATE: u16 = 0x400;
/// NFTA_SET_ELEM_LIST_*.
const LIST_TABLE: u16 = 1;
const LIST_SET: u16 = 2;
const LIST_ELEMENTS: u16 = 3;
/// NFTA_LIST_ELEM, NFTA_SET_ELEM_KEY and NFTA_DATA_VALUE: one in the other.
const ELEMENT: u16 = 1;
const KEY: u16 = 1;
const VALUE: u16 = 1;
const NESTED: u16 = 0x8000;
/// That of the table, as netlink writes names.
const NAME: &[u8] = b"pemi\0";

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
pub fn write(mut socket: impl Read + Write, family: Family, members: &[Member]) -> io::Result<()> {
    socket.write_all(&message(family, members))?;
    // What there is to say has been said by now; nothing if all went well.
    // A complaint for each part that it is about, and the first is worth telling.
    let (mut answer, mut said) = ([0; 4096], None);
    loop {
        match socket.read(&mut answer) {
            Ok(len) => said = said.or(complaint(&answer[..len])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    said.map_or(Ok(()), Err)
}

fn message(family: Family, members: &[Member]) -> Vec<u8> {
    let sets = match family {
        Family::Inet => V4..STATION,
        Family::Bridge => STATION..STATION + 1,
    };
    let mut bytes = edge(BATCH_BEGIN);
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
    bytes.append(&mut edge(BATCH_END));
    bytes
}

/// The first or the last message of a batch: it says whose it is.
fn edge(kind: u16) -> Vec<u8> {
    Question::one_headed(kind, 0, &[0, 0, 0, SUBSYSTEM]).finish()
}

/// A message about a set.
fn about(kind: u16, family: Family, set: &str) -> Question {
    Question::one_headed(kind, 0, &[family.number(), 0, 0, 0])
        .with(LIST_TABLE, NAME)
        .with(LIST_SET, set.as_bytes())
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

/// What the first message of an answer complains of.
fn complaint(answer: &[u8]) -> Option<io::Error> {
    match Messages(answer).next()?.ok()?.role() {
        Role::Failed(number) => Some(io::Error::from_raw_os_error(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(mut bytes: &[u8]) -> Vec<u16> {
        let mut found = Vec::new();
        while let Some(len) = bytes.first_chunk() {
            found.push(u16::from_ne_bytes([bytes[4], bytes[5]]));
            bytes = &bytes[u32::from_ne_bytes(*len) as usize..];
        }
        found
    }

    #[test]
    fn sets_are_emptied_and_filled_in_one_batch() {
        let members =
            [Member::from(IpAddr::from([192, 0, 2, 9])), Member::station([2, 0, 0, 0, 1, 0])];
        let bytes = message(Family::Inet, &members);
        assert_eq!(
            kinds(&bytes),
            [BATCH_BEGIN, DELETE_ELEMENTS, NEW_ELEMENTS, DELETE_ELEMENTS, BATCH_END]
        );
        assert!(bytes.windows(4).any(|part| part == [192, 0, 2, 9]));
        // An Ethernet address is no multiple of four.
        let bytes = message(Family::Bridge, &members);
        assert_eq!(kinds(&bytes), [BATCH_BEGIN, DELETE_ELEMENTS, NEW_ELEMENTS, BATCH_END]);
        assert!(bytes.windows(6).any(|part| part == [2, 0, 0, 0, 1, 0]));
        assert!(!bytes.windows(4).any(|part| part == [192, 0, 2, 9]));
        let nobody = message(Family::Inet, &[]);
        assert_eq!(kinds(&nobody), [BATCH_BEGIN, DELETE_ELEMENTS, DELETE_ELEMENTS, BATCH_END]);
    }

    #[test]
    fn as_many_as_are_known_fit_into_one_attribute() {
        let address = |number: u16| Member::from(IpAddr::from([number, 0, 0, 0, 0, 0, 0, 1]));
        let members: Vec<Member> = (0..1024).map(address).collect();
        let bytes = message(Family::Inet, &members);
        assert_eq!(
            kinds(&bytes),
            [BATCH_BEGIN, DELETE_ELEMENTS, DELETE_ELEMENTS, NEW_ELEMENTS, BATCH_END]
        );
        assert!(bytes.len() < 1 << 16);
    }

    #[test]
    fn what_the_kernel_complains_of() {
        let mut answer = vec![0; 36];
        answer[..4].copy_from_slice(&36u32.to_ne_bytes());
        // NLMSG_ERROR.
        answer[4..6].copy_from_slice(&2u16.to_ne_bytes());
        assert!(complaint(&answer).is_none());
        answer[16..20].copy_from_slice(&(-libc::ENOENT).to_ne_bytes());
        assert_eq!(complaint(&answer).unwrap().raw_os_error(), Some(libc::ENOENT));
        (0..36).for_each(|len| assert!(complaint(&answer[..len]).is_none()));
    }
}
