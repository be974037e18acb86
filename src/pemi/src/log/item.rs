// SPDX-License-Identifier: GPL-2.0-or-later
//! What is handed over to the writer.

use log::Level;
use pemi_engine::Event;

/// Something to write.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// A log line with its newline.
    Line(Level, String),
    /// An event of the engine.
    Event(Event),
    /// Finish.
    Stop,
}
