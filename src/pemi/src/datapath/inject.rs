// SPDX-License-Identifier: GPL-2.0-or-later
//! Sending whole IP packets: the copies of lost ones.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use pemi_engine::Direction;
use pemi_engine::packet::{destination, find};

use crate::config::Mode;
use crate::datapath::bridge::{Bridge, Header};
use crate::datapath::ways::{self, Ways};
use crate::sys::socket::{self, Buffer};

const SEND_BUFFER: u32 = 1 << 20;
/// Not in every libc's headers.
pub(super) const IPV6_HDRINCL: libc::c_int = 36;

/// The way out for copies.
#[derive(Debug)]
pub struct Injector {
    way: Way,
    errors: u32,
}

#[derive(Debug)]
enum Way {
    /// Raw sockets whose packets carry the mark that our firewall rules look for.
    Routed {
        v4: OwnedFd,
        /// Absent where the kernel has no IPv6.
        v6: Option<OwnedFd>,
        /// Our mark, to which a copy on its way up adds that of its original.
        mark: u32,
        ways: Ways,
    },
    Bridged(Bridge),
}

impl Injector {
    /// Opens the sockets.
    pub fn open(mode: Mode, mark: u32) -> io::Result<Injector> {
        let way = match mode {
            Mode::Routed => Way::Routed {
                v4: open(libc::AF_INET, mark, libc::IPPROTO_IP, libc::IP_HDRINCL)?,
                v6: open(libc::AF_INET6, mark, libc::IPPROTO_IPV6, IPV6_HDRINCL).ok(),
                mark,
                ways: Ways::default(),
            },
            Mode::Bridged => {
                let bridge = Bridge::open()?;
                socket::set_buffer(bridge.socket().as_fd(), Buffer::Send, SEND_BUFFER);
                Way::Bridged(bridge)
            }
        };
        Ok(Injector { way, errors: 0 })
    }

    /// Notes that on a bridge a packet to `destination` that may have to be sent again has this
    /// header, and leaves by this port.
    pub fn learn_port(&mut self, destination: IpAddr, port: u32, header: Option<Header>) {
        if let (Way::Bridged(bridge), Some(header)) = (&mut self.way, header) {
            bridge.learn(destination, port, header);
        }
    }

    /// Notes how a packet leaves that may have to be sent again on its way up.
    pub fn learn_way(&mut self, ends: (SocketAddr, SocketAddr), way: ways::Way) {
        if let Way::Routed { ways, .. } = &mut self.way {
            ways.learn(ends, way);
        }
    }

    /// Sends one packet, at once or not at all: a copy that would have to wait
    /// for room comes too late to help. Failures are counted.
    pub fn send(&mut self, direction: Direction, packet: &[u8]) {
        let sent = find(packet).is_some_and(|udp| match &mut self.way {
            Way::Bridged(bridge) => bridge.send(udp.destination, packet),
            Way::Routed { v4, v6, mark, ways } => {
                let to = udp.destination;
                let fd = if to.is_ipv4() { Some(&*v4) } else { v6.as_ref() };
                fd.is_some_and(|fd| match direction {
                    // The client is in a network of the router's own, so its routes are right.
                    Direction::Down => socket::send_to(fd.as_fd(), packet, to).is_ok(),
                    Direction::Up => ways.find(udp.ends()).is_some_and(|way| {
                        let marks = *mark | way.mark;
                        socket::send_by(fd.as_fd(), packet, to, way.device, marks).is_ok()
                    }),
                })
            }
        });
        if !sent {
            self.errors = self.errors.saturating_add(1);
        }
    }

    /// Sends a packet that is no copy by this interface (0: that of its route), at once or not at
    /// all; on a bridge by the port of the last packet to the same host. Gives whether it was sent.
    pub fn send_by(&mut self, device: u32, packet: &[u8]) -> bool {
        destination(packet).is_some_and(|to| match &mut self.way {
            Way::Bridged(bridge) => bridge.send(to, packet),
            Way::Routed { v4, v6, mark, .. } => {
                let fd = if to.is_ipv4() { Some(&*v4) } else { v6.as_ref() };
                fd.is_some_and(|fd| socket::send_by(fd.as_fd(), packet, to, device, *mark).is_ok())
            }
        })
    }

    /// The socket of all packets that leave by ports of a bridge.
    pub fn bridged(&self) -> Option<&OwnedFd> {
        match &self.way {
            Way::Bridged(bridge) => Some(bridge.socket()),
            Way::Routed { .. } => None,
        }
    }

    /// Packets that could not be sent.
    pub fn errors(&self) -> u32 {
        self.errors
    }
}

pub(super) fn open(
    family: libc::c_int,
    mark: u32,
    level: libc::c_int,
    header_included: libc::c_int,
) -> io::Result<OwnedFd> {
    let fd = socket::raw(family, libc::IPPROTO_RAW)?;
    socket::set_option(fd.as_fd(), level, header_included, &[1])?;
    socket::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_MARK, &[mark])?;
    socket::set_buffer(fd.as_fd(), Buffer::Send, SEND_BUFFER);
    Ok(fd)
}
