// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs the engine for tools that count: `engine-load run PASSES` for
//! callgrind, `engine-load packets` for how many packets one pass has, and
//! `engine-load memory FLOWS` for the heap that flows take.

use anyhow::{Context, Result, bail};
use pemi_bench::load::{Load, NAMES, settings};
use pemi_engine::{Engine, Time};
use pemi_engine_tests::heap;

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

/// Packets to clients in each load, for a tool that is fifty times slower.
const DOWN: u64 = 4_000;

fn loads() -> Result<Vec<Load>> {
    NAMES.iter().map(|name| Load::new(name, DOWN).context("no such load")).collect()
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["packets"] => println!("{}", loads()?.iter().map(|load| load.per_pass).sum::<u64>()),
        ["run", passes] => {
            let passes: u32 = passes.parse()?;
            for load in loads()? {
                let mut engine = Engine::new(settings(), 1);
                for pass in 0..passes {
                    std::hint::black_box(load.pass(&mut engine, pass));
                }
            }
        }
        ["memory", flows] => {
            let flows: u64 = flows.parse()?;
            let load = Load::new("flows-1000", 20_000).context("no such load")?;
            let mut engine = Engine::new(settings(), 1);
            let before = heap::count().bytes;
            load.pass(&mut engine, 0);
            let used = (heap::count().bytes - before) as u64;
            let active = engine.stats(Time::ZERO).flows_active;
            if active != flows {
                bail!("{active} flows in the table, not {flows}");
            }
            println!("{}", used / flows);
        }
        _ => bail!("engine-load packets | run PASSES | memory 1000"),
    }
    Ok(())
}
