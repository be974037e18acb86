// SPDX-License-Identifier: GPL-2.0-or-later
//! What is seldom asked for on a router is a program of its own, `pemi-tools`, which `pemi` becomes
//! when it is asked: a router with 8 MB of flash has no room for it.

use std::env;
use std::ffi::OsString;

use lexopt::prelude::*;

use crate::command::arguments::number;
use crate::command::{cli, replay};
use crate::sys::child;

/// What the command line of `pemi-tools` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Measure: through the queue as well, for so many seconds.
    Bench(bool, u64),
    /// Show the engine a capture.
    Replay(replay::Options),
    /// Print what can be configured; in JSON or for people.
    Options(bool),
    /// Print this help.
    Help(String),
    /// Print the version.
    Version,
}

/// Reads the arguments after the name of the program.
pub fn parse(args: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Tool, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(args);
    let name = match parser.next()? {
        Some(Value(name)) => name.string()?,
        Some(Long("version") | Short('V')) => return Ok(Tool::Version),
        Some(Long("help") | Short('h')) | None => return Ok(Tool::Help(help())),
        Some(other) => return Err(other.unexpected()),
    };
    match name.as_str() {
        "bench" => bench(parser),
        "options" => options(parser),
        "replay" => Ok(match replay::options::parse(parser)? {
            Some(options) => Tool::Replay(options),
            None => Tool::Help(replay::options::HELP.into()),
        }),
        "help" => Ok(Tool::Help(help())),
        other => {
            Err(format!("command '{other}' is not known; known: {}", cli::TOOLS.join(", ")).into())
        }
    }
}

/// The lines that `pemi help` has of these.
fn help() -> String {
    cli::TOOLS.iter().map(|tool| cli::help_of(tool)).collect()
}

fn bench(mut parser: lexopt::Parser) -> Result<Tool, lexopt::Error> {
    let (mut queue, mut seconds) = (false, 5);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("queue") => queue = true,
            Long("seconds") => seconds = number(&mut parser, "--seconds", 1, 60)?,
            Long("help") | Short('h') => return Ok(Tool::Help(cli::help_of("bench"))),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Tool::Bench(queue, seconds))
}

fn options(mut parser: lexopt::Parser) -> Result<Tool, lexopt::Error> {
    let mut json = false;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("json") => json = true,
            Long("help") | Short('h') => return Ok(Tool::Help(cli::help_of("options"))),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Tool::Options(json))
}

/// Becomes `pemi-tools` with these arguments. It comes back only if that fails, with the reason.
pub fn hand_over(mut args: Vec<OsString>) -> String {
    // As this one was called: from a folder, or from where programs are looked for.
    let mut program = env::args_os().next().unwrap_or_default();
    program.push("-tools");
    args.insert(0, program);
    let error = child::replace_by(args, None);
    format!("this command is in the package pemi-tools, which cannot be run: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_each_is_asked() {
        assert_eq!(parse(["bench", "--queue"]).unwrap(), Tool::Bench(true, 5));
        assert_eq!(parse(["bench", "--seconds", "9"]).unwrap(), Tool::Bench(false, 9));
        assert!(matches!(parse(["replay", "-"]).unwrap(), Tool::Replay(_)));
        let asked = parse(["replay", "--help"]).unwrap();
        assert_eq!(asked, Tool::Help(replay::options::HELP.into()));
        let Tool::Help(bench) = parse(["bench", "--help"]).unwrap() else { panic!() };
        assert!(bench.contains("--seconds") && !bench.contains("replay"), "{bench}");
        assert_eq!(parse([] as [&str; 0]).unwrap(), Tool::Help(help()));
        assert_eq!(parse(["--version"]).unwrap(), Tool::Version);
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (args, part) in [
            ("bench --seconds 0", "1 to 60"),
            ("bench --magic", "--magic"),
            ("options --uci", "--uci"),
            ("status", "known: options, replay, bench"),
        ] {
            let error = parse(args.split(' ')).unwrap_err().to_string();
            assert!(error.contains(part), "{args}: {error}");
        }
    }
}
