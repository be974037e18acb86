// SPDX-License-Identifier: GPL-2.0-or-later
//! Results as JSON.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

/// Prints one JSON object as a line, and writes it to a file if there is one.
pub fn print_json(value: &impl Serialize, file: Option<&Path>) -> Result<()> {
    let text = serde_json::to_string(value)? + "\n";
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()?;
    if let Some(file) = file {
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Prints what a server's connection sent, once it is over: how many packets, how many
/// it took for lost, and, if the stack tells, how many of these were acknowledged after
/// all (`spurious`).
pub fn print_sender(packets: u64, lost: u64, spurious: Option<u64>) -> Result<()> {
    let sender = serde_json::json!({"packets": packets, "lost": lost, "spurious": spurious});
    print_json(&serde_json::json!({"sender": sender}), None)
}

/// To microseconds: what finer digits say is noise.
pub fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
