// SPDX-License-Identifier: GPL-2.0-or-later
//! What all packet sockets have in common: a filter, a device, and packets that were missed.

use std::ffi::c_int;
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use libc::sock_filter;

use super::socket;

/// Puts a classic BPF program on a socket, in the place of another one.
pub(crate) fn attach_filter(fd: BorrowedFd<'_>, program: &[sock_filter]) -> io::Result<()> {
    let len = u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let value = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: a live value and its length; the filter in it is live, too, and only read.
    done(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const value).cast(),
            mem::size_of_val(&value) as libc::socklen_t,
        )
    })
}

/// Has a packet socket see the packets of all protocols of one device, 0: of all devices.
pub(crate) fn listen(fd: BorrowedFd<'_>, device: u32) -> io::Result<()> {
    // SAFETY: a plain C struct for which all zeroes is valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = device.cast_signed();
    // SAFETY: a live struct and its length.
    done(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            mem::size_of_val(&address) as libc::socklen_t,
        )
    })
}

/// Sends an IPv4 packet by the device that a packet socket listens to, with this mark. Its receiver is
/// the device itself, so that a bridge passes it to nobody.
pub(crate) fn send_to_itself(listener: BorrowedFd<'_>, mark: u32, packet: &[u8]) -> io::Result<()> {
    // SAFETY: a plain C struct for which all zeroes is valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    let mut len = mem::size_of_val(&address) as libc::socklen_t;
    let to = (&raw mut address).cast::<libc::sockaddr>();
    // SAFETY: a live struct, and a length that keeps the kernel from writing more.
    done(unsafe { libc::getsockname(listener.as_raw_fd(), to, &raw mut len) })?;
    address.sll_protocol = (libc::ETH_P_IP as u16).to_be();
    // One that hears nothing, and which puts the link-layer header before the packet.
    let fd = socket::datagram(libc::AF_PACKET)?;
    socket::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_MARK, &[mark])?;
    // SAFETY: live bytes and a live struct, with their lengths.
    let sent = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            libc::MSG_DONTWAIT,
            to,
            mem::size_of_val(&address) as libc::socklen_t,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// How many packets a packet socket had no room for since this was asked last.
pub(crate) fn dropped(fd: BorrowedFd<'_>) -> u32 {
    // Packets and drops.
    let counted: [u32; 2] = get(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS);
    counted[1]
}

/// What has gone wrong with a socket, which is then forgotten.
pub(super) fn error(fd: BorrowedFd<'_>) -> Option<io::Error> {
    let [number] = get(fd, libc::SOL_SOCKET, libc::SO_ERROR);
    (number != 0).then(|| io::Error::from_raw_os_error(number.cast_signed()))
}

/// Reads an option that consists of 32-bit numbers; zeroes where the kernel gives none.
fn get<const N: usize>(fd: BorrowedFd<'_>, level: c_int, name: c_int) -> [u32; N] {
    let mut value = [0u32; N];
    let mut len = mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: live numbers, and a length that keeps the kernel from writing more.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, value.as_mut_ptr().cast(), &raw mut len)
    };
    if result < 0 { [0; N] } else { value }
}

fn done(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
