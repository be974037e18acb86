// SPDX-License-Identifier: GPL-2.0-or-later
//! The binding to libmnl and libnetfilter_queue: no more than is used.
//!
//! The libraries know the messages to the kernel; what comes from the kernel
//! is read by [`super::message`], in safe code.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::{self, NonNull};

/// libmnl's socket; opaque.
#[repr(C)]
struct MnlSocket {
    _opaque: [u8; 0],
}

#[link(name = "mnl")]
unsafe extern "C" {
    fn mnl_socket_open2(bus: c_int, flags: c_int) -> *mut MnlSocket;
    fn mnl_socket_bind(socket: *mut MnlSocket, groups: c_uint, pid: libc::pid_t) -> c_int;
    fn mnl_socket_close(socket: *mut MnlSocket) -> c_int;
    fn mnl_socket_get_fd(socket: *const MnlSocket) -> c_int;
    fn mnl_socket_sendto(socket: *const MnlSocket, message: *const c_void, len: usize) -> isize;
    fn mnl_socket_recvfrom(socket: *const MnlSocket, buffer: *mut c_void, len: usize) -> isize;
    fn mnl_attr_put_u32(message: *mut libc::nlmsghdr, kind: u16, data: u32);
}

#[link(name = "netfilter_queue")]
unsafe extern "C" {
    fn nfq_nlmsg_put(buffer: *mut c_char, kind: c_int, queue: u32) -> *mut libc::nlmsghdr;
    fn nfq_nlmsg_cfg_put_cmd(message: *mut libc::nlmsghdr, family: u16, command: u8);
    fn nfq_nlmsg_cfg_put_params(message: *mut libc::nlmsghdr, mode: u8, range: c_int);
    fn nfq_nlmsg_cfg_put_qmaxlen(message: *mut libc::nlmsghdr, len: u32);
    fn nfq_nlmsg_verdict_put(message: *mut libc::nlmsghdr, id: c_int, verdict: c_int);
    fn nfq_nlmsg_verdict_put_mark(message: *mut libc::nlmsghdr, mark: u32);
}

/// Room, in 32-bit words, that is enough for any message built here: netlink
/// and nfnetlink headers (20 bytes) and at most five attributes of 12 bytes.
pub(crate) const MESSAGE_WORDS: usize = 20;

/// Where a verdict's message has the packet's number: after the headers (20 bytes), that of the
/// attribute and the verdict itself.
const ID_WORD: usize = 7;

/// A netlink socket to the kernel's packet queues.
#[derive(Debug)]
pub(crate) struct Socket(NonNull<MnlSocket>);

// SAFETY: the pointer is owned by this value alone and libmnl keeps no state
// of the thread that opened the socket.
unsafe impl Send for Socket {}

impl Socket {
    /// Opens and binds a socket with an address chosen by the kernel.
    pub fn open() -> io::Result<Socket> {
        // SAFETY: no pointers go in; what comes out is checked below.
        let raw = unsafe { mnl_socket_open2(libc::NETLINK_NETFILTER, libc::SOCK_CLOEXEC) };
        let socket = Socket(NonNull::new(raw).ok_or_else(io::Error::last_os_error)?);
        // SAFETY: the socket is open; 0 asks the kernel to choose the address.
        if unsafe { mnl_socket_bind(socket.0.as_ptr(), 0, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(socket)
    }

    /// Sends whole messages; the kernel has acted on them on return.
    pub fn send(&self, messages: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer and length are those of a live slice.
        let sent =
            unsafe { mnl_socket_sendto(self.0.as_ptr(), messages.as_ptr().cast(), messages.len()) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Waits for one datagram.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the pointer and length are those of a live, writable slice.
        let got = unsafe {
            mnl_socket_recvfrom(self.0.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
        };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }

    /// Takes the beginning of one datagram, as much as fits; does not wait.
    pub fn receive_head(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the pointer and length are those of a live, writable slice.
        let got = unsafe {
            libc::recv(
                self.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
            )
        };
        usize::try_from(got).map_err(|_| io::Error::last_os_error())
    }

    /// Takes what is waiting, one datagram a slot of `slot` bytes, as many as
    /// `lengths` has room for, and notes their lengths. Does not wait.
    pub fn receive_batch<const N: usize>(
        &self,
        buffer: &mut [u8],
        slot: usize,
        lengths: &mut [usize; N],
    ) -> io::Result<usize> {
        // SAFETY: both are plain C structs for which all zeroes is valid.
        let (mut vectors, mut headers): ([libc::iovec; N], [libc::mmsghdr; N]) =
            unsafe { std::mem::zeroed() };
        let mut count = 0;
        for ((chunk, vector), header) in
            buffer.chunks_exact_mut(slot).zip(&mut vectors).zip(&mut headers)
        {
            vector.iov_base = chunk.as_mut_ptr().cast();
            vector.iov_len = chunk.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        // SAFETY: each of the `count` headers points to one vector, which
        // points to a part of `buffer` of its own; all outlive the call.
        let got = unsafe {
            libc::recvmmsg(
                self.as_raw_fd(),
                headers.as_mut_ptr(),
                count as c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        for (length, header) in lengths.iter_mut().zip(&headers[..got]) {
            *length = (header.msg_len as usize).min(slot);
        }
        Ok(got)
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: the socket is open as long as this value lives.
        unsafe { mnl_socket_get_fd(self.0.as_ptr()) }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: this value owns the socket and is gone afterwards.
        unsafe { mnl_socket_close(self.0.as_ptr()) };
    }
}

/// Writes the message that binds `queue`, with its length limit, whole
/// packets and fail-open, in one: a queue that is bound but not yet configured
/// would lose packets. The kernel is asked to acknowledge it. Returns the
/// number of bytes.
pub(crate) fn put_bind(buffer: &mut [u32; MESSAGE_WORDS], queue: u16, max_len: u32) -> usize {
    // SAFETY: the buffer is aligned for a netlink header and has room for the
    // four attributes; libnetfilter_queue writes nowhere else and the pointer
    // it returns is to the start of the buffer.
    unsafe {
        let message = nfq_nlmsg_put(
            buffer.as_mut_ptr().cast(),
            libc::NFQNL_MSG_CONFIG as c_int,
            queue.into(),
        );
        nfq_nlmsg_cfg_put_cmd(message, libc::AF_UNSPEC as u16, libc::NFQNL_CFG_CMD_BIND as u8);
        nfq_nlmsg_cfg_put_params(message, libc::NFQNL_COPY_PACKET as u8, 0xffff);
        nfq_nlmsg_cfg_put_qmaxlen(message, max_len);
        let fail_open = libc::NFQA_CFG_F_FAIL_OPEN as u32;
        mnl_attr_put_u32(message, libc::NFQA_CFG_MASK as u16, fail_open.to_be());
        mnl_attr_put_u32(message, libc::NFQA_CFG_FLAGS as u16, fail_open.to_be());
        (*message).nlmsg_flags |= libc::NLM_F_ACK as u16;
        (*message).nlmsg_len as usize
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    /// It goes on; with a new mark, if one is given, through the hook in which it waits once more.
    Accept {
        /// The mark.
        mark: Option<u32>,
    },
    /// It goes on, and all others that wait and have a lower number.
    AcceptAll,
    /// It is gone.
    Drop,
}

/// Has the message with a verdict, which [`put_verdict`] wrote, name packet `id` instead.
///
/// # Panics
/// If there is no message.
pub(crate) fn renumber(message: &mut [u32], id: u32) {
    message[ID_WORD] = id.to_be();
}

/// Writes the message with the verdict on packet `id`. Returns the number of bytes, a multiple of
/// four.
///
/// # Panics
/// If the buffer is shorter than [`MESSAGE_WORDS`].
pub(crate) fn put_verdict(buffer: &mut [u32], queue: u16, id: u32, verdict: Verdict) -> usize {
    let kind = match verdict {
        Verdict::AcceptAll => libc::NFQNL_MSG_VERDICT_BATCH,
        _ => libc::NFQNL_MSG_VERDICT,
    };
    let (verdict, mark) = match verdict {
        Verdict::Accept { mark: None } | Verdict::AcceptAll => (libc::NF_ACCEPT, None),
        Verdict::Accept { mark } => (libc::NF_REPEAT, mark),
        Verdict::Drop => (libc::NF_DROP, None),
    };
    assert!(buffer.len() >= MESSAGE_WORDS);
    // SAFETY: as in `put_bind`; the room was checked above.
    unsafe {
        let message = nfq_nlmsg_put(buffer.as_mut_ptr().cast(), kind as c_int, queue.into());
        nfq_nlmsg_verdict_put(message, id.cast_signed(), verdict);
        if let Some(mark) = mark {
            nfq_nlmsg_verdict_put_mark(message, mark);
        }
        (*message).nlmsg_len as usize
    }
}
