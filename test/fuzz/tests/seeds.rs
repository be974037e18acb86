//! Every target with its seeds and many variations of them, the same ones each
//! time. A fuzzer finds more; this notices when something breaks.

use pemi_fuzz::{TARGETS, mutate};

#[test]
fn seeds_and_variations() {
    let times = std::env::var("FUZZ_TIMES").ok().and_then(|times| times.parse().ok());
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{}", target.name);
        for (index, seed) in seeds.iter().enumerate() {
            (target.run)(seed);
            let mut input = seed.clone();
            for n in 0..times.unwrap_or(200u64) {
                input = mutate(if n % 8 == 0 { seed } else { &input }, n << 16 | index as u64);
                (target.run)(&input);
            }
        }
    }
}
