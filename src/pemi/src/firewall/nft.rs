// SPDX-License-Identifier: GPL-2.0-or-later
//! The program `nft`, which every router with a firewall has.
//!
//! The thread that runs it serves signals, too. So the program has a deadline, and a shorter
//! one when a signal to stop comes meanwhile.

use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pemi_engine::{MS, Nanos};

use crate::sys::child::{self, Child, Pipes};
use crate::sys::poll::{self, Interest};
use crate::sys::signals;

const NFT: &str = "/usr/sbin/nft";
/// A slow router loads our rules in a tenth of a second; others may hold the kernel's lock
/// of its rules meanwhile.
const DEADLINE: Duration = Duration::from_secs(3);
/// The time that `nft` has left when a signal to stop comes. Together with the time for taking
/// the rules out it is less than the second that SIGTERM may take.
const HURRY: Duration = Duration::from_millis(250);
/// The time for taking the rules out.
pub const FAREWELL: Duration = Duration::from_millis(500);
/// The time that a killed `nft` gets to be gone.
const BURIAL: Duration = Duration::from_millis(40);
/// Between two looks whether the daemon is to stop.
const LOOK: Nanos = 20 * MS;
/// Bytes that are kept of what `nft` says.
const MAX_SAID: u64 = 4096;

/// Why `nft` has not done what it was asked.
#[derive(Debug)]
pub(crate) enum Error {
    /// The program cannot be run.
    NotRun(PathBuf, io::Error),
    /// It took too long.
    Killed(PathBuf),
    /// It has refused, with these words.
    Refused(String),
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotRun(program, error) => {
                write!(f, "{}: {error}; is nftables installed?", program.display())
            }
            Error::Killed(program) => {
                write!(f, "{} did not end in time and was killed", program.display())
            }
            Error::Refused(words) => f.write_str(words),
        }
    }
}

/// Has `nft` carry out `text`.
pub fn nft(text: &str) -> Result<(), Error> {
    within(DEADLINE, text)
}

/// The same in less time, or it is killed.
pub fn within(deadline: Duration, text: &str) -> Result<(), Error> {
    run(Path::new(NFT), deadline, text)
}

fn run(program: &Path, deadline: Duration, text: &str) -> Result<(), Error> {
    let failed = |error| Error::NotRun(program.into(), error);
    let (mut child, Pipes { mut stdin, stderr: said }) =
        child::start(program, &["-f", "-"]).map_err(failed)?;
    // If nft ends early it says why. Rules are a few KB, for which the pipe has room.
    let _ = stdin.write_all(text.as_bytes());
    drop(stdin);
    if !ends(&mut child, &said, deadline) {
        child.kill();
        // A process that hangs in the kernel is not gone at once. Nobody waits for it.
        ends(&mut child, &said, BURIAL);
        return Err(Error::Killed(program.into()));
    }
    if child.result().map_err(failed)? == Some(true) {
        return Ok(());
    }
    let mut text = Vec::new();
    let _ = said.take(MAX_SAID).read_to_end(&mut text);
    Err(Error::Refused(complaint(&String::from_utf8_lossy(&text))))
}

/// Waits for its end, unless it takes too long.
fn ends(child: &mut Child, said: &File, deadline: Duration) -> bool {
    let mut end = Instant::now() + deadline;
    let mut told = false;
    loop {
        match child.result() {
            Ok(None) => {}
            // An error means that there is no such child any more.
            Ok(Some(_)) | Err(_) => return true,
        }
        if !told && signals::is_stop_pending() {
            told = true;
            end = end.min(Instant::now() + HURRY);
        }
        if Instant::now() >= end {
            return false;
        }
        // Its end closes its standard error. Before that it may say something, which is
        // read afterwards: there is room for more than is kept.
        let _ = poll::wait(&mut [Interest::end(said)], Some(LOOK));
    }
}

/// The first thing that `nft` says, with the statement that it is about. The place of that
/// statement is left out: it means nothing to a reader, and is another one at the next attempt.
fn complaint(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or("nft says nothing");
    let mut said = first.split_once("Error: ").map_or(first, |(_, said)| said).to_string();
    if let Some(statement) = lines.next() {
        said.push_str(": ");
        said.push_str(statement.trim());
        if statement.contains("queue") && said.contains("No such file") {
            said.push_str(" (the kernel has no nft queue: install kmod-nft-queue)");
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// A program in the place of nft; it gets a deadline of so many milliseconds.
    fn fake(name: &str, script: &str, millis: u64) -> Result<(), String> {
        let path = std::env::temp_dir().join(format!("pemi-nft-{}-{name}", std::process::id()));
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let result = run(&path, Duration::from_millis(millis), "text\n").map_err(|e| e.to_string());
        fs::remove_file(&path).unwrap();
        result
    }

    #[test]
    fn what_does_not_end_is_killed() {
        let start = Instant::now();
        let error = fake("hangs", "exec sleep 20", 100).unwrap_err();
        assert!(error.contains("did not end in time"), "{error}");
        // Its output is closed, and it goes on.
        assert!(fake("closed", "exec 2>&-; exec sleep 20", 100).is_err());
        assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    }

    #[test]
    fn what_ends_in_time_tells_how() {
        assert_eq!(fake("good", "read text; test $text = text; echo fine >&2", 20_000), Ok(()));
        let error = fake("bad", "echo 'x: Error: no' >&2; echo ' why' >&2; exit 1", 20_000);
        assert_eq!(error, Err("no: why".into()));
        let much = "head -c 20000 /dev/zero | tr '\\0' x >&2; exit 1";
        assert_eq!(fake("much", much, 20_000).unwrap_err().len(), 4096);
    }

    #[test]
    fn a_complaint_is_the_same_wherever_the_statement_stands() {
        for place in ["/dev/stdin:13:11-36: ", "/dev/stdin:15:11-36: "] {
            let text = format!(
                "{place}Error: Could not process rule: No such file or directory\n\
                 \t\tcounter queue flags bypass to 5443\n\t\t        ^^^^^\n"
            );
            assert_eq!(
                complaint(&text),
                "Could not process rule: No such file or directory: counter queue flags bypass \
                 to 5443 (the kernel has no nft queue: install kmod-nft-queue)"
            );
        }
        assert_eq!(
            complaint("netlink: Operation not permitted\n"),
            "netlink: Operation not permitted"
        );
        assert_eq!(complaint(""), "nft says nothing");
    }
}
