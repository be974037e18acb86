// SPDX-License-Identifier: GPL-2.0-or-later
//! `pemi run`: opens what the daemon needs, starts what runs beside the main thread, serves,
//! and closes everything in good order.

use std::env;

use crate::config::flags::RunOptions;
use crate::daemon::open::open;
use crate::daemon::serve::End;
use crate::daemon::start::{close, start};
use crate::log::logger;
use crate::sys::{child, seccomp};

/// Runs until it is told to stop; the error is for standard error.
pub fn run(options: RunOptions) -> Result<(), String> {
    logger::init(options.log_level());
    let opened = open(&options)?;
    let (mut daemon, mut doors, writer) = start(opened, options)?;
    let end = daemon.serve(&mut doors);
    close(daemon, doors, writer);
    match end? {
        End::Stop => Ok(()),
        End::Restart => Err(again()),
    }
}

/// Starts the same program with the same arguments in the place of this one.
/// It comes back only if that fails, with the reason.
fn again() -> String {
    let error = child::replace_by(env::args_os().collect(), Some((seccomp::IN_FORCE, "1")));
    let program = env::args_os().next().unwrap_or_default();
    format!("{} cannot be started again: {error}", program.display())
}
