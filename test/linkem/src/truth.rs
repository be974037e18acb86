// SPDX-License-Identifier: GPL-2.0-or-later
//! The ground truth: a CSV file with what happened to each frame.
//!
//! A thread of its own formats and writes the rows. When it cannot keep up, rows
//! are dropped and counted; forwarding never waits.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::frame::{View, hash};
use crate::pipe::Dropped;
use crate::{Direction, Nanos};

/// The columns.
pub const HEADER: &str = "us,dir,proto,sport,dport,len,head,hash,fate,out_us";

const HEAD_BYTES: usize = 16;
/// Rows that may wait: more than two seconds of 30,000 packets a second each way.
const WAITING_ROWS: usize = 1 << 17;
/// The thread looks for rows as often as this. It is not woken for each one: the
/// system call would be the forwarding thread's.
const LOOK: Duration = Duration::from_millis(10);

/// What identifies a frame in the log.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    entered: Nanos,
    direction: Direction,
    protocol: u8,
    ports: (u16, u16),
    length: u32,
    head: [u8; HEAD_BYTES],
    head_length: u8,
    hash: u64,
}

impl Identity {
    /// Of a frame that entered the pipe at `entered`.
    pub fn new(entered: Nanos, direction: Direction, view: &View) -> Identity {
        let mut head = [0; HEAD_BYTES];
        let head_length = view.payload.len().min(HEAD_BYTES);
        head[..head_length].copy_from_slice(&view.payload[..head_length]);
        Identity {
            entered,
            direction,
            protocol: view.protocol,
            ports: view.ports,
            length: view.length as u32,
            head,
            head_length: head_length as u8,
            hash: hash(view.payload),
        }
    }
}

/// What became of a frame.
#[derive(Clone, Copy, Debug)]
pub enum Fate {
    /// Handed to the other interface at this time.
    Delivered(Nanos),
    /// Came through the pipe, but was not sent: an error, or the end of the run.
    Unsent,
    /// Did not come through the pipe.
    Dropped(Dropped),
}

type Row = (Identity, Fate);

/// The open log.
#[derive(Debug)]
pub struct Truth {
    rows: SyncSender<Row>,
    writer: JoinHandle<io::Result<()>>,
}

impl Truth {
    /// Creates the file and starts the thread, at this thread's priority.
    pub fn create(path: &Path) -> io::Result<Truth> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
        writeln!(file, "{HEADER}")?;
        file.flush()?;
        let (rows, receiver) = sync_channel(WAITING_ROWS);
        let writer = thread::Builder::new()
            .name("truth".into())
            .spawn(move || write_rows(&receiver, file))?;
        Ok(Truth { rows, writer })
    }

    /// Logs a frame; false if there was no room.
    pub fn log(&self, identity: Identity, fate: Fate) -> bool {
        self.rows.try_send((identity, fate)).is_ok()
    }

    /// Writes what is left.
    pub fn finish(self) -> io::Result<()> {
        drop(self.rows);
        self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the log's thread panicked")))
    }
}

fn write_rows(rows: &Receiver<Row>, mut file: impl Write) -> io::Result<()> {
    loop {
        match rows.try_recv() {
            Ok((identity, fate)) => write_row(&mut file, &identity, fate)?,
            Err(TryRecvError::Empty) => {
                file.flush()?;
                thread::sleep(LOOK);
            }
            Err(TryRecvError::Disconnected) => return file.flush(),
        }
    }
}

fn write_row(file: &mut impl Write, identity: &Identity, fate: Fate) -> io::Result<()> {
    let Identity {
        entered,
        direction,
        protocol,
        ports: (source, destination),
        length,
        head,
        head_length,
        hash,
    } = identity;
    write_us(file, *entered)?;
    let direction = direction.name();
    write!(file, ",{direction},{protocol},{source},{destination},{length},")?;
    for byte in &head[..usize::from(*head_length)] {
        write!(file, "{byte:02x}")?;
    }
    write!(file, ",{hash:016x},")?;
    match fate {
        Fate::Delivered(out) => {
            file.write_all(b"ok,")?;
            write_us(file, out)?;
        }
        Fate::Unsent => file.write_all(b"ok,")?,
        Fate::Dropped(Dropped::Lost) => file.write_all(b"lost,")?,
        Fate::Dropped(Dropped::Queue) => file.write_all(b"queue,")?,
    }
    file.write_all(b"\n")
}

fn write_us(file: &mut impl Write, time: Nanos) -> io::Result<()> {
    write!(file, "{}.{}", time / 1000, time % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_columns_of_the_header() {
        let view = View {
            network_bytes: 100,
            protocol: 17,
            ports: (443, 5000),
            length: 18,
            payload: b"0123456789abcdefgh",
            measured: true,
        };
        let identity = Identity::new(1_234_567, Direction::Ba, &view);
        let mut text = Vec::new();
        for fate in [
            Fate::Delivered(2_000_099),
            Fate::Unsent,
            Fate::Dropped(Dropped::Lost),
            Fate::Dropped(Dropped::Queue),
        ] {
            write_row(&mut text, &identity, fate).unwrap();
        }
        let hash = hash(view.payload);
        let head = "30313233343536373839616263646566";
        let common = format!("1234.5,ba,17,443,5000,18,{head},{hash:016x}");
        assert_eq!(
            String::from_utf8(text).unwrap(),
            format!("{common},ok,2000.0\n{common},ok,\n{common},lost,\n{common},queue,\n")
        );
        assert_eq!(common.split(',').count() + 2, HEADER.split(',').count());
    }

    #[test]
    fn everything_logged_is_in_the_file() {
        let path = std::env::temp_dir().join(format!("linkem-truth-{}.csv", std::process::id()));
        let truth = Truth::create(&path).unwrap();
        let view = View::of(&[]);
        for entered in 0..1000 {
            let identity = Identity::new(entered, Direction::Ab, &view);
            assert!(truth.log(identity, Fate::Unsent));
        }
        truth.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(text.lines().count(), 1001);
    }
}
