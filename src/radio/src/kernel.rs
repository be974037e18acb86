// SPDX-License-Identifier: GPL-2.0-or-later
//! The calls that the standard library lacks: netlink sockets, and a driver's name. The only
//! `unsafe` code of this crate.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// SIOCETHTOOL of linux/sockios.h.
const ETHTOOL: u32 = 0x8946;
/// ETHTOOL_GDRVINFO of linux/ethtool.h.
const DRIVER_INFO: u32 = 3;

/// Whom a socket speaks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// Generic netlink, and so nl80211.
    Generic,
    /// Whoever knows of network devices and neighbours.
    Route,
}

/// A socket of netlink.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl Socket {
    /// One that waits for answers, or one that never waits.
    pub fn open(whom: Whom, waits: bool) -> io::Result<Socket> {
        let flags = if waits { 0 } else { libc::SOCK_NONBLOCK };
        let protocol = match whom {
            Whom::Generic => libc::NETLINK_GENERIC,
            Whom::Route => libc::NETLINK_ROUTE,
        };
        let fd = socket(libc::AF_NETLINK, libc::SOCK_RAW | flags, protocol)?;
        // SAFETY: a plain C struct for which all zeroes is valid: the kernel chooses the address.
        let mut address: libc::sockaddr_nl = unsafe { mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        let len = mem::size_of_val(&address) as libc::socklen_t;
        // SAFETY: a live struct and its length.
        checked(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), len) })?;
        Ok(Socket(fd))
    }

    /// Hears what is sent to a group from now on.
    pub fn join(&self, group: u32) -> io::Result<()> {
        // SAFETY: a live number and its length.
        checked(unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_NETLINK,
                libc::NETLINK_ADD_MEMBERSHIP,
                (&raw const group).cast(),
                mem::size_of_val(&group) as libc::socklen_t,
            )
        })?;
        Ok(())
    }

    /// Sends a question to the kernel.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let fd = self.0.as_raw_fd();
        again(|| {
            // SAFETY: live bytes and their length.
            unsafe { libc::send(fd, message.as_ptr().cast(), message.len(), 0) }
        })?;
        Ok(())
    }

    /// The next messages of the kernel.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let fd = self.0.as_raw_fd();
        loop {
            // SAFETY: a plain C struct for which all zeroes is valid.
            let mut sender: libc::sockaddr_nl = unsafe { mem::zeroed() };
            let mut room = mem::size_of_val(&sender) as libc::socklen_t;
            let len = again(|| {
                // SAFETY: a live buffer and a live struct, with their lengths.
                unsafe {
                    libc::recvfrom(
                        fd,
                        buffer.as_mut_ptr().cast(),
                        buffer.len(),
                        libc::MSG_TRUNC,
                        (&raw mut sender).cast(),
                        &raw mut room,
                    )
                }
            })?;
            // Programs can send to this socket as well; the kernel's port is zero.
            if sender.nl_pid != 0 {
                continue;
            }
            return buffer.get(..len).ok_or_else(|| io::ErrorKind::InvalidData.into());
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// The part of `struct ifreq` that is needed, and room for the rest of it.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    data: *mut c_void,
    room: [u8; 16],
}

/// The name of the driver of an interface. It needs neither a right nor /sys.
pub fn driver(interface: &str) -> io::Result<String> {
    let fd = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let mut info = DriverInfo { command: DRIVER_INFO, driver: [0; 32], rest: [0; 160] };
    let mut name = [0; libc::IFNAMSIZ];
    // The last byte stays zero.
    if interface.len() >= name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    name[..interface.len()].copy_from_slice(interface.as_bytes());
    let mut request = Request { name, data: (&raw mut info).cast(), room: [0; 16] };
    // SAFETY: a live struct as large as an ifreq, which points to a live one of the size that
    // the kernel fills for this command, 196 bytes.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), ETHTOOL as _, &raw mut request) })?;
    Ok(crate::netlink::text(&info.driver))
}

fn socket(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the result is checked.
    let fd = checked(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: a new descriptor that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn checked(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Repeats what a signal interrupted.
fn again(mut attempt: impl FnMut() -> isize) -> io::Result<usize> {
    loop {
        if let Ok(len) = usize::try_from(attempt()) {
            return Ok(len);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // What the kernel fills and reads.
    const _: () = assert!(mem::size_of::<DriverInfo>() == 196);
    const _: () = assert!(mem::size_of::<Request>() >= mem::size_of::<libc::ifreq>());

    #[test]
    fn names_that_are_none() {
        assert_eq!(driver("a name of 16 byt").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(driver("none").is_err());
    }
}
