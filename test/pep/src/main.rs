// SPDX-License-Identifier: GPL-2.0-or-later
//! Splits TCP connections; see `--help`.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use pep::cli::{self, Command, Options};
use pep::serve::{Totals, serve};
use pep::sockets;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

/// Options that make no sense.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let options = match cli::parse(std::env::args_os().skip(1)) {
        Ok(Command::Help) => {
            println!("{}", cli::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(Command::Version) => {
            println!("pep {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Ok(Command::Run(options)) => options,
        Err(error) => return complain(&error, ExitCode::from(USAGE)),
    };
    for name in [&options.cc_client, &options.cc_server].into_iter().flatten() {
        if let Err(error) = sockets::check_congestion(name) {
            return complain(&error, ExitCode::from(USAGE));
        }
    }
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error, ExitCode::FAILURE),
    }
}

fn complain(error: &anyhow::Error, code: ExitCode) -> ExitCode {
    eprintln!("pep: {error:#}");
    code
}

fn run(options: Options) -> Result<()> {
    if options.rt > 0
        && let Err(error) = linkem::sched::set_fifo(options.rt)
    {
        eprintln!("pep: warning: SCHED_FIFO {}: {error}", options.rt);
    }
    let totals = Arc::new(Totals::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(until_stopped(&Arc::new(options.clone()), &totals))?;
    let text = serde_json::to_string_pretty(&*totals)? + "\n";
    match options.totals {
        None => std::io::stdout().write_all(text.as_bytes())?,
        Some(path) => std::fs::write(&path, text)
            .with_context(|| format!("cannot write {}", path.display()))?,
    }
    Ok(())
}

async fn until_stopped(options: &Arc<Options>, totals: &Arc<Totals>) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let [v4, v6] = sockets::listeners(options.port, options.cc_client.as_deref())?;
    let slots = Arc::new(Semaphore::new(options.connections));
    if options.ready {
        let mut output = std::io::stdout().lock();
        writeln!(output, "ready").and_then(|()| output.flush())?;
    }
    let all = |listener| serve(listener, options.clone(), slots.clone(), totals.clone());
    tokio::select! {
        () = all(v4) => {}
        () = all(v6) => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
