// SPDX-License-Identifier: GPL-2.0-or-later
//! Prints what a stream of packets meets on each preset, as JSON.

use pemi_air::probe;
use pemi_air::settings::Settings;

fn main() {
    let presets = Settings::presets();
    let probes =
        presets.iter().map(|(name, settings)| probe::run(name, settings, 1, 20, probe::RATE));
    let probes: Vec<_> = probes.collect();
    println!("{}", serde_json::to_string_pretty(&probes).expect("numbers and names"));
}
