// SPDX-License-Identifier: GPL-2.0-or-later
//! Sending whole IP packets out of a port of a bridge: the copies of lost ones.
//!
//! The router may have no address in a network that it bridges, and no route to
//! its hosts. So a copy leaves as its original did: by the same port, with the
//! link-layer header that the last packet to the same host had.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use crate::sys::socket;

/// Hosts remembered: a client is one, and a network behind a bridge has some dozens of them.
const HOSTS: usize = 512;
/// Places of the table at which one host may be remembered.
const PLACES: usize = 4;
/// The longest header that is kept: two addresses, a type, and two VLAN tags.
pub const MAX_HEADER: usize = 14 + 2 * 4;
const TAG: usize = 4;
const ADDRESSES: usize = 12;

/// The link-layer header of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; MAX_HEADER],
    len: u8,
}

impl Header {
    /// From an Ethernet header as it is in memory; `None` if it is too long or too short
    /// to be one.
    pub fn new(bytes: &[u8]) -> Option<Header> {
        if !(ADDRESSES + 2..=MAX_HEADER).contains(&bytes.len()) {
            return None;
        }
        let mut header = Header { len: bytes.len() as u8, ..Header::default() };
        header.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(header)
    }

    /// With a VLAN tag that the kernel keeps beside the packet put where it is
    /// on the wire.
    pub fn tagged(mut self, protocol: u16, control: u16) -> Option<Header> {
        let len = usize::from(self.len);
        if len + TAG > MAX_HEADER {
            return None;
        }
        self.bytes.copy_within(ADDRESSES..len, ADDRESSES + TAG);
        let tag = [protocol.to_be_bytes(), control.to_be_bytes()];
        self.bytes[ADDRESSES..ADDRESSES + TAG].copy_from_slice(tag.as_flattened());
        self.len += TAG as u8;
        Some(self)
    }

    /// What precedes the IP packet on the wire.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

#[derive(Clone, Copy, Debug)]
struct Host {
    address: IpAddr,
    port: u32,
    header: Header,
    used: u32,
}

/// A packet socket, and how to reach the hosts seen.
#[derive(Debug)]
pub struct Bridge {
    fd: OwnedFd,
    hosts: Box<[Option<Host>]>,
    hasher: RandomState,
    clock: u32,
    frame: Vec<u8>,
}

impl Bridge {
    /// Opens the socket; it never receives anything.
    pub fn open() -> io::Result<Bridge> {
        Ok(Bridge {
            fd: socket::raw(libc::AF_PACKET, 0)?,
            hosts: vec![None; HOSTS].into_boxed_slice(),
            hasher: RandomState::new(),
            clock: 0,
            frame: Vec::with_capacity(MAX_HEADER + 65_536),
        })
    }

    /// The socket, so that its buffer can be set.
    pub fn socket(&self) -> &OwnedFd {
        &self.fd
    }

    /// Notes that a packet to `address` leaves by `port` with `header`.
    pub fn learn(&mut self, address: IpAddr, port: u32, header: Header) {
        self.clock = self.clock.wrapping_add(1);
        let clock = self.clock;
        let host = Host { address, port, header, used: clock };
        let place = match self.find(address) {
            Some(place) => place,
            None => {
                // A free place, or the one that was of no use for the longest time.
                let idle =
                    |host: &Option<Host>| host.map_or(u32::MAX, |h| clock.wrapping_sub(h.used));
                let places = self.places(address);
                places.max_by_key(|place| idle(&self.hosts[*place])).unwrap_or_default()
            }
        };
        self.hosts[place] = Some(host);
    }

    /// Sends a copy to `address`; false if it cannot be sent at once, or nobody
    /// knows how.
    pub fn send(&mut self, address: IpAddr, packet: &[u8]) -> bool {
        let Some(host) = self.find(address).and_then(|place| self.hosts[place]) else {
            return false;
        };
        self.frame.clear();
        self.frame.extend_from_slice(host.header.bytes());
        self.frame.extend_from_slice(packet);
        socket::send_frame(self.fd.as_fd(), &self.frame, host.port).is_ok()
    }

    fn find(&self, address: IpAddr) -> Option<usize> {
        self.places(address)
            .find(|place| self.hosts[*place].is_some_and(|host| host.address == address))
    }

    fn places(&self, address: IpAddr) -> impl Iterator<Item = usize> + use<> {
        let first = self.hasher.hash_one(address) as usize;
        (0..PLACES).map(move |step| first.wrapping_add(step) % HOSTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_goes_between_addresses_and_type() {
        let plain: Vec<u8> = (1..=12).chain([0x08, 0x00]).collect();
        let header = Header::new(&plain).unwrap();
        assert_eq!(header.bytes(), plain);
        let tagged = header.tagged(0x8100, 0x2005).unwrap();
        let expected: Vec<u8> = (1..=12).chain([0x81, 0, 0x20, 5, 0x08, 0]).collect();
        assert_eq!(tagged.bytes(), expected);
        assert_eq!(Header::new(&plain[1..]), None);
        assert_eq!(Header::new(&[0; MAX_HEADER + 1]), None);
        assert_eq!(tagged.tagged(0x88a8, 1).and_then(|full| full.tagged(0x88a8, 1)), None);
    }

    #[test]
    fn hosts_in_use_stay_and_the_others_make_room() {
        let Ok(mut bridge) = Bridge::open() else { return };
        let header = Header::new(&[7; 14]).unwrap();
        let client: IpAddr = "192.0.2.1".parse().unwrap();
        for n in 0..20_000u32 {
            bridge.learn(client, 3, header);
            bridge.learn(IpAddr::from((n + 0x0a00_0000).to_be_bytes()), 4, header);
        }
        let place = bridge.find(client).expect("the busiest host is known");
        assert_eq!(bridge.hosts[place].unwrap().port, 3);
        assert!(!bridge.send("192.0.2.77".parse().unwrap(), &[0x45]));
    }
}
