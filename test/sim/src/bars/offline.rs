// SPDX-License-Identifier: GPL-2.0-or-later
//! The rows about recorded packets of real stacks.

use std::path::Path;

use super::Row;
use crate::captures::{self, Score};

/// The rows, from the logs in a folder.
pub fn rows(logs: &Path) -> anyhow::Result<Vec<Row>> {
    let scores = captures::score(logs)?;
    let of = |start: &'static str| scores.iter().filter(move |score| score.name.starts_with(start));
    let others = || of("quinn").chain(of("quicgo"));
    let clean = of("chromium").filter(|score| score.losses == 0);
    let false_marks = clean.map(|score| score.false_per_1000).fold(0.0, f64::max);
    Ok(vec![
        row("Chromium, losses noticed", share(of("chromium"), false), ">= 0.9", |v| v >= 0.9),
        row(
            "Chromium, losses noticed that are no tails",
            share(of("chromium"), true),
            ">= 0.9",
            |v| v >= 0.9,
        ),
        row("Chromium without losses, false marks", false_marks, "<= 3 of 1000 packets", |v| {
            v <= 3.0
        }),
        row("quinn and quic-go, losses noticed", share(others(), false), ">= 0.95", |v| v >= 0.95),
        row(
            "quinn and quic-go, losses noticed that are no tails",
            share(others(), true),
            ">= 0.95",
            |v| v >= 0.95,
        ),
    ])
}

fn share<'a>(scores: impl Iterator<Item = &'a Score>, without_tails: bool) -> f64 {
    let (noticed, losses) = scores.fold((0, 0), |(noticed, losses), score| {
        if without_tails {
            (noticed + score.noticed_without_tails, losses + score.losses - score.tails)
        } else {
            (noticed + score.noticed, losses + score.losses)
        }
    });
    noticed as f64 / losses.max(1) as f64
}

fn row(name: &str, value: f64, bar: &str, holds: fn(f64) -> bool) -> Row {
    Row::new(format!("captures: {name}"), value, holds(value), bar.into())
}
