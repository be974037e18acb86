// SPDX-License-Identifier: GPL-2.0-or-later
//! The thread that writes log lines and event files. Whoever has something to
//! write hands it over without waiting; what does not fit is dropped and
//! counted ([`crate::log::logger::dropped`]).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::iter;
use std::thread::sleep;
use std::time::{Duration, Instant};

use log::Level;
use pemi_engine::Event;

use crate::log::item::Item;
use crate::log::limit::Limit;
use crate::log::{events, logger};
use crate::sys::channel::{self, Receiver, Refused, Sender};
use crate::sys::reply::{self, Expected};
use crate::sys::{privileges, thread};

/// Items that may wait.
const BACKLOG: usize = 2048;
const STACK: usize = 128 << 10;
/// The level of the lines about flows, which are written when a flow begins and ends.
const FLOWS: Level = Level::Info;
/// How long the last lines may take when the daemon stops; whoever reads
/// standard error may have stopped doing so.
const PATIENCE: Duration = Duration::from_secs(2);

/// The writer.
#[derive(Debug)]
pub struct Writer {
    sender: Sender<Item>,
    finished: Expected<()>,
}

impl Writer {
    /// Starts the thread; events go to `file`, too, if there is one.
    pub fn start(file: Option<File>) -> io::Result<Writer> {
        let (sender, items) = channel::channel(BACKLOG);
        let (done, finished) = reply::pair();
        let work = move || {
            // Its files are open already, and it needs no rights. What it writes depends on
            // packets that anybody can send.
            privileges::keep_in_thread(&[]);
            write(&items, file.map(BufWriter::new));
            done.send(());
            Ok(())
        };
        thread::start("pemi-writer", STACK, Box::new(work))?;
        logger::hand_over(sender.clone());
        Ok(Writer { sender, finished })
    }

    /// Where to hand things over.
    pub fn sender(&self) -> Sender<Item> {
        self.sender.clone()
    }

    /// Writes what is still waiting and ends the thread.
    pub fn stop(self) {
        let mut stop = Item::Stop;
        let start = Instant::now();
        // The backlog may be full of lines that nobody takes.
        while let Err(Refused::Full(again)) = self.sender.send(stop) {
            if start.elapsed() >= PATIENCE {
                return;
            }
            stop = again;
            sleep(Duration::from_millis(5));
        }
        self.finished.wait(PATIENCE);
    }
}

/// Lines that wait to be printed together.
#[derive(Default)]
struct Lines {
    trouble: String,
    other: String,
}

impl Lines {
    fn of(&mut self, level: Level) -> &mut String {
        if logger::is_trouble(level) { &mut self.trouble } else { &mut self.other }
    }

    fn print(&mut self) {
        for (trouble, lines) in [(false, &mut self.other), (true, &mut self.trouble)] {
            if !lines.is_empty() {
                logger::print(trouble, lines);
                lines.clear();
            }
        }
    }
}

fn write(items: &Receiver<Item>, mut file: Option<BufWriter<File>>) {
    let mut lines = Lines::default();
    let mut limit = Limit::new(Instant::now());
    loop {
        let first = items.wait(limit.wait(Instant::now()));
        let mut stop = false;
        for item in first.into_iter().chain(iter::from_fn(|| items.take()).take(BACKLOG)) {
            match item {
                Item::Line(level, line) => lines.of(level).push_str(&line),
                Item::Event(event) => write_event(&event, &mut lines, &mut limit, &mut file),
                Item::Stop => stop = true,
            }
        }
        if let Some(flows) = limit.tell(Instant::now(), stop) {
            lines.other.push_str(&format!("{FLOWS} {flows}\n"));
        }
        lines.print();
        if let Some(Err(error)) = file.as_mut().map(Write::flush) {
            file = None;
            logger::print(true, &format!("ERROR event file given up: {error}\n"));
        }
        if stop {
            return;
        }
    }
}

fn write_event(
    event: &Event,
    lines: &mut Lines,
    limit: &mut Limit,
    file: &mut Option<BufWriter<File>>,
) {
    let level = events::level(event.kind);
    // Whoever asks for more than usual wants all of it.
    let limited = level == FLOWS && log::max_level() <= FLOWS;
    if level <= log::max_level() && (!limited || limit.allows(event.kind, Instant::now())) {
        lines.of(level).push_str(&format!("{level} {}\n", events::Text(event)));
    }
    if let Some(file) = file {
        // If this fails, the flush that follows fails, too.
        let _ = writeln!(file, "{}", events::json(event));
    }
}
