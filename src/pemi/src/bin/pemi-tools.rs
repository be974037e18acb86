// SPDX-License-Identifier: GPL-2.0-or-later
//! `pemi-tools`: what `pemi replay` and `pemi bench` do, see `pemi help`.

use std::process::ExitCode;

use pemi::command::tools::{self, Tool};
use pemi::command::{bench, ended, options, print, replay};

fn main() -> ExitCode {
    let result = match tools::parse(std::env::args_os().skip(1)) {
        Ok(Tool::Bench(queue, seconds)) => bench::run(queue, seconds),
        Ok(Tool::Replay(options)) => replay::run(&options, &mut std::io::stdout()),
        Ok(Tool::Options(json)) => {
            print(&if json { format!("{}\n", options::json()) } else { options::text() });
            Ok(())
        }
        Ok(Tool::Help(text)) => {
            print(&text);
            Ok(())
        }
        Ok(Tool::Version) => {
            print(concat!("pemi-tools ", env!("CARGO_PKG_VERSION"), "\n"));
            Ok(())
        }
        Err(error) => {
            eprintln!("pemi: {error}");
            return ExitCode::from(2);
        }
    };
    ended(result)
}
