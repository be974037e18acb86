// SPDX-License-Identifier: GPL-2.0-or-later
//! Emulates a link between two network interfaces; see `--help`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use linkem::Direction;
use linkem::cli::{self, Command, Options};
use linkem::forward::Forwarder;
use linkem::link::Link;
use linkem::packet_io::Port;
use linkem::pipe::Pipe;
use linkem::sched;
use linkem::totals::Totals;
use linkem::truth::Truth;
use linkem::wifi::Wifi;

/// Options that make no sense, and files that are not there.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let result = match cli::parse(std::env::args_os().skip(1)) {
        Ok(Command::Help) => {
            println!("{}", cli::HELP);
            Ok(())
        }
        Ok(Command::Version) => {
            println!("linkem {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Ok(Command::Run(options)) => run(*options).map_err(|error| (ExitCode::FAILURE, error)),
        Err(error) => Err((ExitCode::from(USAGE), error)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, error)) => {
            eprintln!("linkem: {error:#}");
            code
        }
    }
}

fn run(options: Options) -> Result<()> {
    // Threads inherit the signal mask, so it comes first; the log's thread must
    // not inherit the priority, so that comes last.
    let stop = sched::termination_fd().context("signals")?;
    let [a, b] = &options.interfaces;
    let ports = [Port::open(a)?, Port::open(b)?];
    let truth = options
        .log
        .map(|path| {
            Truth::create(&path).with_context(|| format!("cannot create {}", path.display()))
        })
        .transpose()?;
    if let Err(error) = sched::set_exact_timers() {
        eprintln!("linkem: warning: timer slack: {error}");
    }
    if options.rt > 0
        && let Err(error) = sched::set_fifo(options.rt)
    {
        eprintln!("linkem: warning: SCHED_FIFO {}: {error}", options.rt);
    }
    let start = sched::monotonic();
    let link = match options.wifi {
        Some(wifi) => Link::Wifi(Box::new(Wifi::new(&wifi, 1, options.seed, start))),
        None => {
            let [ab, ba] = options.settings;
            let pipe = |(settings, direction)| Pipe::new(settings, options.seed, direction, start);
            Link::Pipes(Box::new([(ab, Direction::Ab), (ba, Direction::Ba)].map(pipe)))
        }
    };
    let mut forwarder = Forwarder::new(ports, link, truth, options.lossy_all);
    if options.ready {
        let mut output = std::io::stdout().lock();
        writeln!(output, "ready").and_then(|()| output.flush())?;
    }
    let result = forwarder.run(&stop);
    // The totals are worth having after an error, too.
    let (totals, logged) = forwarder.finish();
    write_totals(&totals, options.totals.as_deref())?;
    result.and(logged)
}

fn write_totals(totals: &Totals, path: Option<&Path>) -> Result<()> {
    let text = serde_json::to_string_pretty(totals)? + "\n";
    match path {
        None => std::io::stdout().write_all(text.as_bytes())?,
        Some(path) => std::fs::write(path, text)
            .with_context(|| format!("cannot write {}", path.display()))?,
    }
    Ok(())
}
