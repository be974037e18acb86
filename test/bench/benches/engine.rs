// SPDX-License-Identifier: GPL-2.0-or-later
//! Time of the engine per packet, both directions and the fetching of actions
//! included. One iteration is one pass of a load over an engine that has seen
//! the load before.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pemi_bench::load::{Load, NAMES, settings};
use pemi_engine::{Engine, Time};

/// Packets to clients in one pass.
const DOWN: u64 = 20_000;

fn engine(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine");
    group.sample_size(20);
    for name in NAMES {
        let load = Load::new(name, DOWN).expect("a load of that name");
        let mut engine = Engine::new(settings(), 1);
        let mut pass = 0;
        load.pass(&mut engine, pass);
        group.throughput(Throughput::Elements(load.per_pass));
        group.bench_function(name, |b| {
            b.iter(|| {
                pass += 1;
                load.pass(&mut engine, pass)
            });
        });
        let held = engine.stats(Time::ZERO).concealed_held / u64::from(pass);
        eprintln!("{name}: {} packets a pass, {held} of them held", load.per_pass);
        assert!((held > 20) == (name == "lossy"), "not what it is meant to be");
    }
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);
