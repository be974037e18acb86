// SPDX-License-Identifier: GPL-2.0-or-later
//! What a worker asks of the scheduler and the memory manager.

use std::io;
use std::mem;

/// Wakes this thread at the moment asked for; the default is up to 50 us later.
pub fn exact_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes a number, no pointers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

/// Puts this thread into the real-time class SCHED_FIFO.
pub fn realtime(priority: u8) -> io::Result<()> {
    // SAFETY: a plain C struct for which all zeroes is valid.
    let mut parameters: libc::sched_param = unsafe { mem::zeroed() };
    parameters.sched_priority = priority.into();
    // SAFETY: this thread, and a live struct. (musl's sched_setscheduler is a
    // stub, so the call of the pthread interface it is.)
    let error = unsafe {
        libc::pthread_setschedparam(libc::pthread_self(), libc::SCHED_FIFO, &raw const parameters)
    };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Keeps in memory what is in memory and, of what is mapped now, what gets
/// there. Without MCL_ONFAULT all of the stacks and buffers would become
/// resident; with MCL_FUTURE an allocation beyond RLIMIT_MEMLOCK would fail.
pub fn lock_memory() -> io::Result<()> {
    // SAFETY: no pointers.
    let result = unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets the file mode mask and returns the one before.
pub fn set_umask(mask: u32) -> u32 {
    // SAFETY: no pointers; cannot fail.
    #[allow(clippy::useless_conversion, reason = "mode_t is 16 bits wide on some targets")]
    u32::from(unsafe { libc::umask(mask as libc::mode_t) })
}
