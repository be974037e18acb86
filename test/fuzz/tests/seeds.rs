// SPDX-License-Identifier: GPL-2.0-or-later
//! Every target with its seeds, the corpus, and many variations of them, the same ones
//! each time. A fuzzer finds more; this notices when something breaks.

use std::fs;
use std::path::Path;

use pemi_fuzz::{TARGETS, Target, mutate};

/// Variations of all inputs of a target together.
const VARIATIONS: u64 = 4000;

fn inputs(target: &Target) -> Vec<Vec<u8>> {
    let mut inputs = (target.seeds)();
    assert!(!inputs.is_empty(), "{}", target.name);
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let mut files: Vec<_> = fs::read_dir(&corpus)
        .unwrap_or_else(|error| panic!("{}: {error}", corpus.display()))
        .map(|entry| entry.expect("a folder that can be read").path())
        .collect();
    assert!(!files.is_empty(), "{}", corpus.display());
    files.sort();
    inputs.extend(files.iter().map(|file| fs::read(file).expect("a file that can be read")));
    inputs
}

#[test]
fn seeds_corpus_and_variations() {
    let times = std::env::var("FUZZ_TIMES").ok().and_then(|times| times.parse().ok());
    for target in TARGETS {
        let inputs = inputs(target);
        let each = times.unwrap_or(VARIATIONS) / inputs.len() as u64;
        for (index, seed) in inputs.iter().enumerate() {
            (target.run)(seed);
            let mut input = seed.clone();
            for n in 0..=each {
                input = mutate(if n % 8 == 0 { seed } else { &input }, n << 16 | index as u64);
                (target.run)(&input);
            }
        }
    }
}
