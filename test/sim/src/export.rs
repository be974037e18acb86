// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes what was recorded to files.

mod sqlog;

use std::path::Path;

use anyhow::Context;

use crate::timeline;
use crate::trace::Trace;

/// Writes `trace.sqlog` and the time line of one flow, `timeline.svg`.
pub fn write(trace: &Trace, dir: &Path, flow: usize) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir)
        .with_context(|| format!("cannot create the folder {}", dir.display()))?;
    let drawing = timeline::draw(trace, flow)?;
    for (name, text) in [("trace.sqlog", sqlog::text(trace)), ("timeline.svg", drawing)] {
        let path = dir.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
