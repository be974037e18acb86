// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenario files, with options changed by their dotted names.

use std::path::Path;

use anyhow::{Context, bail};
use toml::{Table, Value};

use crate::scenario::Scenario;

/// Reads a scenario; changes are `option=value`, options as in `wifi.delay_ms`.
/// A change of `flow.x` applies to all flows.
pub fn read(path: &Path, changes: &[String]) -> anyhow::Result<Scenario> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the scenario {}", path.display()))?;
    parse(&text, changes).with_context(|| format!("in {}", path.display()))
}

/// The same from a text.
pub fn parse(text: &str, changes: &[String]) -> anyhow::Result<Scenario> {
    if changes.is_empty() {
        // The errors of this way name the line.
        return Ok(toml::from_str(text)?);
    }
    let mut table: Table = toml::from_str(text)?;
    for change in changes {
        let (option, value) = change
            .split_once('=')
            .with_context(|| format!("'{change}': wanted OPTION=VALUE, as in wifi.delay_ms=5"))?;
        // A word without quotes is a string.
        let value = format!("value = {value}")
            .parse::<Table>()
            .map(|mut table| table.remove("value").expect("it was just written"))
            .unwrap_or_else(|_| Value::String(value.into()));
        set(&mut table, option, value).with_context(|| format!("'{change}'"))?;
    }
    Ok(table.try_into()?)
}

fn set(table: &mut Table, option: &str, value: Value) -> anyhow::Result<()> {
    let Some((section, rest)) = option.split_once('.') else {
        table.insert(option.into(), value);
        return Ok(());
    };
    if section == "flow" && !table.contains_key("flow") {
        table.insert("flow".into(), Value::Array(vec![Value::Table(Table::new())]));
    }
    match table.entry(section).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inner) => set(inner, rest, value),
        Value::Array(all) => all.iter_mut().try_for_each(|one| match one {
            Value::Table(inner) => set(inner, rest, value.clone()),
            _ => bail!("'{section}' has no options"),
        }),
        _ => bail!("'{section}' is a value and has no options"),
    }
}
