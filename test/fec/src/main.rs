// SPDX-License-Identifier: GPL-2.0-or-later
//! Carries datagrams with an erasure code; see `--help`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result};
use fec::cli::{self, Command, Options};
use fec::shim::Shim;
use tokio::signal::unix::{SignalKind, signal};

/// Options that make no sense.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let result = match cli::parse(std::env::args_os().skip(1)) {
        Ok(Command::Help) => {
            println!("{}", cli::HELP);
            Ok(())
        }
        Ok(Command::Version) => {
            println!("fec {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Ok(Command::Run(options)) => run(options).map_err(|error| (ExitCode::FAILURE, error)),
        Err(error) => Err((ExitCode::from(USAGE), error)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, error)) => {
            eprintln!("fec: {error:#}");
            code
        }
    }
}

fn run(options: Options) -> Result<()> {
    if options.rt > 0
        && let Err(error) = linkem::sched::set_fifo(options.rt)
    {
        eprintln!("fec: warning: SCHED_FIFO {}: {error}", options.rt);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let totals = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let shim = Shim::bind(options.settings).await?;
        if options.ready {
            let mut output = std::io::stdout().lock();
            writeln!(output, "ready").and_then(|()| output.flush())?;
        }
        shim.run(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
        .await
    })?;
    let text = serde_json::to_string_pretty(&totals)? + "\n";
    match options.totals {
        None => std::io::stdout().write_all(text.as_bytes())?,
        Some(path) => std::fs::write(&path, text)
            .with_context(|| format!("cannot write {}", path.display()))?,
    }
    Ok(())
}
