// SPDX-License-Identifier: GPL-2.0-or-later
//! Constants of the engine's rules can be varied, and are the product's if they are not.

use pemi_sim::matrix;
use pemi_sim::run::{Assist, config, run};
use pemi_sim::tunables::{Tunables, read};
use toml::Value;

/// What one run came to with these changes of a scenario that loses packets.
fn outcome(changes: &[&str]) -> anyhow::Result<String> {
    let changes: Vec<String> = ["flow.bytes=1000000", "wifi.loss_down={ percent = 2 }"]
        .iter()
        .chain(changes)
        .map(|change| (*change).into())
        .collect();
    let scenario = matrix::parse("", &changes)?;
    Ok(serde_json::to_string(&run(&scenario, Assist::On, 1)?)?)
}

#[test]
fn the_default_is_what_the_product_has_and_another_value_changes_a_run() {
    let product = outcome(&[]).unwrap();
    assert_eq!(outcome(&["tunables.first_flight_copies=12"]).unwrap(), product);
    assert_eq!(outcome(&["tunables.margin_same=150us"]).unwrap(), product);
    assert_ne!(outcome(&["tunables.first_flight_copies=0"]).unwrap(), product);
    assert_ne!(outcome(&["tunables.margin_same=900us"]).unwrap(), product);
}

#[test]
fn each_default_can_be_written_down() {
    let all: Tunables = pemi_engine::Tunables::ALL
        .iter()
        .map(|known| {
            let value = match known.is_time {
                true => Value::String(format!("{}ns", known.default)),
                false => Value::Integer(known.default),
            };
            (known.name.to_owned(), value)
        })
        .collect();
    assert_eq!(read(&all).unwrap(), pemi_engine::Tunables::default());
}

#[test]
fn what_is_wrong_is_told() {
    let error = |change: &str| {
        let scenario = matrix::parse("", &[change.into()]).unwrap();
        format!("{:#}", config(&scenario).unwrap_err())
    };
    let unknown = error("tunables.no_such_name=1");
    assert!(unknown.contains("no_such_name: there is none"), "{unknown}");
    assert!(unknown.contains("proven_copies") && unknown.contains("probe_gap"), "{unknown}");
    assert!(error("tunables.probe_gap=100").contains("needs a unit"));
    assert!(error("tunables.probe_gap=100min").contains("ns, us, ms or s"));
    assert!(error("tunables.attempts=2ms").contains("without a point or a unit"));
    assert!(error("tunables.attempts=1.5").contains("without a point or a unit"));
    assert!(error("tunables.attempts=-1").contains("out of range"));
    assert!(error("tunables.probe_gap=9999999999s").contains("too long"));
}
