// SPDX-License-Identifier: GPL-2.0-or-later
//! `fuzz-seeds TARGET FOLDER` writes what a fuzz target begins with.

use std::path::PathBuf;

use anyhow::{Context, Result};
use pemi_fuzz::TARGETS;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let name = args.next().context("fuzz-seeds TARGET FOLDER")?;
    let folder = PathBuf::from(args.next().context("fuzz-seeds TARGET FOLDER")?);
    let target = TARGETS.iter().find(|target| target.name == name).context("no such target")?;
    std::fs::create_dir_all(&folder)?;
    for (index, seed) in (target.seeds)().iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{index:03}")), seed)?;
    }
    Ok(())
}
