// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line, and the commands that are not the daemon.

pub(crate) mod arguments;
pub mod ask;
pub mod bench;
pub mod check;
pub mod cli;
pub mod options;
pub mod replay;
pub mod show;
pub mod tools;

use std::io::Write;
use std::process::ExitCode;

/// How a program ends, and what it says of a failure.
pub fn ended(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.lines().for_each(|line| eprintln!("ERROR {line}"));
            ExitCode::FAILURE
        }
    }
}

/// Unlike `print!` this is no reason to panic: `pemi flows | head -1`.
pub fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
