// SPDX-License-Identifier: GPL-2.0-or-later
//! Why Sidekick does not run.

use std::fmt::{self, Display};
use std::io;

/// What it lacks. Where an option has to do with it, the text names the option.
#[derive(Debug)]
pub(crate) enum Error {
    /// There is no eventfd to wake the thread with.
    Waker(io::Error),
    /// The thread cannot be started.
    Thread(io::Error),
    /// The UDP port cannot be had.
    Port(u16, io::Error),
    /// Packets cannot be looked at.
    Tap(io::Error),
    /// There are no random numbers.
    Random(io::Error),
    /// The thread has ended with an error.
    Failed(io::Error),
    /// The thread has ended without saying why.
    Ended,
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Waker(error) => write!(f, "sidekick: eventfd: {error}"),
            Error::Thread(error) => write!(f, "sidekick: thread: {error}"),
            Error::Port(port, error) => {
                let likely = match error.raw_os_error() {
                    Some(libc::EADDRINUSE) => ": another program has it; choose another one",
                    Some(libc::EACCES) => ": those below 1024 are root's; choose another one",
                    _ => "",
                };
                write!(f, "option 'sidekick.port': UDP port {port}: {error}{likely}")
            }
            Error::Tap(error) => write!(
                f,
                "option 'sidekick.enabled': packets cannot be looked at: {error}: CAP_NET_RAW and \
                 a kernel with packet sockets are needed"
            ),
            Error::Random(error) => write!(f, "sidekick: random numbers: {error}"),
            Error::Failed(error) => write!(f, "sidekick: {error}"),
            Error::Ended => f.write_str("sidekick: its thread ended"),
        }
    }
}
