// SPDX-License-Identifier: GPL-2.0-or-later
//! Time of the quACK's two halves, each beside the obvious implementation:
//! inserting a packet, and finding 20 missing of 1,000 sent. Threshold 20.

use std::hint::black_box;
use std::num::NonZeroU8;

use criterion::{Criterion, criterion_group, criterion_main};
use pemi_quack::{Identifier, Quack};
use pemi_quack_tests::plain::Plain;
use pemi_quack_tests::scene::Scene;

const SENT: usize = 1_000;
const MISSING: usize = 20;
const THRESHOLD: u8 = 20;

fn ours<I: Identifier>(c: &mut Criterion, bits: u32, narrow: impl Fn(u64) -> I) {
    let scene = Scene::new(1, SENT, MISSING);
    let log = scene.log(narrow);
    let threshold = NonZeroU8::new(THRESHOLD).expect("not zero");
    let mut ids = log.iter().cycle();
    let mut quack = Quack::new(threshold);
    c.bench_function(&format!("insert/{bits}"), |b| {
        b.iter(|| quack.insert(black_box(*ids.next().expect("endless"))));
    });
    let (sent, received) = scene.quacks(&log, THRESHOLD);
    let found = sent.decode(&log, &received).expect("can be decoded");
    assert_eq!(found.len(), MISSING);
    c.bench_function(&format!("decode/{bits}"), |b| {
        b.iter(|| black_box(&sent).decode(black_box(&log), black_box(&received)));
    });
    let mut bytes = Vec::new();
    c.bench_function(&format!("write/{bits}"), |b| {
        b.iter(|| {
            bytes.clear();
            black_box(&received).write(threshold, &mut bytes);
            bytes.len()
        });
    });
    c.bench_function(&format!("parse/{bits}"), |b| {
        b.iter(|| Quack::<I>::parse(black_box(&bytes)));
    });
}

fn plain<const BITS: u32>(c: &mut Criterion) {
    let scene = Scene::new(1, SENT, MISSING);
    let log = scene.log(|id| if BITS < 64 { id % (1 << BITS) } else { id });
    let mut ids = log.iter().cycle();
    let mut quack = Plain::<BITS>::new(THRESHOLD.into());
    c.bench_function(&format!("insert/{BITS}-plain"), |b| {
        b.iter(|| quack.insert(black_box(*ids.next().expect("endless"))));
    });
    let mut sent = Plain::<BITS>::new(THRESHOLD.into());
    let mut received = sent.clone();
    for (index, &id) in log.iter().enumerate() {
        sent.insert(id);
        if scene.lost.binary_search(&index).is_err() {
            received.insert(id);
        }
    }
    c.bench_function(&format!("decode/{BITS}-plain"), |b| {
        b.iter(|| black_box(&sent).decode(black_box(&log), black_box(&received)));
    });
}

fn quack(c: &mut Criterion) {
    ours::<u16>(c, 16, |id| id as u16);
    ours::<u32>(c, 32, |id| id as u32);
    ours::<u64>(c, 64, |id| id);
    plain::<16>(c);
    plain::<32>(c);
    plain::<64>(c);
}

criterion_group!(benches, quack);
criterion_main!(benches);
