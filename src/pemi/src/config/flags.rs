// SPDX-License-Identifier: GPL-2.0-or-later
//! What follows `pemi run`, and how it wins over the configuration file.

use std::env;
use std::path::PathBuf;

use log::LevelFilter;
use serde_json::{Map, Value};

use super::Config;
use super::options::{Entry, Kind, TABLE};

/// What follows `pemi run`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// Where events go.
    pub events: Option<PathBuf>,
    /// Whose account to use instead of root's.
    pub user: Option<String>,
    /// The filter of system calls.
    pub seccomp: Option<PathBuf>,
    /// Values of options by their full names, as a file could have them.
    values: Map<String, Value>,
}

impl RunOptions {
    /// Takes the flag of an option, with its value if it is one that has a value.
    pub fn add(&mut self, option: &Entry, text: &str) -> Result<(), String> {
        let name = option.full_name();
        let value = match &option.kind {
            Kind::Switch(_) => false.into(),
            Kind::Names(_) | Kind::Ports(_) => {
                let before = self.values.get(&name).and_then(Value::as_array);
                let mut items = before.cloned().unwrap_or_default();
                items.push(text.into());
                items.into()
            }
            // A file is the same wherever it is read; a command is given in some folder.
            Kind::Path(_) | Kind::PathOrNone(_) if !text.is_empty() && !text.starts_with('/') => {
                let path = env::current_dir().unwrap_or_default().join(text);
                path.to_str().unwrap_or(text).into()
            }
            _ => text.into(),
        };
        if !option.kind.set(&mut Config::default(), &value) {
            return Err(format!("value '{text}' is not valid; allowed: {}", option.kind.allowed()));
        }
        self.values.insert(name, value);
        Ok(())
    }

    /// Puts the flags over the settings of the file.
    pub fn apply(&self, config: &mut Config) {
        for option in TABLE {
            if let Some(value) = self.values.get(&option.full_name()) {
                option.kind.set(config, value);
            }
        }
    }

    /// What is logged until the file has been read.
    pub fn log_level(&self) -> LevelFilter {
        let mut config = Config::default();
        self.apply(&mut config);
        config.log_level
    }
}
