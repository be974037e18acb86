// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use lexopt::{Arg, Parser, ValueExt};

use crate::encoder::Code;
use crate::shim::{Role, Settings};
use crate::wire::{MAX_REPAIRS, MAX_SOURCES};

/// What `--help` prints.
pub const HELP: &str = "\
fec client|server [options]

Carries the UDP datagrams of another program with an erasure code: the client listens
where the program's client connects to, the server connects to the program's server.

  --listen ADDRESS    client: for the program; server: for the client shim
  --connect ADDRESS   client: the server shim; server: the program
  --code K,N          groups of K datagrams and N - K repairs (default 2,3)
  --flush MS          after which a group that is not full gets its repairs (default 5)
  --mtu BYTES         of the path between the shims (default 1500)
  --rt PRIORITY       SCHED_FIFO priority, 0: none (default 0)
  --totals FILE       JSON at exit (default: to standard output)
  --ready             print 'ready' when datagrams are carried
  --help, --version
Ends on SIGTERM or SIGINT.";

/// What was asked for.
#[derive(Debug)]
pub enum Command {
    /// Print the help text.
    Help,
    /// Print the version.
    Version,
    /// Carry datagrams.
    Run(Options),
}

/// The options of a run.
#[derive(Debug)]
pub struct Options {
    /// Of the shim.
    pub settings: Settings,
    /// SCHED_FIFO priority; 0: none.
    pub rt: u8,
    /// Where the totals go; none: to standard output.
    pub totals: Option<PathBuf>,
    /// Print a line when datagrams are carried.
    pub ready: bool,
}

/// Parses the arguments (without the program's name).
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command> {
    let mut parser = Parser::from_args(arguments);
    let (mut role, mut listen, mut connect) = (None, None, None);
    let mut code = Code { k: 2, n: 3 };
    let mut flush = Duration::from_millis(5);
    let mut mtu = 1500;
    let mut rt = 0;
    let mut totals = None;
    let mut ready = false;
    while let Some(argument) = parser.next()? {
        let name = match argument {
            Arg::Value(value) if role.is_none() => {
                role = Some(match value.string()?.as_str() {
                    "client" => Role::Client,
                    "server" => Role::Server,
                    other => bail!("'{other}' is neither client nor server"),
                });
                continue;
            }
            Arg::Short('h') => return Ok(Command::Help),
            Arg::Long(name) => name.to_owned(),
            _ => return Err(argument.unexpected().into()),
        };
        let mut take = |name: &str| -> Result<()> {
            let mut value = || parser.value()?.string();
            match name {
                "listen" => listen = Some(address(&value()?)?),
                "connect" => connect = Some(address(&value()?)?),
                "code" => code = parse_code(&value()?)?,
                "flush" => flush = Duration::from_micros(number(&value()?, 0.1, 1000.0, 1e3)?),
                "mtu" => mtu = number(&value()?, 576.0, 9000.0, 1.0)? as usize,
                "rt" => rt = number(&value()?, 0.0, 99.0, 1.0)? as u8,
                "totals" => totals = Some(PathBuf::from(value()?)),
                "ready" => ready = true,
                _ => bail!("there is no such option"),
            }
            Ok(())
        };
        match name.as_str() {
            "help" => return Ok(Command::Help),
            "version" => return Ok(Command::Version),
            name => take(name).with_context(|| format!("--{name}"))?,
        }
    }
    let role = role.context("wanted client or server; see --help")?;
    let listen = listen.context("--listen is missing")?;
    let connect = connect.context("--connect is missing")?;
    let settings = Settings { role, listen, connect, code, flush, mtu };
    Ok(Command::Run(Options { settings, rt, totals, ready }))
}

fn address(text: &str) -> Result<SocketAddr> {
    text.parse().map_err(|_| anyhow!("'{text}' is no address with a port"))
}

fn parse_code(text: &str) -> Result<Code> {
    let numbers = text.split_once(',').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((k, n))
            if (1..=MAX_SOURCES).contains(&k) && (k + 1..=k + MAX_REPAIRS).contains(&n) =>
        {
            Ok(Code { k, n })
        }
        _ => bail!(
            "'{text}' is not K,N with K from 1 to {MAX_SOURCES} and up to {MAX_REPAIRS} more in N"
        ),
    }
}

/// In units of which `scale` are one of the option's.
fn number(text: &str, least: f64, most: f64, scale: f64) -> Result<u64> {
    match text.parse::<f64>() {
        Ok(value) if (least..=most).contains(&value) => Ok((value * scale).round() as u64),
        _ => bail!("'{text}' is not a number from {least} to {most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "client --listen 127.0.0.1:1 --connect [::1]:2 ";

    fn run(arguments: &str) -> Result<Options> {
        match parse(arguments.split_whitespace().map(OsString::from))? {
            Command::Run(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn defaults() {
        let settings = run(LINE).unwrap().settings;
        assert_eq!(settings.role, Role::Client);
        assert_eq!(settings.code, Code { k: 2, n: 3 });
        assert_eq!(settings.flush, Duration::from_millis(5));
        let settings = run(&format!("{LINE} --code 10,14 --flush 0.5")).unwrap().settings;
        assert_eq!(settings.code, Code { k: 10, n: 14 });
        assert_eq!(settings.flush, Duration::from_micros(500));
    }

    #[test]
    fn says_what_is_wrong() {
        for (arguments, part) in [
            ("", "client or server"),
            ("both", "'both'"),
            ("client", "--listen"),
            ("client --listen 1.2.3.4:5", "--connect"),
            ("client --listen here", "'here'"),
            ("client --code 3,2", "--code"),
            ("client --code 33,40", "--code"),
            ("client --code 2", "--code"),
            ("client --flush 0", "--flush"),
            ("client --mtu 100", "--mtu"),
            ("client server", "server"),
            ("client --nonsense 1", "--nonsense"),
        ] {
            let error = format!("{:#}", run(arguments).unwrap_err());
            assert!(error.contains(part), "{arguments}: {error}");
        }
    }
}
