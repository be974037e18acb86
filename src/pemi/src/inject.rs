//! Sending whole IP packets: the copies of lost ones.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use crate::bridge::{Bridge, Header};
use crate::config::Mode;
use crate::socket::{self, Buffer};

const SEND_BUFFER: u32 = 1 << 20;
/// Not in every libc's headers.
const IPV6_HDRINCL: libc::c_int = 36;

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
            },
            Mode::Bridged => {
                let bridge = Bridge::open()?;
                socket::set_buffer(bridge.socket().as_fd(), Buffer::Send, SEND_BUFFER);
                Way::Bridged(bridge)
            }
        };
        Ok(Injector { way, errors: 0 })
    }

    /// A packet that may have to be sent again has this header, and leaves by
    /// this port of the bridge. Where packets are routed the kernel knows.
    pub fn learn(&mut self, packet: &[u8], port: u32, header: Option<Header>) {
        if let (Way::Bridged(bridge), Some(header)) = (&mut self.way, header)
            && let Some(to) = destination(packet)
        {
            bridge.learn(to, port, header);
        }
    }

    /// Sends one packet, at once or not at all: a copy that would have to wait
    /// for room comes too late to help. Failures are counted.
    pub fn send(&mut self, packet: &[u8]) {
        let sent = match (destination(packet), &mut self.way) {
            (Some(to @ IpAddr::V4(_)), Way::Routed { v4, .. }) => {
                socket::send_to(v4.as_fd(), packet, to).is_ok()
            }
            (Some(to @ IpAddr::V6(_)), Way::Routed { v6: Some(v6), .. }) => {
                socket::send_to(v6.as_fd(), packet, to).is_ok()
            }
            (Some(to), Way::Bridged(bridge)) => bridge.send(to, packet),
            _ => false,
        };
        if !sent {
            self.errors = self.errors.saturating_add(1);
        }
    }

    /// Packets that could not be sent.
    pub fn errors(&self) -> u32 {
        self.errors
    }
}

fn open(
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

fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => packet.get(16..)?.first_chunk::<4>().copied().map(IpAddr::from),
        6 => packet.get(24..)?.first_chunk::<16>().copied().map(IpAddr::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_destination_is_found() {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[16..20].copy_from_slice(&[192, 0, 2, 1]);
        assert_eq!(destination(&packet), "192.0.2.1".parse().ok());
        packet[0] = 0x60;
        packet[24..40].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(destination(&packet), "2001:db8::9".parse().ok());
        assert_eq!(destination(&packet[..39]), None);
        assert_eq!(destination(&[0x55; 40]), None);
        assert_eq!(destination(&[]), None);
    }
}
