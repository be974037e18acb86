// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use crate::command::arguments::{number, path, text};
use crate::command::{check, options};
use crate::config::flags::RunOptions;
use crate::config::options::{CONTROL, Entry, Kind, TABLE, UBUS};

/// What `pemi help` prints: before the flags of options, and after them.
const HELP: [&str; 3] = [
    "\
pemi repairs losses on the last hop of QUIC flows.

  pemi run [--config FILE] [options]     the daemon, in the foreground
  pemi status [--json]                   what it does
  pemi flows [--json] [--limit N]        the flows with the most traffic
  pemi clients [--json] [--limit N]      what the Wi-Fi loses on the way to each
                                         client, and what was done about it
  pemi benefit [--json]                  how much faster downloads are with help
  pemi history [--json] [--seconds N]    the last seconds
  pemi check --config FILE [--json]      reads a configuration and explains it;
       [--uci FILE]                        names this file in what it says
       [--repaired FILE]                   writes it without what is wrong
  pemi rules --config FILE               the firewall rules for nft -f
       [--fw4]                             that for fw4: no offloading of helped flows
       [--resting]                         those while nobody is to be helped
       [--iptables]                        those for iptables-nft-restore --noflush
  pemi options [--json]                  what can be configured
  pemi replay FILE [options]             what it would do to the packets of a
                                         capture; see pemi replay --help
  pemi bench [--queue] [--seconds N]     what this machine can carry, as JSON; with
                                         --queue through the kernel's queue, too
  pemi help [COMMAND], pemi --version

Options of run; they win over the file:
",
    "  \
  --events FILE        every inference as a line of JSON
  --user NAME          started as root, become this user and keep CAP_NET_ADMIN,
                       CAP_NET_RAW and CAP_SYS_NICE
  --seccomp FILE       make no other system calls than this filter lets pass

",
    "\
On a router options, replay and bench are in the package pemi-tools.
",
];

/// The flags of the commands that ask a daemon. Each of them prints this as well.
const ASKING: &str = "\
status, flows, clients, benefit and history ask through the control socket or, where that cannot
be connected, through ubus; --control PATH or --ubus PATH: through that one.
";

/// The commands of `pemi-tools`.
pub(crate) const TOOLS: [&str; 3] = ["options", "replay", "bench"];

fn help() -> String {
    [HELP[0], &options::flags(), HELP[1], ASKING, HELP[2]].concat()
}

/// What it says of one command: its lines, and of `run` all flags as well; everything where there
/// is no such command.
pub(crate) fn help_of(command: &str) -> String {
    let whole = help();
    let begins = |line: &str| line.strip_prefix("  pemi ").map(|rest| rest.starts_with(command));
    let mut lines = whole.lines().skip_while(|line| begins(line) != Some(true));
    let Some(first) = lines.next().filter(|_| command != "run" && !command.is_empty()) else {
        return whole;
    };
    let more = lines.take_while(|line| !line.is_empty() && begins(line).is_none());
    let asks = ASKING.split([' ', ',']).any(|word| word == command);
    let flags = if asks { ASKING } else { "" };
    [first].into_iter().chain(more).chain(flags.lines()).flat_map(|line| [line, "\n"]).collect()
}

/// A question to the running daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// `pemi status`
    Status,
    /// `pemi flows`
    Flows(u64),
    /// `pemi clients`
    Clients(u64),
    /// `pemi benefit`
    Benefit,
    /// `pemi history`
    History(u64),
}

/// Where the daemon can be asked; the first that can be connected counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sockets {
    /// Its control socket.
    pub control: Option<PathBuf>,
    /// ubusd's socket.
    pub ubus: Option<PathBuf>,
}

/// Whom firewall rules are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulesFor {
    /// `nft -f`.
    Nft,
    /// The same, while nobody's packets are to be seen.
    Resting,
    /// The ruleset of fw4, beside ours.
    Fw4,
    /// `iptables-nft-restore --noflush`.
    Iptables,
}

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Be the daemon.
    Run(RunOptions),
    /// Ask the daemon; answer in JSON or for people.
    Ask(Question, Sockets, bool),
    /// Read a configuration.
    Check(check::Options),
    /// Print the firewall rules for a configuration.
    Rules(PathBuf, RulesFor),
    /// Have `pemi-tools` do it, which gets all arguments.
    HandOver(Vec<OsString>),
    /// Print this help.
    Help(String),
    /// Print the version.
    Version,
}

/// Reads the arguments after the program's name.
pub fn parse(
    args: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<Command, lexopt::Error> {
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    if args.first().is_some_and(|command| TOOLS.iter().any(|tool| command == tool)) {
        return Ok(Command::HandOver(args));
    }
    if let [command, asked] = &args[..]
        && let (Some(command), Some(asked)) = (command.to_str(), asked.to_str())
    {
        match (command, asked) {
            ("help", asked) => return Ok(Command::Help(help_of(asked))),
            (command, "--help" | "-h") => return Ok(Command::Help(help_of(command))),
            _ => {}
        }
    }
    let mut parser = lexopt::Parser::from_args(args);
    let name = match parser.next()? {
        Some(Value(name)) => name.string()?,
        Some(Long("version") | Short('V')) => return Ok(Command::Version),
        Some(Long("help") | Short('h')) | None => return Ok(Command::Help(help())),
        Some(other) => return Err(other.unexpected()),
    };
    match name.as_str() {
        "run" => run(parser),
        "status" | "flows" | "clients" | "benefit" | "history" => ask(&name, parser),
        "check" => check(parser),
        "rules" => rules(parser),
        "help" => Ok(Command::Help(help())),
        other => Err(format!("command '{other}' is not known; see pemi help").into()),
    }
}

fn run(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut options = RunOptions::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("config") => options.config = Some(path(&mut parser)?),
            Long("events") => options.events = Some(path(&mut parser)?),
            Long("seccomp") => options.seccomp = Some(path(&mut parser)?),
            Long("user") => options.user = Some(text(&mut parser)?),
            Long(flag) => {
                let known = |option: &&Entry| option.flag_name().as_deref() == Some(flag);
                let Some(option) = TABLE.iter().find(known) else {
                    return Err(Long(flag).unexpected());
                };
                let flag = format!("--{flag}");
                let text = match option.kind {
                    Kind::Switch(_) => String::new(),
                    _ => text(&mut parser)?,
                };
                options.add(option, &text).map_err(|what| format!("{flag}: {what}"))?;
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Run(options))
}

fn ask(name: &str, mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut question = match name {
        "status" => Question::Status,
        "flows" => Question::Flows(20),
        "clients" => Question::Clients(512),
        "benefit" => Question::Benefit,
        _ => Question::History(120),
    };
    let (mut control, mut ubus, mut json) = (None, None, false);
    while let Some(arg) = parser.next()? {
        match (arg, &mut question) {
            (Long("json"), _) => json = true,
            (Long("control"), _) => control = Some(path(&mut parser)?),
            (Long("ubus"), _) => ubus = Some(path(&mut parser)?),
            (Long("limit"), Question::Flows(limit)) => {
                *limit = number(&mut parser, "--limit", 1, 1000)?
            }
            (Long("limit"), Question::Clients(limit)) => {
                *limit = number(&mut parser, "--limit", 1, 512)?
            }
            (Long("seconds"), Question::History(seconds)) => {
                *seconds = number(&mut parser, "--seconds", 1, 600)?;
            }
            (other, _) => return Err(other.unexpected()),
        }
    }
    // Who names one does not want to hear of another daemon through the other.
    if control.is_none() && ubus.is_none() {
        (control, ubus) = (Some(CONTROL.into()), Some(UBUS.into()));
    }
    Ok(Command::Ask(question, Sockets { control, ubus }, json))
}

fn check(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut options = check::Options::default();
    let mut file = None;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("config") => file = Some(path(&mut parser)?),
            Long("json") => options.json = true,
            Long("uci") => options.uci = Some(path(&mut parser)?),
            Long("repaired") => options.repaired = Some(path(&mut parser)?),
            other => return Err(other.unexpected()),
        }
    }
    options.file = file.ok_or("--config FILE is missing")?;
    Ok(Command::Check(options))
}

fn rules(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut file, mut whom) = (None, RulesFor::Nft);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("config") => file = Some(path(&mut parser)?),
            Long("fw4") => whom = RulesFor::Fw4,
            Long("resting") => whom = RulesFor::Resting,
            Long("iptables") => whom = RulesFor::Iptables,
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Rules(file.ok_or("--config FILE is missing")?, whom))
}

#[cfg(test)]
mod tests {
    use log::LevelFilter;

    use super::*;
    use crate::config::{Config, Repaired};

    #[test]
    fn flags_win_over_the_file() {
        let args = "run --queue 7 --port 4433 --port 443 --no-conceal --log-level debug --release-s 0 \
             --direction both --ubus /u --control here --device a --device b";
        let Command::Run(options) = parse(args.split(' ')).unwrap() else { panic!() };
        let mut config = Config { queue: 1, cache_kib: 99, ..Config::default() };
        options.apply(&mut config);
        assert_eq!((config.queue, config.cache_kib, config.conceal), (7, 99, false));
        assert_eq!(config.port, [4433, 443]);
        assert_eq!((config.log_level, config.release_s), (LevelFilter::Debug, 0));
        assert_eq!(config.direction, Repaired::Both);
        assert_eq!(config.ubus, Some("/u".into()));
        assert_eq!(config.control, std::path::absolute("here").unwrap());
        assert_eq!(config.device, ["a", "b"]);
        assert_eq!(options.log_level(), LevelFilter::Debug);
        assert_eq!(RunOptions::default().log_level(), LevelFilter::Info);
    }

    #[test]
    fn questions() {
        let path = |path: &str| (!path.is_empty()).then(|| path.into());
        let sockets = |control, ubus| Sockets { control: path(control), ubus: path(ubus) };
        assert_eq!(
            parse(["flows", "--limit", "3", "--json"]).unwrap(),
            Command::Ask(Question::Flows(3), sockets(CONTROL, UBUS), true)
        );
        let options = check::Options { file: "f".into(), ..check::Options::default() };
        assert_eq!(parse(["check", "--config", "f"]).unwrap(), Command::Check(options));
        let asked = Command::Ask(Question::Benefit, sockets(CONTROL, UBUS), false);
        assert_eq!(parse(["benefit"]).unwrap(), asked);
        for (args, of) in [
            ("history --control /x", sockets("/x", "")),
            ("history --ubus /y", sockets("", "/y")),
            ("history --ubus /y --control /x", sockets("/x", "/y")),
        ] {
            let asked = Command::Ask(Question::History(120), of, false);
            assert_eq!(parse(args.split(' ')).unwrap(), asked);
        }
        assert_eq!(parse(["--version"]).unwrap(), Command::Version);
        assert_eq!(parse([] as [&str; 0]).unwrap(), Command::Help(help()));
    }

    #[test]
    fn help_of_one_command() {
        let said = |args: &[&str]| match parse(args) {
            Ok(Command::Help(text)) => text,
            other => panic!("{other:?}"),
        };
        let status = said(&["help", "status"]);
        let line = "  pemi status [--json]                   what it does\n";
        assert_eq!(status, [line, ASKING].concat());
        assert_eq!(said(&["status", "--help"]), status);
        let check = said(&["check", "-h"]);
        assert!(check.lines().count() == 3 && check.contains("--repaired"), "{check}");
        for args in [["help", "nonsense"], ["help", "run"], ["help", ""]] {
            assert_eq!(said(&args), help());
        }
    }

    #[test]
    fn what_is_a_tool_is_handed_over_as_it_is() {
        for args in ["replay --help", "replay - --json", "bench --magic", "options --json"] {
            let words = args.split(' ').map(OsString::from).collect();
            assert_eq!(parse(args.split(' ')).unwrap(), Command::HandOver(words));
        }
        assert!(help().contains("pemi replay"));
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (args, part) in [
            ("run --queue 70000", "0 to 65535"),
            ("run --queues 9", "1 to 8"),
            ("run --log-level loud", "error, warn, info, debug"),
            ("run --direction up", "down, both"),
            ("run --magic", "--magic"),
            ("run --mode routed", "--mode"),
            ("run --conceal", "--conceal"),
            ("run --no-conceal=1", "--no-conceal"),
            ("run --cache-kib", "--cache-kib"),
            ("run --port 0", "--port: value '0' is not valid; allowed: 1 to 16 numbers"),
            ("run --device a/b", "--device: value 'a/b' is not valid; allowed: a list of names"),
            ("status --limit 3", "--limit"),
            ("flows --limit 0", "1 to 1000"),
            ("clients --limit 513", "1 to 512"),
            ("check", "--config FILE"),
            ("rules --iptables", "--config FILE"),
            ("dance", "'dance'"),
        ] {
            let error = parse(args.split(' ')).unwrap_err().to_string();
            assert!(error.contains(part), "{args}: {error}");
        }
    }
}
