//! `pemi`: see `pemi help`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pemi::cli::{self, Command, Question};
use pemi::{control, replay, run, show};
use serde_json::json;

fn main() -> ExitCode {
    let result = match cli::parse(std::env::args_os().skip(1)) {
        Ok(Command::Run(options)) => run::run(options),
        Ok(Command::Ask(question, path, as_json)) => ask(question, &path, as_json),
        Ok(Command::Check(file, as_json)) => run::check(&file, as_json),
        Ok(Command::Replay(options)) => replay::run(&options, &mut std::io::stdout()),
        Ok(Command::Help(text)) => {
            print(text);
            Ok(())
        }
        Ok(Command::Version) => {
            print(concat!("pemi ", env!("CARGO_PKG_VERSION"), "\n"));
            Ok(())
        }
        Err(error) => {
            eprintln!("pemi: {error}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.lines().for_each(|line| eprintln!("ERROR {line}"));
            ExitCode::FAILURE
        }
    }
}

fn ask(question: Question, path: &Path, as_json: bool) -> Result<(), String> {
    let request = match question {
        Question::Status => json!({"method": "status"}),
        Question::Flows(limit) => json!({"method": "flows", "limit": limit}),
        Question::History(seconds) => json!({"method": "history", "seconds": seconds}),
    };
    let answer = control::ask(path, &request)?;
    match question {
        _ if as_json => print(&format!("{answer}\n")),
        Question::Status => print(&show::status(&answer)),
        Question::Flows(_) => print(&show::flows(&answer)),
        Question::History(_) => print(&show::history(&answer)),
    }
    Ok(())
}

/// Unlike `print!` this is no reason to panic: `pemi flows | head -1`.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
