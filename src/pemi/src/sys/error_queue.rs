// SPDX-License-Identifier: GPL-2.0-or-later
//! The error queue of a socket, on which the kernel reports what became of Wi-Fi frames
//! (`SO_WIFI_STATUS`), each with the frame itself.

use std::ffi::{c_int, c_uint};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use crate::sys::socket;

/// Reports taken at a time.
pub(crate) const BATCH: usize = 16;
/// Bytes of a frame that are of use: its headers and some of what follows.
const FRAME: usize = 256;
/// Room for the control messages of one report: the status, and an error with an address.
const CONTROL: usize = 128;

/// Asks for reports of what the socket sends.
pub(crate) fn want_wifi_status(fd: BorrowedFd<'_>) -> io::Result<()> {
    socket::set_option(fd, libc::SOL_SOCKET, libc::SO_WIFI_STATUS, &[1])
}

/// Aligned as the kernel wants it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Room for a batch of reports.
pub(crate) struct Inbox {
    frames: Box<[[u8; FRAME]; BATCH]>,
    controls: Box<[Control; BATCH]>,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Inbox")
    }
}

impl Inbox {
    /// An empty one.
    pub fn new() -> Inbox {
        Inbox {
            frames: Box::new([[0; FRAME]; BATCH]),
            controls: Box::new([Control([0; CONTROL]); BATCH]),
        }
    }

    /// Takes what is waiting, as far as there is room; gives how much that was. Of each report
    /// `take` gets the frame, perhaps cut, and whether it was acknowledged. Does not wait.
    pub fn fill(
        &mut self,
        fd: BorrowedFd<'_>,
        mut take: impl FnMut(&[u8], bool),
    ) -> io::Result<usize> {
        // SAFETY: both are plain C structs for which all zeroes is valid.
        let (mut vectors, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { mem::zeroed() };
        for (place, (vector, header)) in vectors.iter_mut().zip(&mut headers).enumerate() {
            vector.iov_base = self.frames[place].as_mut_ptr().cast();
            vector.iov_len = FRAME;
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = self.controls[place].0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL as _;
        }
        // SAFETY: each header points to one vector and one control, which are its own; all
        // outlive the call.
        let got = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                headers.as_mut_ptr(),
                BATCH as c_uint,
                (libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) as _,
                ptr::null_mut(),
            )
        };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        for (frame, header) in self.frames.iter().zip(&headers[..got]) {
            if let Some(acknowledged) = wifi_status(&header.msg_hdr) {
                take(&frame[..(header.msg_len as usize).min(FRAME)], acknowledged);
            }
        }
        Ok(got)
    }
}

/// Whether the frame of a report was acknowledged; none if it is no such report.
fn wifi_status(message: &libc::msghdr) -> Option<bool> {
    // SAFETY: the kernel has filled the control messages in and set their length; the pointers
    // to them stay within it.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = at.as_ref() {
            let needed = libc::CMSG_LEN(mem::size_of::<c_int>() as u32) as _;
            if (control.cmsg_level, control.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_WIFI_STATUS)
                && control.cmsg_len >= needed
            {
                return Some(libc::CMSG_DATA(at).cast::<c_int>().read_unaligned() != 0);
            }
            at = libc::CMSG_NXTHDR(message, at);
        }
    }
    None
}
