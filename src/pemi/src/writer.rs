//! The thread that writes log lines and event files. Whoever has something to
//! write hands it over without waiting; what does not fit is dropped and
//! counted ([`crate::logger::dropped`]).

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use log::Level;
use pemi_engine::Event;

use crate::reply::{self, Expected};
use crate::{events, logger};

/// Items that may wait.
const BACKLOG: usize = 2048;
const STACK: usize = 128 << 10;
/// How long the last lines may take when the daemon stops; whoever reads
/// standard error may have stopped doing so.
const PATIENCE: Duration = Duration::from_secs(2);

/// Something to write.
#[derive(Debug)]
pub enum Item {
    /// A log line with its newline.
    Line(Level, String),
    /// An event of the engine.
    Event(Event),
    /// Finish.
    Stop,
}

/// The writer.
#[derive(Debug)]
pub struct Writer {
    sender: SyncSender<Item>,
    finished: Expected<()>,
}

impl Writer {
    /// Starts the thread; events go to `file`, too, if there is one.
    pub fn start(file: Option<File>) -> io::Result<Writer> {
        let (sender, items) = mpsc::sync_channel(BACKLOG);
        let (done, finished) = reply::pair();
        thread::Builder::new().name("pemi-writer".into()).stack_size(STACK).spawn(move || {
            write(&items, file.map(BufWriter::new));
            done.send(());
        })?;
        logger::hand_over(sender.clone());
        Ok(Writer { sender, finished })
    }

    /// Where to hand things over.
    pub fn sender(&self) -> SyncSender<Item> {
        self.sender.clone()
    }

    /// Writes what is still waiting and ends the thread.
    pub fn stop(self) {
        let mut stop = Item::Stop;
        let start = Instant::now();
        // The backlog may be full of lines that nobody takes.
        while let Err(TrySendError::Full(again)) = self.sender.try_send(stop) {
            if start.elapsed() >= PATIENCE {
                return;
            }
            stop = again;
            thread::sleep(Duration::from_millis(5));
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
    while let Ok(first) = items.recv() {
        let mut stop = false;
        for item in std::iter::once(first).chain(items.try_iter().take(BACKLOG)) {
            match item {
                Item::Line(level, line) => lines.of(level).push_str(&line),
                Item::Event(event) => write_event(&event, &mut lines, &mut file),
                Item::Stop => stop = true,
            }
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

fn write_event(event: &Event, lines: &mut Lines, file: &mut Option<BufWriter<File>>) {
    let level = events::level(event.kind);
    if level <= log::max_level() {
        lines.of(level).push_str(&format!("{level} {}\n", events::Text(event)));
    }
    if let Some(file) = file {
        // A failure is told by the flush that follows.
        let _ = writeln!(file, "{}", events::json(event));
    }
}
