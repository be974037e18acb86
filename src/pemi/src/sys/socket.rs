// SPDX-License-Identifier: GPL-2.0-or-later
//! Thin wrappers of the socket calls that the standard library lacks.

use std::ffi::{CStr, c_int};
use std::io;
use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Which buffer of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Buffer {
    /// Towards us.
    Receive,
    /// Away from us.
    Send,
}

/// A raw socket that never blocks.
pub fn raw(family: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    new(family, libc::SOCK_RAW, protocol)
}

/// A socket for datagrams that never blocks, without an address yet: UDP, or packets without their
/// link-layer header.
pub(crate) fn datagram(family: c_int) -> io::Result<OwnedFd> {
    new(family, libc::SOCK_DGRAM, 0)
}

fn new(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    let kind = kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers; the result is checked.
    let fd = unsafe { libc::socket(family, kind, protocol) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor that nobody else knows.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A stream to the socket at `path` that never blocks, not even when the other
/// side has stopped accepting: that is an error.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let fd = new(libc::AF_UNIX, libc::SOCK_STREAM, 0)?;
    // SAFETY: a plain C struct for which all zeroes is valid.
    let mut address: libc::sockaddr_un = unsafe { mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    // The last byte of the path stays zero.
    if bytes.len() >= address.sun_path.len() || bytes.contains(&0) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (into, byte) in address.sun_path.iter_mut().zip(bytes) {
        *into = *byte as libc::c_char;
    }
    // SAFETY: the address is live, the length is its own.
    let result = unsafe {
        libc::connect(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            mem::size_of_val(&address) as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(fd.into()) }
}

/// A netlink socket that never blocks and hears what is sent to `group`.
pub(crate) fn netlink(protocol: c_int, group: u32) -> io::Result<OwnedFd> {
    let fd = raw(libc::AF_NETLINK, protocol)?;
    // SAFETY: a plain C struct for which all zeroes is valid: the kernel chooses
    // the address.
    let mut address: libc::sockaddr_nl = unsafe { mem::zeroed() };
    address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
    // Without an address of its own a socket hears nothing.
    // SAFETY: a live struct and its length.
    let result = unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            mem::size_of_val(&address) as libc::socklen_t,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    set_option(fd.as_fd(), libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, &[group])?;
    Ok(fd)
}

/// Sets an option whose value is one or more 32-bit numbers.
pub fn set_option(fd: BorrowedFd<'_>, level: c_int, name: c_int, value: &[u32]) -> io::Result<()> {
    // SAFETY: pointer and length are those of a live slice.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            value.as_ptr().cast(),
            mem::size_of_val(value) as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes a buffer this large if permitted, else as large as permitted.
pub(crate) fn set_buffer(fd: BorrowedFd<'_>, which: Buffer, bytes: u32) {
    let (force, plain) = match which {
        Buffer::Receive => (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        Buffer::Send => (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    };
    if set_option(fd, libc::SOL_SOCKET, force, &[bytes]).is_err() {
        // The kernel caps the value instead of refusing it.
        let _ = set_option(fd, libc::SOL_SOCKET, plain, &[bytes]);
    }
}

/// An address without a port as the kernel wants it, and its length.
fn address_of(to: IpAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: a plain C struct for which all zeroes is valid.
    let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let len = match to {
        IpAddr::V4(address) => {
            let target = (&raw mut storage).cast::<libc::sockaddr_in>();
            // SAFETY: sockaddr_storage has room and alignment for every address.
            unsafe {
                (*target).sin_family = libc::AF_INET as libc::sa_family_t;
                (*target).sin_addr.s_addr = u32::from_ne_bytes(address.octets());
            }
            mem::size_of::<libc::sockaddr_in>()
        }
        IpAddr::V6(address) => {
            let target = (&raw mut storage).cast::<libc::sockaddr_in6>();
            // SAFETY: as above.
            unsafe {
                (*target).sin6_family = libc::AF_INET6 as libc::sa_family_t;
                (*target).sin6_addr.s6_addr = address.octets();
            }
            mem::size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, len as libc::socklen_t)
}

/// Sends to an address without a port.
pub fn send_to(fd: BorrowedFd<'_>, data: &[u8], to: IpAddr) -> io::Result<()> {
    let (address, len) = address_of(to);
    // SAFETY: data and address are live for the call, the lengths are theirs.
    let sent = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            data.as_ptr().cast(),
            data.len(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            (&raw const address).cast(),
            len,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Room for the two control messages of [`send_by`], aligned as the kernel wants it.
#[repr(C, align(8))]
struct Control([u8; 96]);

/// The same out of an interface and with a packet mark, whatever those of the socket.
pub(crate) fn send_by(
    fd: BorrowedFd<'_>,
    data: &[u8],
    to: IpAddr,
    interface: u32,
    mark: u32,
) -> io::Result<()> {
    let (mut address, len) = address_of(to);
    let mut part = libc::iovec { iov_base: data.as_ptr().cast_mut().cast(), iov_len: data.len() };
    let mut control = Control([0; 96]);
    // SAFETY: a plain C struct for which all zeroes is valid.
    let mut message: libc::msghdr = unsafe { mem::zeroed() };
    message.msg_name = (&raw mut address).cast();
    message.msg_namelen = len;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    let info = match to {
        IpAddr::V4(_) => mem::size_of::<libc::in_pktinfo>(),
        IpAddr::V6(_) => mem::size_of::<libc::in6_pktinfo>(),
    };
    // SAFETY: these only calculate.
    let used =
        unsafe { libc::CMSG_SPACE(info as u32) + libc::CMSG_SPACE(size_of_val(&mark) as u32) };
    message.msg_controllen = used as _;
    // SAFETY: the room is for both messages and aligned; the pointers to headers stay
    // within it, and what is written there has the length that its header tells.
    unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const message);
        match to {
            IpAddr::V4(_) => {
                let mut info: libc::in_pktinfo = mem::zeroed();
                info.ipi_ifindex = interface.cast_signed();
                put_control(first, libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            IpAddr::V6(_) => {
                let mut info: libc::in6_pktinfo = mem::zeroed();
                info.ipi6_ifindex = interface as _;
                put_control(first, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
            }
        }
        let second = libc::CMSG_NXTHDR(&raw const message, first);
        put_control(second, libc::SOL_SOCKET, libc::SO_MARK, mark);
    }
    // SAFETY: everything that the message points to is live for the call and as long
    // as it says; the kernel only reads.
    let sent = unsafe {
        libc::sendmsg(fd.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Writes one control message.
///
/// # Safety
/// `header` points to room for a header and `value`.
unsafe fn put_control<T>(header: *mut libc::cmsghdr, level: c_int, kind: c_int, value: T) {
    // SAFETY: the caller's promise; the data need not be aligned for `T`.
    unsafe {
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = libc::CMSG_LEN(mem::size_of::<T>() as u32) as _;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
    }
}

/// Sends a frame, header and all, out of an interface.
pub(crate) fn send_frame(fd: BorrowedFd<'_>, frame: &[u8], interface: u32) -> io::Result<()> {
    // SAFETY: a plain C struct for which all zeroes is valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_ifindex = interface.cast_signed();
    // SAFETY: data and address are live for the call, the lengths are theirs.
    let sent = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            frame.as_ptr().cast(),
            frame.len(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            (&raw const address).cast(),
            mem::size_of_val(&address) as libc::socklen_t,
        )
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes one datagram and gives its sender; does not wait.
pub(crate) fn receive_from(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, IpAddr)> {
    // SAFETY: a plain C struct for which all zeroes is valid.
    let mut storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
    let mut len = mem::size_of_val(&storage) as libc::socklen_t;
    // SAFETY: buffer and address are live and writable, the lengths are theirs.
    let got = unsafe {
        libc::recvfrom(
            fd.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_DONTWAIT,
            (&raw mut storage).cast(),
            &raw mut len,
        )
    };
    let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    let from = match c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which address the kernel has written.
            let address =
                unsafe { (*(&raw const storage).cast::<libc::sockaddr_in>()).sin_addr.s_addr };
            Ipv4Addr::from(address.to_ne_bytes()).into()
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let address =
                unsafe { (*(&raw const storage).cast::<libc::sockaddr_in6>()).sin6_addr.s6_addr };
            Ipv6Addr::from(address).into()
        }
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    Ok((got, from))
}

/// The index of a network interface, if it exists.
pub fn interface_index(name: &CStr) -> Option<u32> {
    // SAFETY: a string that ends with a zero byte.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    (index != 0).then_some(index)
}

/// The name of the network interface with this index, if there is one.
pub(crate) fn interface_name(index: u32) -> Option<String> {
    let mut name = [0u8; libc::IF_NAMESIZE];
    // SAFETY: a live buffer of the length that the function asks for.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) };
    let name = CStr::from_bytes_until_nul(&name).ok().filter(|_| !found.is_null())?;
    name.to_str().ok().map(str::to_string)
}

/// The descriptor of `owner` for as long as `owner` lives.
pub(crate) fn borrow(owner: &impl AsRawFd) -> BorrowedFd<'_> {
    // SAFETY: the owner keeps the descriptor open and outlives the borrow.
    unsafe { BorrowedFd::borrow_raw(owner.as_raw_fd()) }
}

/// The bytes of a slice of words, in the byte order of the machine.
pub(crate) fn bytes_of(words: &[u32]) -> &[u8] {
    // SAFETY: u32 has no padding and u8 no alignment; the length is the same
    // memory counted in bytes.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), mem::size_of_val(words)) }
}
