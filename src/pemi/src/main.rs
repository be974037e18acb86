// SPDX-License-Identifier: GPL-2.0-or-later
//! `pemi`: see `pemi help`.

use std::path::Path;
use std::process::ExitCode;

use pemi::command::cli::{self, Command, Question, RulesFor, Sockets};
use pemi::command::{ask, check, ended, print, show, tools};
use pemi::config;
use pemi::daemon::run;
use pemi::firewall::rules;

fn main() -> ExitCode {
    let result = match cli::parse(std::env::args_os().skip(1)) {
        Ok(Command::Run(options)) => run::run(options),
        Ok(Command::Ask(question, sockets, as_json)) => tell(question, &sockets, as_json),
        Ok(Command::Check(options)) => check::run(&options),
        Ok(Command::Rules(file, whom)) => print_rules(&file, whom),
        Ok(Command::HandOver(args)) => Err(tools::hand_over(args)),
        Ok(Command::Help(text)) => {
            print(&text);
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
    ended(result)
}

fn tell(question: Question, sockets: &Sockets, as_json: bool) -> Result<(), String> {
    let (method, argument) = match question {
        Question::Status => ("status", None),
        Question::Flows(limit) => ("flows", Some(("limit", limit))),
        Question::Clients(limit) => ("clients", Some(("limit", limit))),
        Question::Benefit => ("benefit", None),
        Question::History(seconds) => ("history", Some(("seconds", seconds))),
    };
    let answer = ask::ask(sockets, method, argument)?;
    match question {
        _ if as_json => print(&format!("{answer}\n")),
        Question::Status => print(&show::status(&answer)),
        Question::Flows(_) => print(&show::flows(&answer)),
        Question::Clients(_) => print(&show::clients(&answer)),
        Question::Benefit => print(&show::benefit(&answer)),
        Question::History(_) => print(&show::history(&answer)),
    }
    Ok(())
}

fn print_rules(file: &Path, whom: RulesFor) -> Result<(), String> {
    let (config, _) = config::load(file).map_err(|error| error.lines(file).join("\n"))?;
    let rules = match whom {
        RulesFor::Nft => Some(rules::ruleset(&config)),
        RulesFor::Fw4 => Some(rules::no_offload(&config)),
        RulesFor::Resting => rules::resting(&config),
        RulesFor::Iptables => rules::iptables(&config),
    };
    let none = "options 'mode' and 'protocols': there are no such rules with these";
    print(&rules.ok_or_else(|| format!("{}: {none}", file.display()))?);
    Ok(())
}
