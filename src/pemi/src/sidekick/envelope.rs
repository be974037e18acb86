// SPDX-License-Identifier: GPL-2.0-or-later
//! Receiving and sending with what goes beside the bytes: addresses and control
//! messages.

use std::ffi::c_int;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Room for control messages, in words so that it is aligned; what is asked for here
/// takes about 40 bytes.
const CONTROL: usize = 16;

/// What came, or goes, with a message.
pub struct Envelope {
    name: libc::sockaddr_storage,
    name_len: usize,
    control: [u64; CONTROL],
    control_len: usize,
}

impl Envelope {
    /// With nothing in it.
    pub fn new() -> Envelope {
        // SAFETY: a plain C struct for which all zeroes is valid.
        let name = unsafe { mem::zeroed() };
        Envelope { name, name_len: 0, control: [0; CONTROL], control_len: 0 }
    }

    /// Takes one message; does not wait. Gives its length, of which no more than fits
    /// is in `buffer`.
    pub fn receive(&mut self, fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut header = self.header(&mut part);
        header.msg_namelen = mem::size_of_val(&self.name) as libc::socklen_t;
        header.msg_controllen = mem::size_of_val(&self.control) as _;
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: buffer, name and control are live and writable, the lengths are theirs.
        let got = unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut header, flags) };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        self.name_len = header.msg_namelen as usize;
        #[allow(clippy::unnecessary_cast, reason = "other C libraries have it in 32 bits")]
        {
            self.control_len = header.msg_controllen as usize;
        }
        Ok(got)
    }

    /// Sends `bytes` to the address in it, with the control message in it; does not wait.
    pub fn send(&mut self, fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
        let mut part =
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let mut header = self.header(&mut part);
        header.msg_namelen = self.name_len as libc::socklen_t;
        header.msg_controllen = self.control_len as _;
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: all of it is live for the call, which only reads; the lengths are theirs.
        let sent = unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const header, flags) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn header(&mut self, part: &mut libc::iovec) -> libc::msghdr {
        // SAFETY: a plain C struct for which all zeroes is valid; some have padding
        // fields that cannot be named.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_name = (&raw mut self.name).cast();
        header.msg_control = self.control.as_mut_ptr().cast();
        header.msg_iov = part;
        header.msg_iovlen = 1;
        header
    }

    /// The address, if it is of this family. `T` is the family's C struct.
    pub fn name<T: Plain>(&self, family: c_int) -> Option<T> {
        if c_int::from(self.name.ss_family) != family || self.name_len < mem::size_of::<T>() {
            return None;
        }
        // SAFETY: storage has room for every address, T is one for which all bytes will
        // do, and no alignment is asked for.
        Some(unsafe { ptr::read_unaligned((&raw const self.name).cast()) })
    }

    /// Puts an address in.
    pub fn set_name<T: Plain>(&mut self, name: T) {
        const { assert!(mem::size_of::<T>() <= mem::size_of::<libc::sockaddr_storage>()) };
        // SAFETY: there is room, as the line above makes sure.
        unsafe { ptr::write_unaligned((&raw mut self.name).cast(), name) };
        self.name_len = mem::size_of::<T>();
    }

    /// What the kernel says of the message, of this kind.
    pub fn control<T: Plain>(&mut self, level: c_int, kind: c_int) -> Option<T> {
        let mut unused = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        let mut header = self.header(&mut unused);
        header.msg_controllen = self.control_len as _;
        // SAFETY: the kernel has filled the control messages in, and said how long they are.
        let mut at = unsafe { libc::CMSG_FIRSTHDR(&raw const header) };
        while !at.is_null() {
            // SAFETY: the macros give a header within the bytes, or null.
            let found = unsafe { &*at };
            // SAFETY: arithmetic only.
            let needed = unsafe { libc::CMSG_LEN(mem::size_of::<T>() as _) } as usize;
            if (found.cmsg_level, found.cmsg_type) == (level, kind)
                && found.cmsg_len as usize >= needed
            {
                // SAFETY: there are as many bytes, as was just seen.
                return Some(unsafe { ptr::read_unaligned(libc::CMSG_DATA(at).cast()) });
            }
            // SAFETY: as for the first.
            at = unsafe { libc::CMSG_NXTHDR(&raw const header, at) };
        }
        None
    }

    /// Puts one control message in.
    pub fn set_control<T: Plain>(&mut self, level: c_int, kind: c_int, data: T) {
        // SAFETY: arithmetic only.
        let (space, len) = unsafe {
            let size = mem::size_of::<T>() as _;
            (libc::CMSG_SPACE(size) as usize, libc::CMSG_LEN(size))
        };
        self.control = [0; CONTROL];
        self.control_len = 0;
        if space > mem::size_of_val(&self.control) {
            return;
        }
        let at = self.control.as_mut_ptr().cast::<libc::cmsghdr>();
        // SAFETY: there is room, aligned for the header; the data may lie at any address.
        unsafe {
            (*at).cmsg_level = level;
            (*at).cmsg_type = kind;
            (*at).cmsg_len = len as _;
            ptr::write_unaligned(libc::CMSG_DATA(at).cast(), data);
        }
        self.control_len = space;
    }
}

/// C structs of numbers: any bytes are one.
///
/// # Safety
///
/// That has to be true.
pub unsafe trait Plain: Copy {}

// SAFETY: numbers and arrays of them.
unsafe impl Plain for libc::sockaddr_in {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_in6 {}
// SAFETY: as above.
unsafe impl Plain for libc::sockaddr_ll {}
// SAFETY: as above.
unsafe impl Plain for libc::in_pktinfo {}
// SAFETY: as above.
unsafe impl Plain for libc::in6_pktinfo {}
// SAFETY: as above.
unsafe impl Plain for libc::tpacket_auxdata {}

/// Gives a socket an address of its own.
pub fn bind<T: Plain>(fd: BorrowedFd<'_>, address: &T) -> io::Result<()> {
    let len = mem::size_of::<T>() as libc::socklen_t;
    // SAFETY: a live struct and its length.
    let result = unsafe { libc::bind(fd.as_raw_fd(), ptr::from_ref(address).cast(), len) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
