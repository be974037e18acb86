// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's side of a guard: memory for two processes, and a child.

use std::ffi::{CStr, c_int};
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

use crate::sys::{privileges, sched};

/// Memory that this process and its children share from now on, for good. It is zero.
pub fn shared<const N: usize>() -> io::Result<&'static [AtomicU32; N]> {
    // SAFETY: a new mapping at a place of the kernel's choice.
    let at = unsafe {
        libc::mmap(
            ptr::null_mut(),
            mem::size_of::<[AtomicU32; N]>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let at = NonNull::new(at).ok_or(io::ErrorKind::OutOfMemory)?;
    // SAFETY: the mapping is as long as the array, page-aligned, zero, which is valid for
    // numbers, and never unmapped.
    Ok(unsafe { at.cast().as_ref() })
}

/// The number of no process.
const NOBODY: libc::pid_t = 0;

/// A child process; it ends with the value.
#[derive(Debug)]
pub struct Child(libc::pid_t);

/// Starts a copy of this process that does `work` and ends. Between the two is a stream that
/// nobody writes to: each side sees it closed when the other one has ended.
///
/// To be called while there is one thread only: the copy has that one alone, and what
/// another one had locked would stay so.
pub fn fork(work: impl FnOnce(&UnixStream)) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    // SAFETY: there are no other threads, so the copy may do whatever this process may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // Its copy, which would keep the stream open.
            drop(ours);
            work(&theirs);
            // SAFETY: no pointers. What the parent has to do at its end is not done here.
            unsafe { libc::_exit(0) }
        }
        child => Ok((Child(child), ours)),
    }
}

/// Closes a descriptor whose owner is not used any more: the process is about to end
/// without its destructors, see [`fork`].
pub fn close(owner: &impl AsRawFd) {
    // SAFETY: nothing uses the descriptor after this, and nothing is opened in its place.
    unsafe { libc::close(owner.as_raw_fd()) };
}

impl Child {
    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        let ended = self.0 != NOBODY && self.wait(libc::WNOHANG) != 0;
        if ended {
            // The number may be another process's from now on.
            self.0 = NOBODY;
        }
        ended
    }

    fn wait(&self, options: c_int) -> libc::pid_t {
        // SAFETY: a child of this process; how it ended is not asked for.
        unsafe { libc::waitpid(self.0, ptr::null_mut(), options) }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.0 != NOBODY {
            // SAFETY: no pointers; the number of a child that was not waited for.
            unsafe { libc::kill(self.0, libc::SIGKILL) };
            self.wait(0);
        }
    }
}

/// Makes a process of its own of a new child: a name, a priority, no more rights than
/// verdicts take, and no standard output, whose reader would wait for it to be closed.
pub fn settle(name: &CStr, priority: Option<u8>) {
    if let Some(priority) = priority {
        // The daemon has said why there is none.
        let _ = sched::realtime(priority);
    }
    let _ = sched::lock_memory();
    if privileges::keep_for_verdicts().is_err() {
        process::abort();
    }
    // SAFETY: a string that ends with a zero byte; a signal's number.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        // Were it stopped when the daemon ends, it could not end.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGCONT as libc::c_ulong);
    }
    for standard in 0..=2 {
        // SAFETY: nothing here writes to them, and nothing is opened in their place.
        unsafe { libc::close(standard) };
    }
}
