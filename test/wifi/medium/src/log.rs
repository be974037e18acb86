// SPDX-License-Identifier: GPL-2.0-or-later
//! What became of every data frame: linkem's columns, so that copies are scored as on its
//! links, and a few of the air's own.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use linkem::frame::{View, hash};
use pemi_air::Nanos;

use crate::frame80211;
use crate::hwsim::Radio;
use crate::medium::Sent;

const HEADER: &str =
    "us,dir,proto,sport,dport,len,head,hash,fate,out_us,from,to,tid,seq,attempts,bytes";

/// The rows of one run. They are kept until it ends: writing takes time, and the guest has
/// one processor.
pub struct Log {
    access_points: usize,
    rows: Vec<Row>,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It arrived, then.
    Arrived(Nanos),
    /// No attempt was left.
    Lost,
    /// It was dropped from the queue in front of the air.
    Queue,
}

struct Row {
    entered: Nanos,
    end: End,
    attempts: u32,
    from: Radio,
    to: Radio,
    tid: u8,
    frame: Vec<u8>,
}

impl Log {
    /// The first so many radios are access points'.
    pub fn new(access_points: usize) -> Log {
        Log { access_points, rows: Vec::new() }
    }

    /// Notes a data frame with one receiver; all else is upkeep of the network.
    pub fn note(&mut self, sent: Sent, end: End, attempts: u32) {
        let Sent { frame, entered, .. } = sent;
        let (Some(to), Some(tid)) = (frame.to, frame80211::tid(&frame.bytes)) else { return };
        let (from, frame) = (frame.from, frame.bytes);
        self.rows.push(Row { entered, end, attempts, from, to, tid, frame });
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
        match self.end {
            End::Arrived(at) => {
                write!(file, "ok,")?;
                write_us(file, at)?;
            }
            End::Lost => write!(file, "lost,")?,
            End::Queue => write!(file, "queue,")?,
        }
        let Row { from, to, tid, attempts, frame, .. } = self;
        let sequence = frame80211::sequence(frame);
        writeln!(file, ",{from},{to},{tid},{sequence},{attempts},{}", frame.len())
    }
}

fn write_us(file: &mut impl Write, at: Nanos) -> io::Result<()> {
    write!(file, "{}.{:03}", at / 1_000, at % 1_000)
}
