// SPDX-License-Identifier: GPL-2.0-or-later
//! Many datagrams with one call into the kernel.
#![allow(unsafe_code)]

use std::io;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

/// Datagrams at a time.
pub const BATCH: usize = 32;
/// Room for one.
pub const SLOT: usize = 2048;

/// Room for a batch.
pub struct Batch {
    buffers: Vec<[u8; SLOT]>,
    vectors: Vec<libc::iovec>,
    names: Vec<libc::sockaddr_in>,
    headers: Vec<libc::mmsghdr>,
}

impl Default for Batch {
    fn default() -> Self {
        // SAFETY: all three are plain C structs for which all zeroes is valid.
        let (vector, name, header) = unsafe { std::mem::zeroed() };
        Batch {
            buffers: vec![[0; SLOT]; BATCH],
            vectors: vec![vector; BATCH],
            names: vec![name; BATCH],
            headers: vec![header; BATCH],
        }
    }
}

impl Batch {
    /// The bytes of datagram `n`.
    pub fn buffer(&mut self, n: usize) -> &mut [u8; SLOT] {
        &mut self.buffers[n]
    }

    /// Sets where datagram `n` goes, and its length.
    pub fn address(&mut self, n: usize, to: SocketAddrV4, len: usize) {
        self.names[n] = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: to.port().to_be(),
            sin_addr: libc::in_addr { s_addr: u32::from(*to.ip()).to_be() },
            sin_zero: [0; 8],
        };
        self.vectors[n].iov_len = len.min(SLOT);
    }

    fn link(&mut self, count: usize) {
        for n in 0..count {
            self.vectors[n].iov_base = self.buffers[n].as_mut_ptr().cast();
            let header = &mut self.headers[n].msg_hdr;
            header.msg_name = (&raw mut self.names[n]).cast();
            header.msg_namelen = size_of::<libc::sockaddr_in>() as u32;
            header.msg_iov = &raw mut self.vectors[n];
            header.msg_iovlen = 1;
        }
    }

    /// Sends the first `count`; gives how many went.
    pub fn send(&mut self, socket: RawFd, count: usize) -> io::Result<usize> {
        let count = count.min(BATCH);
        self.link(count);
        // SAFETY: `count` headers were just made to point into `self`, which
        // outlives the call.
        let sent = unsafe { libc::sendmmsg(socket, self.headers.as_mut_ptr(), count as u32, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }

    /// Takes what is waiting, without waiting; gives how many came.
    pub fn receive(&mut self, socket: RawFd) -> io::Result<usize> {
        for vector in &mut self.vectors {
            vector.iov_len = SLOT;
        }
        self.link(BATCH);
        let flags = libc::MSG_DONTWAIT;
        // SAFETY: as in `send`; all `BATCH` buffers are writable.
        let got = unsafe {
            let headers = self.headers.as_mut_ptr();
            libc::recvmmsg(socket, headers, BATCH as u32, flags as _, std::ptr::null_mut())
        };
        match usize::try_from(got) {
            Ok(got) => Ok(got),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                error => Err(error),
            },
        }
    }

    /// Length of datagram `n` of those received.
    pub fn len(&self, n: usize) -> usize {
        self.headers[n].msg_len as usize
    }

    /// Where datagram `n` came from.
    pub fn source(&self, n: usize) -> SocketAddrV4 {
        let name = &self.names[n];
        let ip = u32::from_be(name.sin_addr.s_addr).into();
        SocketAddrV4::new(ip, u16::from_be(name.sin_port))
    }
}

/// Waits until one of `sockets` can be read, for at most `timeout` ms; marks
/// those in `ready`.
pub fn wait(sockets: &mut [libc::pollfd], timeout: i32) -> io::Result<usize> {
    // SAFETY: pointer and length are those of a live slice.
    let n = unsafe { libc::poll(sockets.as_mut_ptr(), sockets.len() as _, timeout) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// A UDP socket with room for everything that may be on its way.
pub fn socket(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    for option in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
        let size: libc::c_int = 8 << 20;
        // SAFETY: the option's value is an int that outlives the call.
        let result = unsafe {
            let value = (&raw const size).cast();
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, option, value, 4)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(socket)
}
