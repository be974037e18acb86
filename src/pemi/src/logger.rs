//! Log lines `LEVEL message key=value ...` on standard error, which procd
//! carries to the system log with a time stamp. Once the [`crate::writer`] runs
//! it prints them, so that a slow reader never holds up whoever logs.

use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

use log::{LevelFilter, Log, Metadata, Record};

use crate::writer::Item;

static WRITER: OnceLock<SyncSender<Item>> = OnceLock::new();
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
            match writer.try_send(Item::Line(line.clone())) {
                Ok(()) => return,
                Err(TrySendError::Full(_)) => return count_dropped(),
                Err(TrySendError::Disconnected(_)) => {}
            }
        }
        // Not yet, or no longer.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn flush(&self) {}
}

/// Starts logging.
pub fn init(level: LevelFilter) {
    // An error means that it has been done before.
    let _ = log::set_logger(&Logger);
    log::set_max_level(level);
}

/// Lets the writer print from now on.
pub fn hand_over(writer: SyncSender<Item>) {
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
