// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs the quACK for tools that count, and takes its best time, which other
//! programs on the machine disturb least:
//! `quack-load WHAT BITS TIMES` does it so many times, for callgrind, and
//! `quack-load time` prints the best nanoseconds of each as JSON.
//! WHAT is one of insert, decode, insert-plain and decode-plain; the sizes are
//! those of the benchmark.

use std::hint::black_box;
use std::num::NonZeroU8;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use pemi_quack::{Identifier, Quack};
use pemi_quack_tests::plain::Plain;
use pemi_quack_tests::scene::Scene;

const SENT: usize = 1_000;
const MISSING: usize = 20;
const THRESHOLD: u8 = 20;

/// Something to be done so many times.
type Work = Box<dyn FnMut(usize)>;

fn ours<I: Identifier + 'static>(what: &str, narrow: impl Fn(u64) -> I) -> Option<Work> {
    let scene = Scene::new(1, SENT, MISSING);
    let log = scene.log(narrow);
    let (sent, received) = scene.quacks(&log, THRESHOLD);
    let mut quack = Quack::new(NonZeroU8::new(THRESHOLD)?);
    match what {
        "insert" => Some(Box::new(move |times| {
            log.iter().cycle().take(times).for_each(|&id| quack.insert(black_box(id)));
            black_box(&quack);
        })),
        "decode" => Some(Box::new(move |times| {
            for _ in 0..times {
                let found = black_box(&sent).decode(black_box(&log), black_box(&received));
                assert_eq!(black_box(found).map(|found| found.len()), Ok(MISSING));
            }
        })),
        _ => None,
    }
}

fn plain<const BITS: u32>(what: &str) -> Option<Work> {
    let scene = Scene::new(1, SENT, MISSING);
    let log = scene.log(|id| if BITS < 64 { id % (1 << BITS) } else { id });
    let mut quack = Plain::<BITS>::new(THRESHOLD.into());
    let (mut sent, mut received) = (quack.clone(), quack.clone());
    for (index, &id) in log.iter().enumerate() {
        sent.insert(id);
        if scene.lost.binary_search(&index).is_err() {
            received.insert(id);
        }
    }
    match what {
        "insert-plain" => Some(Box::new(move |times| {
            log.iter().cycle().take(times).for_each(|&id| quack.insert(black_box(id)));
            black_box(&quack);
        })),
        "decode-plain" => Some(Box::new(move |times| {
            for _ in 0..times {
                let found = black_box(&sent).decode(black_box(&log), black_box(&received));
                // With 16 bits some identifiers are the same, which it cannot do.
                assert!(black_box(found).is_some() || BITS == 16);
            }
        })),
        _ => None,
    }
}

fn work(what: &str, bits: &str) -> Result<Work> {
    let work = match bits {
        "16" => ours(what, |id| id as u16).or_else(|| plain::<16>(what)),
        "32" => ours(what, |id| id as u32).or_else(|| plain::<32>(what)),
        "64" => ours(what, |id| id).or_else(|| plain::<64>(what)),
        _ => None,
    };
    work.context("quack-load insert|decode|insert-plain|decode-plain 16|32|64 TIMES")
}

/// The shortest of many measurements of a tenth of a millisecond or more, in
/// nanoseconds for one.
fn best(work: &mut Work, times: usize) -> f64 {
    let measure = |_| {
        let start = Instant::now();
        work(times);
        start.elapsed().as_secs_f64() * 1e9 / times as f64
    };
    (0..3_000).map(measure).fold(f64::INFINITY, f64::min)
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["time"] => {
            let mut lines = Vec::new();
            for bits in ["16", "32", "64"] {
                for (what, times) in [("insert", 2_000), ("decode", 4)] {
                    for kind in ["", "-plain"] {
                        let what = format!("{what}{kind}");
                        let ns = best(&mut work(&what, bits)?, times);
                        lines.push(format!("  \"{what}/{bits}\": {ns:.1}"));
                    }
                }
            }
            println!("{{\n{}\n}}", lines.join(",\n"));
        }
        [what, bits, times] => work(what, bits)?(times.parse()?),
        _ => bail!("quack-load time | WHAT BITS TIMES"),
    }
    Ok(())
}
