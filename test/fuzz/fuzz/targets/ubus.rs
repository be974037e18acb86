// SPDX-License-Identifier: GPL-2.0-or-later
//! libFuzzer around `pemi_fuzz::ubus`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pemi_fuzz::ubus::run(data));
