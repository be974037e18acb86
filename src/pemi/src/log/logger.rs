// SPDX-License-Identifier: GPL-2.0-or-later
//! Log lines `LEVEL message key=value ...`: what went wrong on standard error,
//! the rest on standard output, since procd carries the one to the system log as
//! errors and the other as information. Once the [`crate::log::writer`] runs it prints
//! them, so that a slow reader never holds up whoever logs.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use log::{Level, LevelFilter, Log, Metadata, Record};

use crate::log::item::Item;
use crate::sys::channel::{Refused, Sender};

static WRITER: OnceLock<Sender<Item>> = OnceLock::new();
static DROPPED: AtomicU32 = AtomicU32::new(0);

struct Logger;

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let line = format!("{} {}\n", record.level(), record.args());
        if let Some(writer) = WRITER.get() {
            match writer.send(Item::Line(record.level(), line.clone())) {
                Ok(()) => return,
                Err(Refused::Full(_)) => return count_dropped(),
                Err(Refused::Abandoned(_)) => {}
            }
        }
        // Not yet, or no longer.
        print(is_trouble(record.level()), &line);
    }

    fn flush(&self) {}
}

/// Whether lines of this level say that something went wrong.
pub fn is_trouble(level: Level) -> bool {
    level <= Level::Warn
}

/// Prints lines where they belong. If that fails, there is nowhere to report it.
pub fn print(trouble: bool, lines: &str) {
    let _ = match trouble {
        true => std::io::stderr().write_all(lines.as_bytes()),
        false => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(lines.as_bytes()).and_then(|()| stdout.flush())
        }
    };
}

/// Starts logging.
pub fn init(level: LevelFilter) {
    // An error means that it has been done before.
    let _ = log::set_logger(&Logger);
    log::set_max_level(level);
}

/// Lets the writer print from now on.
pub fn hand_over(writer: Sender<Item>) {
    let _ = WRITER.set(writer);
}

/// Counts a line or event that was dropped as the writer could not keep up.
pub fn count_dropped() {
    DROPPED.fetch_add(1, Ordering::Relaxed);
}

/// Lines and events dropped so far.
pub fn dropped() -> u32 {
    DROPPED.load(Ordering::Relaxed)
}
