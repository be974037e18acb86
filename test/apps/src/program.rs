// SPDX-License-Identifier: GPL-2.0-or-later
//! How every program begins and ends.

use std::process::ExitCode;

use anyhow::{Context, Result};

/// Takes the real-time priority, if any, runs the program and says what went wrong.
pub fn run(rt: u8, program: impl FnOnce() -> Result<()>) -> ExitCode {
    let result = (|| {
        if rt > 0 {
            linkem::sched::set_fifo(rt).with_context(|| format!("SCHED_FIFO {rt}"))?;
        }
        program()
    })();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
