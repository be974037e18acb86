// SPDX-License-Identifier: GPL-2.0-or-later
//! What became of every data frame: linkem's columns, so that copies are scored as on its
//! links, and a few of the air's own.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use linkem::frame::{View, hash};
use pemi_air::Nanos;
use pemi_air::channel::{Fate, Kind};

use crate::frame80211;
use crate::hwsim::{Frame, Radio};

const HEADER: &str =
    "us,dir,proto,sport,dport,len,head,hash,fate,out_us,from,to,tid,seq,attempts,bytes";

/// The rows of one run. They are kept until it ends: writing takes time, and the guest has
/// one processor.
pub struct Log {
    access_points: usize,
    rows: Vec<Row>,
}

struct Row {
    entered: Nanos,
    /// When it arrived; none: no attempt was left.
    arrived: Option<Nanos>,
    attempts: u32,
    from: Radio,
    to: Radio,
    tid: u8,
    sequence: u16,
    frame: Vec<u8>,
}

impl Log {
    /// The first so many radios are access points'.
    pub fn new(access_points: usize) -> Log {
        Log { access_points, rows: Vec::new() }
    }

    /// Notes a data frame with one receiver; all else is upkeep of the network.
    pub fn note(&mut self, fate: Fate<Frame>) {
        let (Some(to), Kind::Data { tid, sequence }) = (fate.frame.to, fate.frame.kind) else {
            return;
        };
        self.rows.push(Row {
            entered: fate.entered,
            arrived: fate.delivered.then_some(fate.at),
            attempts: fate.attempts,
            from: fate.frame.from.index(),
            to: to.index(),
            tid,
            sequence,
            frame: fate.frame.handle.bytes,
        });
    }

    /// Writes the rows.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        writeln!(file, "{HEADER}")?;
        for row in &self.rows {
            row.write(&mut file, row.from < self.access_points)?;
        }
        file.flush()
    }
}

impl Row {
    fn write(&self, file: &mut impl Write, down: bool) -> io::Result<()> {
        let inside = frame80211::ethernet(&self.frame);
        // Of what is encrypted nothing is known but its length.
        let view = View::of(inside.as_deref().unwrap_or(&self.frame));
        let dir = if down { "ab" } else { "ba" };
        write_us(file, self.entered)?;
        let (source, destination) = view.ports;
        write!(file, ",{dir},{},{source},{destination},{},", view.protocol, view.length)?;
        write!(file, ",{:016x},", hash(view.payload))?;
        match self.arrived {
            Some(at) => {
                write!(file, "ok,")?;
                write_us(file, at)?;
            }
            None => write!(file, "lost,")?,
        }
        let Row { from, to, tid, sequence, attempts, frame, .. } = self;
        writeln!(file, ",{from},{to},{tid},{sequence},{attempts},{}", frame.len())
    }
}

fn write_us(file: &mut impl Write, at: Nanos) -> io::Result<()> {
    write!(file, "{}.{:03}", at / 1_000, at % 1_000)
}
