// SPDX-License-Identifier: GPL-2.0-or-later
//! What the fuzz targets call with the fuzzer's bytes. Whatever these are, it
//! must neither panic nor find a wrong answer, about which it panics itself.

pub mod config;
pub mod engine;
mod input;
pub mod nfqueue;
pub mod pcap;
pub mod quack;
pub mod radio;
pub mod request;
pub mod sender;
pub mod sidekick;
pub mod ubus;
pub mod udp;

use pemi_quack_tests::scene::numbers;

/// A function of this crate and what to begin with.
pub struct Target {
    /// Name, also of the fuzz target.
    pub name: &'static str,
    /// To be called with anything.
    pub run: fn(&[u8]),
    /// Inputs that reach most of the code.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// One target for each module of that name.
macro_rules! targets {
    ($($name:ident),*) => {
        &[$(Target { name: stringify!($name), run: $name::run, seeds: $name::seeds }),*]
    };
}

/// All of them.
pub const TARGETS: &[Target] =
    targets!(config, engine, nfqueue, pcap, quack, radio, request, sender, sidekick, ubus, udp);

/// `input` with a few bytes changed, taken out, or put in.
pub fn mutate(input: &[u8], seed: u64) -> Vec<u8> {
    let mut random = numbers(seed);
    let mut next = |below: usize| random.next().unwrap_or(0) as usize % below.max(1);
    let mut bytes = input.to_vec();
    for _ in 0..=next(4) {
        let at = next(bytes.len());
        match next(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, next(256) as u8),
            2 if !bytes.is_empty() => drop(bytes.remove(at)),
            3 if !bytes.is_empty() => bytes[at] ^= 1 << next(8),
            4 => bytes.extend_from_within(at..),
            _ if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][next(5)],
            _ => {}
        }
    }
    bytes.truncate(4096);
    bytes
}
