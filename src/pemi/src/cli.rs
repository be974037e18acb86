//! The command line.

use std::path::PathBuf;

use lexopt::prelude::*;
use log::LevelFilter;

use crate::check;
use crate::config::{CONTROL, Config, DIRECTIONS, LEVELS, Repaired, UBUS};
use crate::replay::options;

/// What `pemi help` prints.
pub const HELP: &str = "\
pemi repairs losses on the last hop of QUIC flows.

  pemi run [--config FILE] [options]     the daemon, in the foreground
  pemi status [--json]                   what it does
  pemi flows [--json] [--limit N]        the flows with the most traffic
  pemi history [--json] [--seconds N]    the last seconds
  pemi check --config FILE [--json]      reads a configuration and explains it;
       [--uci FILE]                        names this file in what it says
       [--repaired FILE]                   writes it without what is wrong
  pemi rules --config FILE [--fw4]       the firewall rules for nft -f, or the one
                                         that keeps helped flows from offloading
  pemi replay FILE [options]             what it would do to the packets of a
                                         capture; see pemi replay --help
  pemi bench [--queue] [--seconds N]     what this machine can carry, as JSON; with
                                         --queue through the kernel's queue, too
  pemi help, pemi --version

Options of run; they win over the file:
  --queue N            number of the packet queue
  --queues N           this many, from there on
  --port P             UDP port of the servers; repeatable
  --device NAME        interface towards the clients; repeatable
  --cache-kib N        packet copies kept
  --max-flows N        flows known at a time
  --resend-percent N   largest share of a flow's packets sent again
  --release-s N        let a flow go after so long without a repair; 0: never
  --direction WHICH    losses repaired: down (to the clients, the default) or
                       both (what clients send and the WAN loses as well)
  --no-conceal         repair, but hold nothing back
  --log-level LEVEL    error, warn, info, debug
  --events FILE        every inference as a line of JSON
  --control PATH       control socket
  --ubus PATH          publish the object pemi through ubusd's socket
  --user NAME          started as root, become this user and keep CAP_NET_ADMIN,
                       CAP_NET_RAW and CAP_SYS_NICE

status, flows and history ask through the control socket or, where that cannot
be connected, through ubus; --control PATH or --ubus PATH: through that one.
";

/// Options of `pemi run`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// Where events go.
    pub events: Option<PathBuf>,
    /// What is logged.
    pub log_level: Option<LevelFilter>,
    /// Whose account to use instead of root's.
    pub user: Option<String>,
    queue: Option<u16>,
    queues: Option<u16>,
    port: Vec<u16>,
    device: Vec<String>,
    cache_kib: Option<u32>,
    max_flows: Option<u32>,
    resend_percent: Option<u32>,
    release_s: Option<u32>,
    direction: Option<Repaired>,
    no_conceal: bool,
    control: Option<PathBuf>,
    ubus: Option<PathBuf>,
}

impl RunOptions {
    /// Puts the flags over the settings of the file.
    pub fn apply(&self, config: &mut Config) {
        fn set<T: Clone>(into: &mut T, from: &Option<T>) {
            if let Some(value) = from {
                *into = value.clone();
            }
        }
        set(&mut config.queue, &self.queue);
        set(&mut config.queues, &self.queues);
        set(&mut config.cache_kib, &self.cache_kib);
        set(&mut config.max_flows, &self.max_flows);
        set(&mut config.resend_percent, &self.resend_percent);
        set(&mut config.release_s, &self.release_s);
        set(&mut config.direction, &self.direction);
        set(&mut config.log_level, &self.log_level);
        set(&mut config.control, &self.control);
        if self.ubus.is_some() {
            config.ubus.clone_from(&self.ubus);
        }
        if !self.port.is_empty() {
            config.port = self.port.clone();
        }
        if !self.device.is_empty() {
            config.device = self.device.clone();
        }
        config.conceal &= !self.no_conceal;
    }
}

/// A question to the running daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// `pemi status`
    Status,
    /// `pemi flows`
    Flows(u64),
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

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Be the daemon.
    Run(RunOptions),
    /// Ask the daemon; answer in JSON or for people.
    Ask(Question, Sockets, bool),
    /// Read a configuration.
    Check(check::Options),
    /// Print the firewall rules for a configuration, or the one for fw4.
    Rules(PathBuf, bool),
    /// Measure: through the queue as well, for so many seconds.
    Bench(bool, u64),
    /// Show the engine a capture.
    Replay(options::Options),
    /// Print this help.
    Help(&'static str),
    /// Print the version.
    Version,
}

/// Reads the arguments after the program's name.
pub fn parse(
    args: impl IntoIterator<Item = impl Into<std::ffi::OsString>>,
) -> Result<Command, lexopt::Error> {
    let mut parser = lexopt::Parser::from_args(args);
    let name = match parser.next()? {
        Some(Value(name)) => name.string()?,
        Some(Long("version") | Short('V')) => return Ok(Command::Version),
        Some(Long("help") | Short('h')) | None => return Ok(Command::Help(HELP)),
        Some(other) => return Err(other.unexpected()),
    };
    match name.as_str() {
        "run" => run(parser),
        "status" | "flows" | "history" => ask(&name, parser),
        "check" => check(parser),
        "rules" => rules(parser),
        "bench" => bench(parser),
        "replay" => options::parse(parser),
        "help" => Ok(Command::Help(HELP)),
        other => Err(format!("command '{other}' is not known; see pemi help").into()),
    }
}

fn run(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let mut options = RunOptions::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Long("config") => options.config = Some(parser.value()?.into()),
            Long("events") => options.events = Some(parser.value()?.into()),
            Long("control") => options.control = Some(parser.value()?.into()),
            Long("user") => options.user = Some(parser.value()?.string()?),
            Long("ubus") => options.ubus = Some(parser.value()?.into()),
            Long("device") => options.device.push(parser.value()?.string()?),
            Long("port") => options.port.push(number(&mut parser, "--port", 1, 65_535)?),
            Long("queue") => options.queue = Some(number(&mut parser, "--queue", 0, 65_535)?),
            Long("queues") => options.queues = Some(number(&mut parser, "--queues", 1, 8)?),
            Long("cache-kib") => {
                options.cache_kib = Some(number(&mut parser, "--cache-kib", 64, 1_048_576)?)
            }
            Long("max-flows") => {
                options.max_flows = Some(number(&mut parser, "--max-flows", 16, 65_536)?)
            }
            Long("resend-percent") => {
                options.resend_percent = Some(number(&mut parser, "--resend-percent", 0, 100)?);
            }
            Long("release-s") => {
                options.release_s = Some(number(&mut parser, "--release-s", 0, 86_400)?)
            }
            Long("no-conceal") => options.no_conceal = true,
            Long("direction") => {
                options.direction = Some(choice(&mut parser, "--direction", DIRECTIONS)?);
            }
            Long("log-level") => {
                options.log_level = Some(choice(&mut parser, "--log-level", LEVELS)?);
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
        _ => Question::History(120),
    };
    let (mut control, mut ubus, mut json) = (None, None, false);
    while let Some(arg) = parser.next()? {
        match (arg, &mut question) {
            (Long("json"), _) => json = true,
            (Long("control"), _) => control = Some(parser.value()?.into()),
            (Long("ubus"), _) => ubus = Some(parser.value()?.into()),
            (Long("limit"), Question::Flows(limit)) => {
                *limit = number(&mut parser, "--limit", 1, 1000)?
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
            Long("config") => file = Some(PathBuf::from(parser.value()?)),
            Long("json") => options.json = true,
            Long("uci") => options.uci = Some(parser.value()?.into()),
            Long("repaired") => options.repaired = Some(parser.value()?.into()),
            other => return Err(other.unexpected()),
        }
    }
    options.file = file.ok_or("--config FILE is missing")?;
    Ok(Command::Check(options))
}

fn rules(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut file, mut fw4) = (None, false);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("config") => file = Some(PathBuf::from(parser.value()?)),
            Long("fw4") => fw4 = true,
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Rules(file.ok_or("--config FILE is missing")?, fw4))
}

fn bench(mut parser: lexopt::Parser) -> Result<Command, lexopt::Error> {
    let (mut queue, mut seconds) = (false, 5);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("queue") => queue = true,
            Long("seconds") => seconds = number(&mut parser, "--seconds", 1, 60)?,
            other => return Err(other.unexpected()),
        }
    }
    Ok(Command::Bench(queue, seconds))
}

/// The value of a flag that takes one of some words.
fn choice<T: Copy>(
    parser: &mut lexopt::Parser,
    flag: &str,
    choices: &[(&str, T)],
) -> Result<T, lexopt::Error> {
    let word = parser.value()?.string()?;
    match choices.iter().find(|(known, _)| *known == word) {
        Some((_, choice)) => Ok(*choice),
        None => {
            let words: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
            let words = words.join(", ");
            Err(format!("{flag}: value '{word}' is not valid; allowed: {words}").into())
        }
    }
}

/// The value of a flag that takes a number.
pub(crate) fn number<T: TryFrom<u64>>(
    parser: &mut lexopt::Parser,
    flag: &str,
    low: u64,
    high: u64,
) -> Result<T, lexopt::Error> {
    let text = parser.value()?.string()?;
    let number = text
        .parse()
        .ok()
        .filter(|n| (low..=high).contains(n))
        .and_then(|n: u64| T::try_from(n).ok());
    number.ok_or_else(|| {
        format!("{flag}: value '{text}' is not valid; allowed: {low} to {high}").into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file() {
        let args = "run --queue 7 --port 4433 --port 443 --no-conceal --log-level debug --release-s 0 \
             --direction both --ubus /u";
        let Command::Run(options) = parse(args.split(' ')).unwrap() else { panic!() };
        let mut config = Config { queue: 1, cache_kib: 99, ..Config::default() };
        options.apply(&mut config);
        assert_eq!((config.queue, config.cache_kib, config.conceal), (7, 99, false));
        assert_eq!(config.port, [4433, 443]);
        assert_eq!((config.log_level, config.release_s), (LevelFilter::Debug, 0));
        assert_eq!(config.direction, Repaired::Both);
        assert_eq!(config.ubus, Some("/u".into()));
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
        for (args, of) in [
            ("history --control /x", sockets("/x", "")),
            ("history --ubus /y", sockets("", "/y")),
            ("history --ubus /y --control /x", sockets("/x", "/y")),
        ] {
            let asked = Command::Ask(Question::History(120), of, false);
            assert_eq!(parse(args.split(' ')).unwrap(), asked);
        }
        assert_eq!(parse(["--version"]).unwrap(), Command::Version);
        assert_eq!(parse([] as [&str; 0]).unwrap(), Command::Help(HELP));
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (args, part) in [
            ("run --queue 70000", "0 to 65535"),
            ("run --queues 9", "1 to 8"),
            ("run --log-level loud", "error, warn, info, debug"),
            ("run --direction up", "down, both"),
            ("run --magic", "--magic"),
            ("status --limit 3", "--limit"),
            ("flows --limit 0", "1 to 1000"),
            ("check", "--config FILE"),
            ("dance", "'dance'"),
        ] {
            let error = parse(args.split(' ')).unwrap_err().to_string();
            assert!(error.contains(part), "{args}: {error}");
        }
    }
}
