// SPDX-License-Identifier: GPL-2.0-or-later
//! Reads packet logs: what a router sees of them, and when.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use flate2::read::MultiGzDecoder;
use linkem::{MS, Nanos};
use pemi_engine::Direction;

/// The server's port, as in the world or in the experiments.
const SERVER_PORTS: [u16; 2] = [443, 4433];
/// The hop, for packets that were logged at its other end: propagation, and
/// nanoseconds for a byte at 100 Mbit/s.
const DELAY: Nanos = MS;
const BYTE: Nanos = 80;
/// Ethernet, IPv4 and UDP headers.
const FRAME_HEADERS: Nanos = 42;

/// A datagram as the router sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When, since the first one of the log.
    pub at: Nanos,
    /// Its way.
    pub direction: Direction,
    /// The client's port.
    pub client_port: u16,
    /// The server's port.
    pub server_port: u16,
    /// Bytes of payload.
    pub len: usize,
    /// The first of them.
    pub head: Vec<u8>,
    /// Whether it is lost on the hop, behind the router.
    pub lost: bool,
}

/// Reads a log, compressed or not.
pub fn read(path: &Path) -> anyhow::Result<Vec<Seen>> {
    let mut bytes = std::fs::read(path)?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        let compressed = std::mem::take(&mut bytes);
        MultiGzDecoder::new(&compressed[..]).read_to_end(&mut bytes)?;
    }
    parse(std::str::from_utf8(&bytes).context("not a text")?)
}

/// The same from its text; in the order in which the router sees the datagrams,
/// without those that do not reach it.
pub fn parse(text: &str) -> anyhow::Result<Vec<Seen>> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| {
        header
            .iter()
            .position(|column| *column == name)
            .with_context(|| format!("line 1: a column '{name}' is missing"))
    };
    let columns = [
        column("us")?,
        column("dir")?,
        column("sport")?,
        column("dport")?,
        column("len")?,
        column("head")?,
        column("fate")?,
    ];
    let mut seen = Vec::new();
    for (index, line) in lines.enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        let row = columns.map(|column| fields.get(column).copied().unwrap_or_default());
        seen.extend(datagram(row).with_context(|| format!("line {}: '{line}'", index + 2))?);
    }
    seen.sort_by_key(|datagram| datagram.at);
    let first = seen.first().map_or(0, |datagram| datagram.at);
    seen.iter_mut().for_each(|datagram| datagram.at -= first);
    Ok(seen)
}

fn datagram([us, dir, sport, dport, len, head, fate]: [&str; 7]) -> anyhow::Result<Option<Seen>> {
    let port = |text: &str| text.parse::<u16>().context("a port is not a number up to 65535");
    let direction = match dir {
        "ba" => Direction::Down,
        "ab" => Direction::Up,
        _ => bail!("'dir' is neither 'ab' nor 'ba'"),
    };
    let lost = match fate {
        "ok" => false,
        "lost" | "queue" => true,
        _ => bail!("'fate' is not 'ok', 'lost' or 'queue'"),
    };
    let (client_port, server_port) = match direction {
        Direction::Down => (port(dport)?, port(sport)?),
        Direction::Up => (port(sport)?, port(dport)?),
    };
    let len: usize = len.parse().context("'len' is not a number")?;
    let mut at = us.parse::<Nanos>().context("'us' is not a number")? * 1000;
    let head = hex(head).context("'head' is not hexadecimal")?;
    if !SERVER_PORTS.contains(&server_port) || (direction == Direction::Up && lost) {
        return Ok(None);
    }
    if direction == Direction::Up {
        at += DELAY + (len as Nanos + FRAME_HEADERS) * BYTE;
    }
    Ok(Some(Seen { at, direction, client_port, server_port, len, head, lost }))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.as_bytes().chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "us,dir,proto,sport,dport,len,head,hash,fate,out_us\n";

    #[test]
    fn a_log_becomes_what_the_router_sees() {
        let log = "5000,ab,17,50000,443,58,c001,00,ok,6008\n\
                   5500,ba,17,443,50000,1200,40ab,00,lost,\n\
                   5400,ba,17,443,50000,21,41,00,ok,6500\n\
                   5600,ab,17,50000,443,30,42,00,lost,\n\
                   5700,ab,17,50001,53,30,ffff,00,ok,6700\n";
        let seen = parse(&format!("{HEADER}{log}")).unwrap();
        let seen: Vec<_> =
            seen.iter().map(|s| (s.at, s.direction, s.len, &s.head[..], s.lost)).collect();
        let expected: [(Nanos, Direction, usize, &[u8], bool); 3] = [
            (0, Direction::Down, 21, &[0x41], false),
            (100_000, Direction::Down, 1200, &[0x40, 0xab], true),
            // 5000 us, 1 ms, 100 bytes of 80 ns.
            (608_000, Direction::Up, 58, &[0xc0, 1], false),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let log = "fate,us,dir,sport,dport,len,head\nok,7,ba,4433,50000,40,4f\n";
        let [seen] = &parse(log).unwrap()[..] else { panic!() };
        assert_eq!((seen.client_port, seen.server_port, seen.len), (50_000, 4433, 40));
    }

    #[test]
    fn errors_name_the_line_and_the_column() {
        let error = |text: &str| format!("{:#}", parse(text).unwrap_err());
        assert!(error("us,dir\n").contains("line 1: a column 'sport' is missing"));
        for (row, problem) in [
            ("x,ba,17,443,50000,40,4f,00,ok,", "'us' is not a number"),
            ("1,up,17,443,50000,40,4f,00,ok,", "'dir' is neither"),
            ("1,ba,17,443,50000,40,4f,00,gone,", "'fate' is not"),
            ("1,ba,17,443,70000,40,4f,00,ok,", "a port is not"),
            ("1,ba,17,443,50000,40,4g,00,ok,", "'head' is not hexadecimal"),
            ("1,ba,17", "'fate' is not"),
        ] {
            let error = error(&format!("{HEADER}{row}\n"));
            assert!(error.contains("line 2") && error.contains(problem), "{error}");
        }
    }
}
