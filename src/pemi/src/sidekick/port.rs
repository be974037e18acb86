// SPDX-License-Identifier: GPL-2.0-or-later
//! The UDP port that senders talk to. Answers leave from the address that the question
//! was sent to, by the device that it came in by.

use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use pemi_sidekick::router::Via;

use super::envelope::{self, Envelope};
use crate::sys::socket::{self, Buffer};

/// The kernel doubles it; a HELLO takes up to 1.3 KB of it. So those of 20 ms find room when
/// somebody sends 20,000 in a second.
const BUFFER: u32 = 256 << 10;
/// The kernel doubles this, too. It keeps a cookie for an address that nobody has for three
/// seconds while it asks whose it is: room for all of that time, 500 a second, or there is
/// none for others.
const SEND_BUFFER: u32 = 1 << 20;

/// A bound socket.
pub struct Port {
    fd: OwnedFd,
    /// For both IP versions, or for IPv4 where there is no other.
    both: bool,
    envelope: Envelope,
}

impl Port {
    /// Binds it.
    pub fn open(port: u16) -> io::Result<Port> {
        let (fd, both) = match open_both(port) {
            Ok(fd) => (fd, true),
            // IPv6 is switched off, or not there at all.
            Err(error)
                if matches!(
                    error.raw_os_error(),
                    Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)
                ) =>
            {
                (open_v4(port)?, false)
            }
            Err(error) => return Err(error),
        };
        socket::set_buffer(fd.as_fd(), Buffer::Receive, BUFFER);
        socket::set_buffer(fd.as_fd(), Buffer::Send, SEND_BUFFER);
        Ok(Port { fd, both, envelope: Envelope::new() })
    }

    /// The next message: its sender, how it came, and its length, more than fits into
    /// `buffer` if it is too long. `None` inside: from nowhere.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(SocketAddr, Via, usize)>> {
        let len = self.envelope.receive(self.fd.as_fd(), buffer)?;
        let found = if self.both { self.came_by_v6() } else { self.came_by_v4() };
        Ok(found.map(|(from, via)| (from, via, len)))
    }

    fn came_by_v6(&mut self) -> Option<(SocketAddr, Via)> {
        let name: libc::sockaddr_in6 = self.envelope.name(libc::AF_INET6)?;
        let info: libc::in6_pktinfo =
            self.envelope.control(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO)?;
        let from = SocketAddrV6::new(
            name.sin6_addr.s6_addr.into(),
            u16::from_be(name.sin6_port),
            0,
            name.sin6_scope_id,
        );
        let local = IpAddr::from(info.ipi6_addr.s6_addr);
        Some((from.into(), Via { device: info.ipi6_ifindex, local }))
    }

    fn came_by_v4(&mut self) -> Option<(SocketAddr, Via)> {
        let name: libc::sockaddr_in = self.envelope.name(libc::AF_INET)?;
        let info: libc::in_pktinfo = self.envelope.control(libc::IPPROTO_IP, libc::IP_PKTINFO)?;
        let ip = |address: libc::in_addr| IpAddr::from(address.s_addr.to_ne_bytes());
        let from = SocketAddr::new(ip(name.sin_addr), u16::from_be(name.sin_port));
        let device = info.ipi_ifindex.cast_unsigned();
        Some((from, Via { device, local: ip(info.ipi_addr) }))
    }

    /// Sends a message.
    pub fn send(&mut self, to: SocketAddr, via: Via, bytes: &[u8]) -> io::Result<()> {
        if self.both {
            let SocketAddr::V6(to) = to else { return Err(io::ErrorKind::InvalidInput.into()) };
            self.envelope.set_name(v6(to));
            let local = match via.local {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            let info = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr { s6_addr: local.octets() },
                ipi6_ifindex: via.device,
            };
            self.envelope.set_control(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
        } else {
            let (SocketAddr::V4(to), IpAddr::V4(local)) = (to, via.local) else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            self.envelope.set_name(v4(*to.ip(), to.port()));
            let local = libc::in_addr { s_addr: u32::from_ne_bytes(local.octets()) };
            let info = libc::in_pktinfo {
                ipi_ifindex: via.device.cast_signed(),
                ipi_spec_dst: local,
                ipi_addr: local,
            };
            self.envelope.set_control(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
        }
        self.envelope.send(self.fd.as_fd(), bytes)
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn open_both(port: u16) -> io::Result<OwnedFd> {
    let fd = socket::datagram(libc::AF_INET6)?;
    socket::set_option(fd.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &[0])?;
    socket::set_option(fd.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, &[1])?;
    envelope::bind(fd.as_fd(), &v6(SocketAddrV6::new([0; 8].into(), port, 0, 0)))?;
    Ok(fd)
}

fn open_v4(port: u16) -> io::Result<OwnedFd> {
    let fd = socket::datagram(libc::AF_INET)?;
    socket::set_option(fd.as_fd(), libc::IPPROTO_IP, libc::IP_PKTINFO, &[1])?;
    envelope::bind(fd.as_fd(), &v4(Ipv4Addr::UNSPECIFIED, port))?;
    Ok(fd)
}

fn v6(address: SocketAddrV6) -> libc::sockaddr_in6 {
    // SAFETY: a plain C struct for which all zeroes is valid.
    let mut name: libc::sockaddr_in6 = unsafe { mem::zeroed() };
    name.sin6_family = libc::AF_INET6 as libc::sa_family_t;
    name.sin6_port = address.port().to_be();
    name.sin6_addr.s6_addr = address.ip().octets();
    name.sin6_scope_id = address.scope_id();
    name
}

fn v4(ip: Ipv4Addr, port: u16) -> libc::sockaddr_in {
    // SAFETY: as above.
    let mut name: libc::sockaddr_in = unsafe { mem::zeroed() };
    name.sin_family = libc::AF_INET as libc::sa_family_t;
    name.sin_port = port.to_be();
    name.sin_addr.s_addr = u32::from_ne_bytes(ip.octets());
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::poll::{self, Interest};
    use pemi_engine::SEC;
    use std::net::UdpSocket;

    /// One that answers `client` from where it was asked.
    fn answers(fd: OwnedFd, both: bool, port: u16, client: &str, router: &str) {
        let mut socket = Port { fd, both, envelope: Envelope::new() };
        let client = UdpSocket::bind((client, 0)).unwrap();
        client.send_to(b"question", (router, port)).unwrap();
        poll::wait(&mut [Interest::read(&socket)], Some(SEC)).unwrap();
        let mut buffer = [0; 5];
        let (from, via, len) = socket.receive(&mut buffer).unwrap().unwrap();
        assert_eq!((len, &buffer), (8, b"quest"));
        assert_eq!(from.port(), client.local_addr().unwrap().port());
        assert_eq!(via.local.to_canonical(), router.parse::<IpAddr>().unwrap());
        assert_eq!(Some(via.device), socket::interface_index(c"lo"));
        socket.send(from, via, b"answer").unwrap();
        let (len, asked) = client.recv_from(&mut [0; 10]).unwrap();
        assert_eq!((len, asked.ip().to_string().as_str()), (6, router));
        let nothing = socket.receive(&mut buffer).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    #[cfg_attr(
        target_endian = "big",
        ignore = "QEMU hands on ipi_ifindex in the host's byte order"
    )]
    fn answers_leave_from_where_the_question_was_sent_to() {
        let free = |ip: &str| UdpSocket::bind((ip, 0)).unwrap().local_addr().unwrap().port();
        let port = free("0.0.0.0");
        answers(open_v4(port).unwrap(), false, port, "127.0.0.1", "127.0.0.7");
        if UdpSocket::bind("[::1]:0").is_err() {
            return;
        }
        let port = free("::");
        answers(open_both(port).unwrap(), true, port, "127.0.0.1", "127.0.0.7");
        let port = free("::");
        answers(open_both(port).unwrap(), true, port, "::1", "::1");
    }
}
