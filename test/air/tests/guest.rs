// SPDX-License-Identifier: GPL-2.0-or-later
//! The model against Linux' own 802.11 stack over the same channel, in a guest whose clock
//! is virtual: `test/wifi/measured.py` writes what a stream of packets met there.

use std::path::Path;

use pemi_air::probe::{Probe, run};
use pemi_air::settings::Settings;

/// Seeds of the model, as the guest's single run is one draw of many.
const SEEDS: u64 = 20;
/// Seconds of the guest's run.
const SECONDS: u32 = 10;
/// How far outside of what the seeds gave the guest's figure may lie, as a factor ...
const FACTOR: f64 = 1.25;
/// ... and in its unit: ms or packets or thousandths.
const SLACK: f64 = 0.5;

/// A figure of a probe, with its name.
type Figure = (&'static str, fn(&Probe) -> f64);

const FIGURES: [Figure; 7] = [
    ("lost of 1000", |probe| 1e3 * probe.lost as f64 / probe.sent as f64),
    ("longest run", |probe| probe.runs.len() as f64),
    ("delay p50", |probe| probe.delay_ms.p50),
    ("delay p90", |probe| probe.delay_ms.p90),
    ("delay p99", |probe| probe.delay_ms.p99),
    ("mean clump", |probe| probe.clumps.mean),
    ("largest clump", |probe| probe.clumps.max as f64),
];

/// Presets whose stream the guest carries otherwise: there no queue stands before the
/// channel, sleep and roaming are the kernel's and hostapd's own.
const OTHERWISE: [&str; 3] = ["far", "crowded", "roam"];

#[test]
fn the_model_does_what_the_kernel_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wifi/measured.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        // The guest is measured on its own and not wherever this crate is tested.
        return;
    };
    let guest: Vec<Probe> = serde_json::from_str(&text).expect("written by measured.py");
    let mut failures = Vec::new();
    for probe in guest.iter().filter(|probe| !OTHERWISE.contains(&&*probe.preset)) {
        let settings = Settings::preset(&probe.preset).expect("the guest has the same presets");
        let model: Vec<Probe> =
            (1..=SEEDS).map(|seed| run(&probe.preset, &settings, seed, SECONDS)).collect();
        for (name, figure) in FIGURES {
            let values = model.iter().map(figure);
            let least = values.clone().fold(f64::INFINITY, f64::min) / FACTOR - SLACK;
            let most = values.fold(0.0, f64::max) * FACTOR + SLACK;
            let found = figure(probe);
            if !(least..=most).contains(&found) {
                let preset = &probe.preset;
                failures.push(format!("{preset}, {name}: {found:.2}, not {least:.2} to {most:.2}"));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
