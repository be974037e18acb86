// SPDX-License-Identifier: GPL-2.0-or-later
//! Constants of the engine's rules with other values: `tunables.probe_gap=100ms`.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use pemi_engine::{MS, SEC, Tunable, TunableError, US};
use toml::Value;

/// Names and values. A time is a string with a unit, anything else a number.
pub type Tunables = BTreeMap<String, Value>;

/// What a time may end with.
const UNITS: [(&str, i64); 4] = [("ns", 1), ("us", US), ("ms", MS), ("s", SEC)];

/// The engine's constants with these values.
pub fn read(changes: &Tunables) -> anyhow::Result<pemi_engine::Tunables> {
    changes.iter().try_fold(pemi_engine::Tunables::default(), |tunables, (name, value)| {
        let known = pemi_engine::Tunables::ALL.iter().find(|known| known.name == name);
        let known = known.with_context(|| {
            let names: Vec<_> = pemi_engine::Tunables::ALL.iter().map(|known| known.name).collect();
            format!("tunables.{name}: there is none of this name, but {}", names.join(", "))
        })?;
        let number = number(known, value).with_context(|| format!("tunables.{name}={value}"))?;
        tunables.with(name, number).map_err(|error| match error {
            TunableError::Unknown => anyhow::anyhow!("tunables.{name}: there is none of this name"),
            TunableError::OutOfRange => anyhow::anyhow!("tunables.{name}={value} is out of range"),
        })
    })
}

fn number(known: &Tunable, value: &Value) -> anyhow::Result<i64> {
    match value {
        Value::Integer(number) => {
            ensure!(!known.is_time, "a time needs a unit, as in 5ms or 150us");
            Ok(*number)
        }
        Value::String(text) if known.is_time => nanoseconds(text),
        _ if known.is_time => bail!("wanted a time, as in 5ms or 150us"),
        _ => bail!("wanted a number without a point or a unit"),
    }
}

fn nanoseconds(text: &str) -> anyhow::Result<i64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let unit = UNITS.iter().find(|(known, _)| *known == unit);
    let (_, unit) = unit.context("wanted a time in ns, us, ms or s, as in 150us")?;
    let number: i64 = number.parse().context("wanted a whole number before the unit")?;
    number.checked_mul(*unit).context("it is too long")
}
