// SPDX-License-Identifier: GPL-2.0-or-later
//! Clocks, waiting, signals and priority of this process.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::Nanos;

/// Turns the result of a system call into an [`io::Result`].
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn clock(id: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the call to fill in.
    let result = unsafe { libc::clock_gettime(id, &mut time) };
    assert_eq!(result, 0, "the clock exists on every Linux");
    nanos(time)
}

/// A timespec after the epoch of its clock in nanoseconds.
pub(crate) fn nanos(time: libc::timespec) -> Nanos {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC.
pub fn monotonic() -> Nanos {
    clock(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME, which the kernel stamps packets with.
pub fn realtime() -> Nanos {
    clock(libc::CLOCK_REALTIME)
}

/// Waits until one of `fds` is readable or in error, or for `timeout` (without
/// one: for ever); tells which.
pub fn wait<const N: usize>(fds: [BorrowedFd; N], timeout: Option<Nanos>) -> io::Result<[bool; N]> {
    let mut polled =
        fds.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let timeout = timeout.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let timeout: *const libc::timespec = timeout.as_ref().map_or(std::ptr::null(), |t| t);
    // SAFETY: `polled` has N entries, `timeout` is null or points to a timespec
    // that lives until the end of this function; no signal mask is given.
    let result =
        unsafe { libc::ppoll(polled.as_mut_ptr(), N as libc::nfds_t, timeout, std::ptr::null()) };
    match check(result) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        Err(error) => Err(error),
        Ok(_) => Ok(polled.map(|fd| fd.revents != 0)),
    }
}

/// From now on SIGTERM and SIGINT only make the returned descriptor readable.
/// To be called before threads are started, which inherit it.
pub fn termination_fd() -> io::Result<OwnedFd> {
    // SAFETY: an all-zero sigset_t is a valid object, made empty before use;
    // the descriptor is new and owned by nobody else.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        check(libc::sigemptyset(&mut set))?;
        check(libc::sigaddset(&mut set, libc::SIGTERM))?;
        check(libc::sigaddset(&mut set, libc::SIGINT))?;
        let blocked = libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        if blocked != 0 {
            return Err(io::Error::from_raw_os_error(blocked));
        }
        let fd = check(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Puts the calling thread into SCHED_FIFO.
pub fn set_fifo(priority: u8) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority.into() };
    // SAFETY: `parameter` is valid for the call; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameter) })?;
    Ok(())
}

/// Lets timers of the calling thread be exact also without real-time priority
/// (the default is up to 50 us late).
pub fn set_exact_timers() -> io::Result<()> {
    // SAFETY: takes an integer, no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0) })?;
    Ok(())
}
