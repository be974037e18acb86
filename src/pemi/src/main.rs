//! `pemi`: see `pemi help`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use pemi::cli::{self, Command, Question, Sockets};
use pemi::{ask, bench, check, config, replay, rules, run, show};

fn main() -> ExitCode {
    let result = match cli::parse(std::env::args_os().skip(1)) {
        Ok(Command::Run(options)) => run::run(options),
        Ok(Command::Ask(question, sockets, as_json)) => tell(question, &sockets, as_json),
        Ok(Command::Check(options)) => check::run(&options),
        Ok(Command::Rules(file, fw4)) => print_rules(&file, fw4),
        Ok(Command::Bench(queue, seconds)) => bench::run(queue, seconds),
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

fn tell(question: Question, sockets: &Sockets, as_json: bool) -> Result<(), String> {
    let (method, argument) = match question {
        Question::Status => ("status", None),
        Question::Flows(limit) => ("flows", Some(("limit", limit))),
        Question::History(seconds) => ("history", Some(("seconds", seconds))),
    };
    let answer = ask::ask(sockets, method, argument)?;
    match question {
        _ if as_json => print(&format!("{answer}\n")),
        Question::Status => print(&show::status(&answer)),
        Question::Flows(_) => print(&show::flows(&answer)),
        Question::History(_) => print(&show::history(&answer)),
    }
    Ok(())
}

fn print_rules(file: &Path, fw4: bool) -> Result<(), String> {
    let (config, _) = config::load(file).map_err(|error| error.lines(file).join("\n"))?;
    print(&if fw4 { rules::no_offload(&config) } else { rules::ruleset(&config) });
    Ok(())
}

/// Unlike `print!` this is no reason to panic: `pemi flows | head -1`.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}
