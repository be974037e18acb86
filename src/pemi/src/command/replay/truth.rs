// SPDX-License-Identifier: GPL-2.0-or-later
//! What linkem's log of the hop says the inferences were worth.
//!
//! Names and meanings are those of `test/mininet/testbed/measure/scoring.py` where the two
//! coincide. There copies arrive, or do not; here they are never sent, so a loss is
//! noticed as soon as a copy of that packet would have gone or it was named, and
//! every copy of a packet that was lost counts as needed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use pemi_engine::{Nanos, Time};
use serde_json::Value;

use super::book::Ends;
use super::options::decimal;

/// Bytes of the payload in the log.
const HEAD: usize = 16;
/// The columns that are looked at; the log may have others.
const COLUMNS: [&str; 7] = ["us", "proto", "sport", "dport", "len", "head", "fate"];
const UDP: &str = "17";

/// What a packet is known by on both sides: its ports, the length of its payload
/// and the first bytes of it.
type Mark = ((u16, u16), usize, Vec<u8>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Arrived,
    Lost,
    /// A queue of the hop was full.
    Queue,
}

/// A row of the log and what the engine has said of its packet.
#[derive(Clone, Debug)]
struct Row {
    mark: Mark,
    /// When it came to the hop, in tenths of a microsecond.
    entered: u64,
    fate: Fate,
    /// When it was shown to the engine.
    shown: Option<Time>,
    /// The engine took it for lost.
    named: bool,
    /// How long afterwards the first copy would have gone.
    copied: Option<Nanos>,
}

/// The log, and what the engine has said of its packets.
#[derive(Debug)]
pub struct Truth {
    /// By mark; of equal packets the earlier one comes first.
    rows: Vec<Row>,
    /// Rows by the flow and the packet's number in it.
    shown: HashMap<(Ends, u64), usize>,
    unmatched: u64,
    copies: u64,
    copies_needed: u64,
}

impl Truth {
    /// Reads a log; an error names the file, the line and what is wrong.
    pub fn load(path: &Path) -> Result<Truth, String> {
        let wrong = |what: String| format!("{}: {what}", path.display());
        let file = File::open(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
        Truth::read(BufReader::new(file)).map_err(wrong)
    }

    fn read(file: impl BufRead) -> Result<Truth, String> {
        let mut rows = Vec::new();
        let mut places = None;
        for (number, line) in file.lines().enumerate() {
            let wrong = |what: String| format!("line {}: {what}", number + 1);
            let line = line.map_err(|error| wrong(format!("cannot be read: {error}")))?;
            let fields: Vec<&str> = line.split(',').collect();
            match places {
                None => places = Some(columns(&fields).map_err(wrong)?),
                Some(places) => rows.extend(row(&fields, places).map_err(wrong)?),
            }
        }
        if places.is_none() {
            return Err(format!("is empty; columns {} expected", COLUMNS.join(",")));
        }
        rows.sort_unstable_by(|a: &Row, b| (&a.mark, a.entered).cmp(&(&b.mark, b.entered)));
        Ok(Truth { rows, shown: HashMap::new(), unmatched: 0, copies: 0, copies_needed: 0 })
    }

    /// The engine is shown a packet towards the client, the flow's `number`th.
    pub fn shown(&mut self, at: Time, ends: Ends, number: u64, payload: &[u8]) {
        let head = payload[..payload.len().min(HEAD)].to_vec();
        let mark = ((ends.server.port(), ends.client.port()), payload.len(), head);
        // Of equal packets the first that has not been shown yet.
        let index =
            self.rows.partition_point(|row| (&row.mark, row.shown.is_none()) < (&mark, true));
        match self.rows.get_mut(index).filter(|row| row.mark == mark) {
            Some(row) => {
                row.shown = Some(at);
                self.shown.insert((ends, number), index);
            }
            None => self.unmatched += 1,
        }
    }

    /// The engine takes this packet for lost.
    pub fn named(&mut self, ends: Ends, number: u64) {
        if let Some(index) = self.shown.get(&(ends, number)) {
            self.rows[*index].named = true;
        }
    }

    /// The engine would have sent a copy of this packet.
    pub fn copied(&mut self, at: Time, ends: Ends, number: u64) {
        let Some(index) = self.shown.get(&(ends, number)) else { return };
        let row = &mut self.rows[*index];
        self.copies += 1;
        self.copies_needed += u64::from(row.fate != Fate::Arrived);
        row.copied = row.copied.or(row.shown.map(|shown| at.since(shown)));
    }

    /// The score, by name.
    pub fn score(&self) -> Vec<(&'static str, Value)> {
        let shown = || self.rows.iter().filter(|row| row.shown.is_some());
        let lost = || shown().filter(|row| row.fate == Fate::Lost);
        let count = |is: fn(&Row) -> bool| lost().filter(|row| is(row)).count() as u64;
        let packets = shown().count() as u64;
        let losses = count(|_| true);
        let noticed = count(|row| row.copied.is_some() || row.named);
        let unneeded = self.copies - self.copies_needed;
        let mut after: Vec<Nanos> = lost().filter_map(|row| row.copied).collect();
        after.sort_unstable();
        let median = after.get(after.len() / 2).map(|nanos| nanos / 1_000);
        vec![
            ("packets", packets.into()),
            ("unmatched", self.unmatched.into()),
            ("losses", losses.into()),
            ("noticed", noticed.into()),
            ("named", count(|row| row.named).into()),
            ("copies", self.copies.into()),
            ("copies_needed", self.copies_needed.into()),
            ("false", unneeded.into()),
            ("recall", share(noticed, losses)),
            ("precision", share(self.copies_needed, self.copies)),
            ("unneeded_percent", share(100 * unneeded, packets + self.copies)),
            ("copy_ms_median", median.map(|us| us as f64 / 1e3).into()),
        ]
    }
}

fn share(part: u64, whole: u64) -> Value {
    let share = || (part as f64 / whole as f64 * 1e4).round() / 1e4;
    (whole > 0).then(share).into()
}

fn columns(header: &[&str]) -> Result<[usize; 7], String> {
    let mut places = [0; 7];
    for (place, name) in places.iter_mut().zip(COLUMNS) {
        *place = header
            .iter()
            .position(|column| *column == name)
            .ok_or_else(|| format!("column '{name}' expected"))?;
    }
    Ok(places)
}

/// `None` for what is not UDP.
fn row(fields: &[&str], places: [usize; 7]) -> Result<Option<Row>, String> {
    let field = |n: usize| fields.get(places[n]).copied().unwrap_or_default();
    let wrong = |n: usize, what: &str| {
        format!("column '{}': {what} expected, '{}' found", COLUMNS[n], field(n))
    };
    let port = |n: usize| field(n).parse().map_err(|_| wrong(n, "a port"));
    let entered = decimal(field(0), 1).ok_or_else(|| wrong(0, "a number"))?;
    if field(1) != UDP {
        return Ok(None);
    }
    let ports = (port(2)?, port(3)?);
    let len = field(4).parse().map_err(|_| wrong(4, "a number"))?;
    let head = hex(field(5)).ok_or_else(|| wrong(5, "hex digits"))?;
    let fate = match field(6) {
        "ok" => Fate::Arrived,
        "lost" => Fate::Lost,
        "queue" => Fate::Queue,
        _ => return Err(wrong(6, "ok, lost or queue")),
    };
    let mark = (ports, len, head);
    Ok(Some(Row { mark, entered, fate, shown: None, named: false, copied: None }))
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some((digit(high)? << 4 | digit(low)?) as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    const HEADER: &str = "us,dir,proto,sport,dport,len,head,hash,fate,out_us\n";

    fn ends() -> Ends {
        let (client, server) = ("10.0.0.2:50000", "192.0.2.1:443");
        Ends { client: client.parse().unwrap(), server: server.parse().unwrap() }
    }

    fn score(truth: &Truth) -> Value {
        let named = truth.score().into_iter().map(|(name, value)| (name.to_string(), value));
        named.collect::<Map<String, Value>>().into()
    }

    fn read(rows: &str) -> Result<Truth, String> {
        Truth::read([HEADER, rows].concat().as_bytes())
    }

    #[test]
    fn copies_and_names_are_scored() {
        let fates = ["ok", "lost", "queue", "lost", "lost", "ok"];
        let rows: String = (0u8..6)
            .map(|n| format!("{n}.5,ab,17,443,50000,3,{n:02x}0102,0,{},\n", fates[usize::from(n)]))
            .collect();
        let mut truth = read(&rows).unwrap();
        for n in 0u8..7 {
            truth.shown(Time::from_nanos(n.into()), ends(), u64::from(n) + 1, &[n, 1, 2]);
        }
        let at = Time::from_nanos(2_000_001);
        // The second twice, the third, which a queue dropped, and the sixth, in vain.
        [2, 2, 3, 6, 99].into_iter().for_each(|n| truth.copied(at, ends(), n));
        [4, 6].into_iter().for_each(|n| truth.named(ends(), n));
        assert_eq!(
            score(&truth),
            json!({"packets": 6, "unmatched": 1, "losses": 3, "noticed": 2, "named": 1, "copies": 4, "copies_needed": 3, "false": 1, "recall": 0.6667,
                "precision": 0.75, "unneeded_percent": 10.0, "copy_ms_median": 2.0})
        );
    }

    #[test]
    fn equal_packets_are_matched_in_order() {
        // As it is written: by the time at which the fate is known.
        let mut truth = read(
            "20.0,ab,17,443,50000,2,0102,0,lost,\n\
             10.0,ab,17,443,50000,2,0102,0,ok,2010.0\n\
             15.0,ba,1,0,0,84,0800,0,ok,\n",
        )
        .unwrap();
        truth.shown(Time::ZERO, ends(), 1, &[1, 2]);
        truth.shown(Time::ZERO, ends(), 2, &[1, 2]);
        truth.copied(Time::ZERO, ends(), 2);
        assert_eq!((truth.copies, truth.copies_needed), (1, 1));
    }

    #[test]
    fn nothing_shown_is_no_share() {
        let score = score(&read("").unwrap());
        assert_eq!((&score["recall"], &score["precision"]), (&Value::Null, &Value::Null));
    }

    #[test]
    fn errors_name_line_and_column() {
        for (rows, part) in [
            ("x,ab,17,443,5,2,0102,0,ok,\n", "line 2: column 'us': a number expected, 'x' found"),
            ("1,ab,17,70000,5,2,0102,0,ok,\n", "column 'sport'"),
            ("1,ab,17,443,5,2,01é,0,ok,\n", "column 'head'"),
            ("1,ab,17,443,5,2,0102,0,eaten,\n", "column 'fate'"),
            ("1,ab,17\n", "column 'sport'"),
        ] {
            let error = read(rows).unwrap_err();
            assert!(error.contains(part), "{rows}: {error}");
        }
        assert!(Truth::read(&b""[..]).unwrap_err().contains("is empty"));
        assert!(Truth::read(&b"us,fate\n"[..]).unwrap_err().contains("line 1: column 'proto'"));
        assert!(Truth::load(Path::new("/nonexistent/x")).unwrap_err().contains("/nonexistent/x"));
    }
}
