// SPDX-License-Identifier: GPL-2.0-or-later
//! Has flows that the firewall has offloaded come by the rules again, once.
//!
//! Packets of an offloaded flow meet no rule, and nothing takes a single flow out of a flowtable
//! but its end. But a flowtable keeps the routes of its flows, and gives up a flow whose route
//! may have changed: its next packet goes the ordinary way, and connection tracking, with what
//! it translates, stays as it is. So the kernel is told of a change of routes that is none. What
//! hardware forwards comes by nothing, and stays where it is.
//!
//! IPv4: a route to an address that nobody has is added and taken away. IPv6: such an address is
//! given to the loopback and taken away; a route there reaches flows of its own table only. Both
//! need CAP_NET_ADMIN, and nothing of /proc/sys, which is not to be written to in a jail.

use std::io::{self, Write};

use pemi_radio::netlink::Question;

use crate::sys::socket;

const NEW_ADDRESS: u16 = 20;
const DELETE_ADDRESS: u16 = 21;
const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
/// It must not be there yet: what is somebody's stays.
const NEW: u16 = 0x600;
/// RTA_DST, and IFA_ADDRESS.
const ADDRESS: u16 = 1;
/// The "IPv4 dummy address" of RFC 7600, and one of the discard prefix of RFC 6666.
const NOBODY4: [u8; 4] = [192, 0, 0, 8];
const NOBODY6: [u8; 16] = [1, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x45, 0x4d, 0x49, 0, 0, 0, 1];
/// Of the device `lo`, in every network namespace.
const LOOPBACK: u32 = 1;
/// RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE, RTN_BLACKHOLE.
const ROUTE: [u8; 4] = [254, 4, 0, 6];
/// IFA_F_NODAD: it is there at once. RT_SCOPE_HOST.
const NO_DAD: u8 = 2;
const HOST: u8 = 254;

/// Tells the kernel. Each family by itself: one of them may be missing.
pub fn recall() -> io::Result<()> {
    let fd = socket::raw(libc::AF_NETLINK, libc::NETLINK_ROUTE)?;
    let mut socket = std::fs::File::from(fd);
    // A refusal is in an answer that nobody reads: there is nothing else to be tried.
    for message in messages() {
        socket.write_all(&message)?;
    }
    Ok(())
}

fn messages() -> [Vec<u8>; 4] {
    // Lengths of destination and source, TOS, then the table and so on; no flags.
    let [table, protocol, scope, kind] = ROUTE;
    let route = [libc::AF_INET as u8, 32, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0];
    let [a, b, c, d] = LOOPBACK.to_ne_bytes();
    let address = [libc::AF_INET6 as u8, 128, NO_DAD, HOST, a, b, c, d];
    [
        message(NEW_ROUTE, NEW, &route, &NOBODY4),
        message(DELETE_ROUTE, 0, &route, &NOBODY4),
        message(NEW_ADDRESS, NEW, &address, &NOBODY6),
        message(DELETE_ADDRESS, 0, &address, &NOBODY6),
    ]
}

/// A message about an address.
fn message(kind: u16, flags: u16, head: &[u8], address: &[u8]) -> Vec<u8> {
    Question::one_headed(kind, 0, head).with(ADDRESS, address).flagged(flags).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_taken_away() {
        for pair in messages().chunks(2) {
            let [new, gone] = pair else { panic!("{pair:?}") };
            let kind = |message: &[u8]| u16::from_ne_bytes([message[4], message[5]]);
            assert_eq!(kind(gone), kind(new) + 1);
            // All but kind and flags.
            assert_eq!((&new[..4], &new[8..]), (&gone[..4], &gone[8..]));
            assert_eq!(new.len(), u32::from_ne_bytes(*new.first_chunk().unwrap()) as usize);
        }
    }
}
