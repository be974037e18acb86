// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line of `pemi replay`.

use std::path::PathBuf;

use lexopt::prelude::*;
use pemi_engine::{Nanos, US};

use super::select::Network;
use crate::command::arguments::{number, path, text};

/// What `pemi replay --help` prints.
pub const HELP: &str = "\
pemi replay FILE [options]

Shows the packets of a capture to the engine, at the times at which they were
captured, and tells what it would have done. FILE is a pcap or pcapng file; - is
standard input.

  --json               for programs
  --config FILE        the daemon's settings; its ports, too
  --port P             UDP port of the servers (443); repeatable
  --client-net CIDR    where the clients are; repeatable
  --local-rtt-ms MS    answer every echo probe with this round trip; the daemon
                       measures it, a capture cannot
  --truth LOG          score the inferences by linkem's log of the hop

Capture whole packets on the router's interface towards the clients, while no
daemon is working there:

  tcpdump -i br-lan -s 0 -w lan.pcap udp port 443

What to make of the answer: a capture does not change. Copies that would have
been sent do not arrive, so holes stay open until the server fills them: more
copies, fewer repairs, longer holds than with the daemon. Replies that would
have been held show their real times.

Direction: to a server's port is up, from it is down. What has both or neither
is skipped. With --client-net the networks decide which end is the client.

Captured twice: of two equal UDP datagrams between the same ends within 5 ms
the second is skipped, as a capture of all interfaces (-i any) has every packet
coming in and going out. If the router translates addresses these are not the
same: name the clients' network with --client-net.

A file that ends early or makes no sense is reported as far as it could be read;
the exit code is then 1.
";

/// Options of `pemi replay`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The capture; `-` is standard input.
    pub file: PathBuf,
    /// For programs rather than people.
    pub json: bool,
    /// The daemon's configuration file.
    pub config: Option<PathBuf>,
    /// Instead of the configuration's.
    pub port: Vec<u16>,
    /// Where the clients are.
    pub client_net: Vec<Network>,
    /// Answer to every probe.
    pub local_rtt: Option<Nanos>,
    /// linkem's log.
    pub truth: Option<PathBuf>,
}

/// Reads what follows `pemi replay`; nothing if that asks for help.
pub fn parse(mut parser: lexopt::Parser) -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options::default();
    let mut file = None;
    while let Some(arg) = parser.next()? {
        match arg {
            Value(name) if file.is_none() => file = Some(PathBuf::from(name)),
            Long("json") => options.json = true,
            Long("config") => options.config = Some(path(&mut parser)?),
            Long("port") => options.port.push(number(&mut parser, "--port", 1, 65_535)?),
            Long("client-net") => {
                let network = text(&mut parser)?.parse::<Network>();
                options.client_net.push(network.map_err(|what| format!("--client-net: {what}"))?);
            }
            Long("local-rtt-ms") => {
                let text = text(&mut parser)?;
                options.local_rtt = Some(local_rtt(&text).ok_or_else(|| {
                    format!("--local-rtt-ms: value '{text}' is not valid; allowed: 0.001 to 10000")
                })?);
            }
            Long("truth") => options.truth = Some(path(&mut parser)?),
            Long("help") | Short('h') => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    options.file = file.ok_or("FILE is missing; see pemi replay --help")?;
    Ok(Some(options))
}

fn local_rtt(text: &str) -> Option<Nanos> {
    let us = decimal(text, 3)?;
    (1..=10_000_000).contains(&us).then_some(us as Nanos * US)
}

/// A decimal number in units of its `places`th decimal place; what comes after it
/// is left out. A parser of floating point would be 15 KiB of the daemon.
pub fn decimal(text: &str, places: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return None;
    }
    let part = part.bytes().chain(std::iter::repeat(b'0')).take(places);
    whole.bytes().chain(part).try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &str) -> Result<Option<Options>, lexopt::Error> {
        parse(lexopt::Parser::from_args(args.split_whitespace()))
    }

    #[test]
    fn everything_at_once() {
        let args = "lan.pcap --json --config f --port 4433 --port 443 \
                    --client-net fd00::/8 --client-net 10.0.0.0/8 --local-rtt-ms 2.5 --truth t";
        let options = parsed(args).unwrap().unwrap();
        assert_eq!((options.file, options.json), ("lan.pcap".into(), true));
        assert_eq!((options.port, options.client_net.len()), (vec![4433, 443], 2));
        assert_eq!(options.local_rtt, Some(2_500_000));
        assert_eq!((options.config, options.truth), (Some("f".into()), Some("t".into())));
        let options = parsed("-").unwrap().unwrap();
        assert_eq!(options.file, PathBuf::from("-"));
        assert_eq!(parsed("--help").unwrap(), None);
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (args, part) in [
            ("", "FILE"),
            ("a b", "\"b\""),
            ("a --port 0", "1 to 65535"),
            ("a --client-net lan", "192.168.1.0/24"),
            ("a --local-rtt-ms 0", "0.001 to 10000"),
            ("a --local-rtt-ms 10000.001", "0.001 to 10000"),
            ("a --local-rtt-ms 2,5", "0.001 to 10000"),
            ("a --queue 7", "--queue"),
        ] {
            let error = parsed(args).unwrap_err().to_string();
            assert!(error.contains(part), "{args}: {error}");
        }
    }

    #[test]
    fn decimals() {
        assert_eq!(decimal("2.5", 3), Some(2_500));
        assert_eq!(decimal("0", 0), Some(0));
        assert_eq!(decimal("1234.56", 1), Some(12_345));
        for bad in ["", ".", "1.", ".5", "-1", "1e3", "18446744073709551616", "1.2.3"] {
            assert_eq!(decimal(bad, 1), None, "{bad}");
        }
    }
}
