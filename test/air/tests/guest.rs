// SPDX-License-Identifier: GPL-2.0-or-later
//! The model against Linux' own 802.11 stack over the same channel, in a guest whose clock
//! is virtual: `test/wifi/measured.py` writes what a stream of packets met there.
//!
//! In both no queue stands before the channel, so a stream is of less than what that
//! carries: beyond it the delay in the guest is how much its sender's socket holds.

use std::collections::BTreeSet;
use std::path::Path;

use pemi_air::probe::{Probe, run};
use pemi_air::settings::Settings;

/// Seeds of the model, as the guest's single run is one draw of many.
const SEEDS: u64 = 20;
/// How far outside of what the seeds gave the guest's figure may lie, as a factor ...
const FACTOR: f64 = 1.25;
/// ... and in its unit: ms or packets or thousandths.
const SLACK: f64 = 0.5;

/// A figure of a probe, with its name.
type Figure = (&'static str, fn(&Probe) -> f64);

const FIGURES: [Figure; 8] = [
    ("lost of 1000", |probe| 1e3 * probe.lost as f64 / probe.sent as f64),
    ("longest run", |probe| probe.runs.len() as f64),
    // Where a client moves, the length of the silence: so many packets fall into it.
    ("mean run", Probe::mean_run),
    ("delay p50", |probe| probe.delay_ms.p50),
    ("delay p90", |probe| probe.delay_ms.p90),
    ("delay p99", |probe| probe.delay_ms.p99),
    ("mean clump", |probe| probe.clumps.mean),
    ("largest clump", |probe| probe.clumps.max as f64),
];

#[test]
fn the_model_does_what_the_kernel_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wifi/measured.json");
    let text = std::fs::read_to_string(&path).expect("measured.py writes it");
    let guest: Vec<Probe> = serde_json::from_str(&text).expect("written by measured.py");
    let measured: BTreeSet<&str> = guest.iter().map(|probe| &*probe.preset).collect();
    let presets = Settings::presets();
    assert_eq!(measured, presets.keys().map(String::as_str).collect());
    let draw = |probe: &Probe, seed| {
        run(&probe.preset, &presets[&probe.preset], seed, probe.seconds, probe.rate())
    };
    // Where nothing fails, what the guest's processor takes is all there is besides.
    let clean = guest.iter().find(|probe| probe.preset == "clean").expect("one of the presets");
    let processing = clean.delay_ms.p50 - draw(clean, 1).delay_ms.p50;
    assert!((0.0..SLACK).contains(&processing), "{processing} ms");
    let mut failures = Vec::new();
    for probe in &guest {
        let model: Vec<Probe> = (1..=SEEDS).map(|seed| draw(probe, seed)).collect();
        for (name, figure) in FIGURES {
            let own = if name.starts_with("delay") { processing } else { 0.0 };
            let values = model.iter().map(figure);
            let least = values.clone().fold(f64::INFINITY, f64::min) / FACTOR - SLACK;
            let most = values.fold(0.0, f64::max) * FACTOR + SLACK;
            let found = figure(probe) - own;
            if !(least..=most).contains(&found) {
                let preset = &probe.preset;
                failures.push(format!("{preset}, {name}: {found:.2}, not {least:.2} to {most:.2}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
