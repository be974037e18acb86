// SPDX-License-Identifier: GPL-2.0-or-later
//! Signals as something to poll for.

use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};
use std::ptr;

/// What the daemon is asked by signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM, SIGINT: stop in good order.
    Stop,
    /// SIGHUP: read the configuration again.
    Reload,
}

/// The signals of the process, taken from now on by [`Signals::pending`] alone.
#[derive(Debug)]
pub struct Signals(File);

impl Signals {
    /// Blocks the signals in this thread and in those it starts afterwards.
    pub fn take() -> io::Result<Signals> {
        // SAFETY: plain calls on a signal set that lives here.
        let fd = unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else knows.
        Ok(Signals(unsafe { File::from_raw_fd(fd) }))
    }

    /// The next signal that has arrived; does not wait.
    pub fn pending(&mut self) -> Option<Signal> {
        let mut info = [0; mem::size_of::<libc::signalfd_siginfo>()];
        self.0.read_exact(&mut info).ok()?;
        let number = info.first_chunk().copied().map(i32::from_ne_bytes)?;
        Some(if number == libc::SIGHUP { Signal::Reload } else { Signal::Stop })
    }
}

/// Whether one has arrived that asks to stop. It stays to be taken.
pub fn is_stop_pending() -> bool {
    // SAFETY: plain calls on a signal set that lives here.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigpending(&raw mut set) == 0
            && [libc::SIGTERM, libc::SIGINT]
                .into_iter()
                .any(|signal| libc::sigismember(&raw const set, signal) == 1)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
