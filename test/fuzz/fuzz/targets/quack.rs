//! Everything that takes bytes or identifiers in `pemi-quack`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pemi_fuzz::quack::run(data));
