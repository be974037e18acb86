// SPDX-License-Identifier: GPL-2.0-or-later
//! Waiting for descriptors with a deadline in nanoseconds.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd};
use std::ptr;

use pemi_engine::{Nanos, SEC};

/// A descriptor to wait for and, afterwards, what was found.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct Interest(libc::pollfd);

impl Interest {
    /// Wait until there is something to read.
    pub fn read(fd: &impl AsFd) -> Interest {
        Interest::new(fd, libc::POLLIN)
    }

    /// Wait until there is room to write.
    pub fn write(fd: &impl AsFd) -> Interest {
        Interest::new(fd, libc::POLLOUT)
    }

    /// Wait until the other side is closed.
    pub fn end(fd: &impl AsFd) -> Interest {
        Interest::new(fd, 0)
    }

    /// Wait for nothing: never ready.
    pub fn none() -> Interest {
        Interest(libc::pollfd { fd: -1, events: 0, revents: 0 })
    }

    fn new(fd: &impl AsFd, events: libc::c_short) -> Interest {
        Interest(libc::pollfd { fd: fd.as_fd().as_raw_fd(), events, revents: 0 })
    }

    /// Whether this is one for the end only, which reports are as well.
    pub fn is_end(&self) -> bool {
        self.0.events == 0
    }

    /// Leaves this one out of the next [`wait`].
    pub fn set_aside(&mut self) {
        // What poll(2) does not heed.
        self.0.fd = !self.0.fd;
    }

    /// Takes one that was set aside for ready, so that it is read.
    pub fn take_for_ready(&mut self) {
        self.0.fd = !self.0.fd;
        self.0.revents = libc::POLLERR;
    }

    /// Whether the last [`wait`] found this one ready, or in trouble: reading
    /// or writing will tell.
    pub fn is_ready(&self) -> bool {
        self.0.revents != 0
    }
}

/// Waits until one of `interests` is ready or `timeout` is over.
pub fn wait(interests: &mut [Interest], timeout: Option<Nanos>) -> io::Result<()> {
    let spec = timeout.map(|timeout| {
        let timeout = timeout.max(0);
        libc::timespec {
            tv_sec: (timeout / SEC).min(i32::MAX.into()) as _,
            tv_nsec: (timeout % SEC) as _,
        }
    });
    let spec = spec.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: Interest is a transparent pollfd; the slice is live and writable,
    // the timeout is null or live.
    let result = unsafe {
        libc::ppoll(
            interests.as_mut_ptr().cast(),
            interests.len() as libc::nfds_t,
            spec,
            ptr::null(),
        )
    };
    if result < 0 {
        for interest in interests {
            interest.0.revents = 0;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

/// Lets one thread wake another one out of [`wait`].
#[derive(Debug)]
pub struct Waker(File);

impl Waker {
    /// A new one.
    pub fn new() -> io::Result<Waker> {
        // SAFETY: no pointers; the result is checked.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else knows.
        Ok(Waker(unsafe { File::from_raw_fd(fd) }))
    }

    /// Wakes whoever waits for it. It stays ready until [`Waker::clear`].
    pub fn wake(&self) {
        // Full means that it is ready already.
        let _ = (&self.0).write(&1u64.to_ne_bytes());
    }

    /// Makes it not ready.
    pub fn clear(&self) {
        let _ = (&self.0).read(&mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
