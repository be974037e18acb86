//! A Sidekick router with whatever messages, packets and times come.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pemi_fuzz::sidekick::run(data));
