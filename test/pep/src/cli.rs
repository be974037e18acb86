// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use lexopt::{Arg, Parser, ValueExt};

/// What `--help` prints.
pub const HELP: &str = "\
pep [options]

Splits TCP connections: takes those that TPROXY rules hand to its port, whatever
their destination, and makes each anew towards it from the client's address.

  --port PORT         of the TPROXY rules (default 5104)
  --cc NAME           congestion control on both sides (default: the kernel's)
  --cc-client NAME, --cc-server NAME   of one side
  --buffer BYTES      copied at once, of each direction of a connection (default 65536)
  --connections N     at once; others wait to be accepted (default 1024)
  --rt PRIORITY       SCHED_FIFO priority, 0: none (default 0)
  --totals FILE       JSON at exit (default: to standard output)
  --ready             print 'ready' when connections are accepted
  --help, --version
Ends on SIGTERM or SIGINT. Needs CAP_NET_ADMIN.";

/// What was asked for.
#[derive(Debug)]
pub enum Command {
    /// Print the help text.
    Help,
    /// Print the version.
    Version,
    /// Split connections.
    Run(Options),
}

/// The options of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Where TPROXY's rules send connections.
    pub port: u16,
    /// Congestion control towards the client.
    pub cc_client: Option<String>,
    /// Congestion control towards the server.
    pub cc_server: Option<String>,
    /// Of one direction of one connection.
    pub buffer: usize,
    /// At once.
    pub connections: usize,
    /// SCHED_FIFO priority; 0: none.
    pub rt: u8,
    /// Where the totals go; none: to standard output.
    pub totals: Option<PathBuf>,
    /// Print a line when connections are accepted.
    pub ready: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            port: 5104,
            cc_client: None,
            cc_server: None,
            buffer: 65_536,
            connections: 1024,
            rt: 0,
            totals: None,
            ready: false,
        }
    }
}

/// Parses the arguments (without the program's name).
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command> {
    let mut parser = Parser::from_args(arguments);
    let mut options = Options::default();
    let mut cc = None;
    while let Some(argument) = parser.next()? {
        let name = match argument {
            Arg::Short('h') => return Ok(Command::Help),
            Arg::Long(name) => name.to_owned(),
            _ => return Err(argument.unexpected().into()),
        };
        let mut value = || parser.value()?.string();
        let number = |text: String, least: usize, most: usize| match text.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => bail!("'{text}' is not a number from {least} to {most}"),
        };
        let result = match name.as_str() {
            "help" => return Ok(Command::Help),
            "version" => return Ok(Command::Version),
            "port" => number(value()?, 1, 65_535).map(|port| options.port = port as u16),
            "cc" => value().map(|name| cc = Some(name)).map_err(Into::into),
            "cc-client" => value().map(|cc| options.cc_client = Some(cc)).map_err(Into::into),
            "cc-server" => value().map(|cc| options.cc_server = Some(cc)).map_err(Into::into),
            "buffer" => number(value()?, 1024, 16 << 20).map(|bytes| options.buffer = bytes),
            "connections" => number(value()?, 1, 65_536).map(|most| options.connections = most),
            "rt" => number(value()?, 0, 99).map(|priority| options.rt = priority as u8),
            "totals" => value().map(|path| options.totals = Some(path.into())).map_err(Into::into),
            "ready" => {
                options.ready = true;
                Ok(())
            }
            _ => bail!("unknown option --{name}"),
        };
        result.with_context(|| format!("--{name}"))?;
    }
    options.cc_client = options.cc_client.or_else(|| cc.clone());
    options.cc_server = options.cc_server.or(cc);
    Ok(Command::Run(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(arguments: &str) -> Result<Options> {
        match parse(arguments.split_whitespace().map(OsString::from))? {
            Command::Run(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_side_wins_over_both() {
        assert_eq!(run("").unwrap(), Options::default());
        let options = run("--cc-client bbr --cc cubic").unwrap();
        assert_eq!(options.cc_client.as_deref(), Some("bbr"));
        assert_eq!(options.cc_server.as_deref(), Some("cubic"));
    }

    #[test]
    fn says_what_is_wrong() {
        for (arguments, part) in [
            ("--port 0", "--port"),
            ("--buffer much", "'much'"),
            ("--rt 100", "99"),
            ("--nonsense", "--nonsense"),
            ("eth0", "eth0"),
            ("--cc", "--cc"),
        ] {
            let error = format!("{:#}", run(arguments).unwrap_err());
            assert!(error.contains(part), "{arguments}: {error}");
        }
    }
}
