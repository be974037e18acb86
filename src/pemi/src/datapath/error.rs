// SPDX-License-Identifier: GPL-2.0-or-later
//! Why packets cannot be looked after.

use std::fmt::{self, Display};
use std::io;

use crate::datapath::nfqueue::KernelCounters;

/// What went wrong with a queue or with the thread that looks after it.
#[derive(Debug)]
pub(crate) enum Error {
    /// The queue, or a socket beside it, cannot be had.
    Refused {
        /// Number of the queue.
        queue: u16,
        /// What the kernel says.
        error: io::Error,
        /// What the kernel's list says of the queue, if it is in there and may be read.
        taken: Option<KernelCounters>,
        /// Whether this process has the rights that are needed.
        entitled: bool,
    },
    /// There is no eventfd to wake a thread with.
    Waker(io::Error),
    /// The thread cannot be started.
    Thread(io::Error),
    /// The thread has not answered for a long time.
    Silent {
        /// Number of its queue.
        queue: u16,
        /// For how many seconds.
        seconds: u32,
    },
    /// The thread has ended by itself.
    Gone {
        /// Number of its queue.
        queue: u16,
    },
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused { queue, error, taken, entitled } => {
                write!(f, "queue {queue}: {error}: ")?;
                refused(f, error, *taken, *entitled)
            }
            Error::Waker(error) => write!(f, "eventfd: {error}"),
            Error::Thread(error) => write!(f, "thread: {error}"),
            Error::Silent { queue, seconds } => write!(
                f,
                "queue {queue}: its thread has not answered for {seconds} s; the service has to \
                 start anew"
            ),
            Error::Gone { queue } => {
                write!(f, "queue {queue} is gone; packets pass unhelped until the service restarts")
            }
        }
    }
}

/// Says what helps. The kernel refuses a queue that is taken and a lack of rights alike
/// (EPERM), so its list of queues has to tell which it is. Only root can read that list;
/// another user's process still knows whether it has the rights.
fn refused(
    f: &mut fmt::Formatter<'_>,
    error: &io::Error,
    taken: Option<KernelCounters>,
    entitled: bool,
) -> fmt::Result {
    if taken.is_some() || error.raw_os_error() == Some(libc::EPERM) && entitled {
        f.write_str("another program has it")?;
        if let Some(taken) = taken {
            write!(f, " (process {}, most likely)", taken.owner)?;
        }
        return f.write_str(
            ": is another pemi running? Otherwise choose another number (option queue)",
        );
    }
    f.write_str(match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "CAP_NET_ADMIN and CAP_NET_RAW are needed: run as root or give them"
        }
        Some(libc::EPROTONOSUPPORT | libc::EOPNOTSUPP | libc::ENOENT | libc::EINVAL) => {
            "the kernel has no NFQUEUE support: install kmod-nft-queue"
        }
        _ => "see the kernel log",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_taken_is_told_from_a_lack_of_rights() {
        let text = |errno, taken, entitled| {
            let error = io::Error::from_raw_os_error(errno);
            Error::Refused { queue: 7, error, taken, entitled }.to_string()
        };
        let taken = KernelCounters { owner: 4242, ..KernelCounters::default() };
        let told = text(libc::EPERM, Some(taken), true);
        assert!(told.contains("queue 7") && told.contains("process 4242"), "{told}");
        let told = text(libc::EPERM, None, false);
        assert!(told.contains("queue 7") && told.contains("CAP_NET_ADMIN"), "{told}");
        let told = text(libc::EPERM, None, true);
        assert!(told.contains("another program has it: is another pemi"), "{told}");
        let told = text(libc::ENOENT, None, true);
        assert!(told.contains("kmod-nft-queue"), "{told}");
    }
}
