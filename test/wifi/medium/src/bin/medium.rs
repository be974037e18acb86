// SPDX-License-Identifier: GPL-2.0-or-later
//! The air of the guest, as a program: `medium --access-points N --stations N --control FIFO`.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use lexopt::prelude::*;
use pemi_air::Nanos;
use pemi_wifi::hwsim::Radios;
use pemi_wifi::medium::{Medium, Population};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

const SECOND: Nanos = 1_000_000_000;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("medium: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn options() -> Result<(Population, PathBuf)> {
    let mut population = Population { access_points: 1, stations: 1 };
    let mut control = None;
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("access-points") => population.access_points = parser.value()?.parse()?,
            Long("stations") => population.stations = parser.value()?.parse()?,
            Long("control") => control = Some(parser.value()?.into()),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok((population, control.context("--control FIFO is missing")?))
}

fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * SECOND + time.tv_nsec.cast_unsigned()
}

/// Opened for both ways, so that it does not end when a writer is done.
fn open_control(path: &Path) -> Result<BufReader<File>> {
    let file = OpenOptions::new().read(true).write(true).open(path);
    Ok(BufReader::new(file.with_context(|| path.display().to_string())?))
}

fn run() -> Result<()> {
    let (population, control) = options()?;
    let mut control = open_control(&control)?;
    let mut medium = Medium::new(Radios::register()?, population, now());
    loop {
        let wait = medium.next_event().map(until);
        let mut watched = [
            PollFd::from_borrowed_fd(medium.radios().as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(control.get_ref().as_fd(), PollFlags::IN),
        ];
        poll(&mut watched, wait.as_ref())?;
        let [frames, command] = watched.map(|one| !one.revents().is_empty());
        // What has happened by now has, whoever sends something new.
        medium.carry(now())?;
        if frames {
            medium.take(now())?;
        }
        if command {
            let mut line = String::new();
            control.read_line(&mut line)?;
            medium.obey(&line, now())?;
        }
    }
}

fn until(at: Nanos) -> Timespec {
    let left = at.saturating_sub(now());
    Timespec { tv_sec: (left / SECOND).cast_signed(), tv_nsec: (left % SECOND).cast_signed() }
}
