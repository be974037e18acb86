// SPDX-License-Identifier: GPL-2.0-or-later
//! What is wrong with a configuration, in words.

use std::fmt;
use std::path::Path;

/// Something wrong with one option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    option: String,
    value: String,
    allowed: String,
}

impl Problem {
    /// `value` of `option` is not one of `allowed`.
    pub fn new(option: &str, value: impl Into<String>, allowed: impl Into<String>) -> Problem {
        Problem { option: option.into(), value: value.into(), allowed: allowed.into() }
    }

    /// Name of the option, that of its section before it.
    pub fn option(&self) -> &str {
        &self.option
    }

    /// Section and option as UCI names them.
    pub fn uci(&self) -> (&str, &str) {
        self.option.split_once('.').unwrap_or(("main", &self.option))
    }

    /// What is wrong with the value.
    pub fn what(&self) -> String {
        format!("value {} is not valid; allowed: {}", self.value, self.allowed)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "option '{}': {}", self.option, self.what())
    }
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The file cannot be read, or is no JSON object.
    File(String),
    /// Options with bad values, all of them.
    Options(Vec<Problem>),
}

impl Error {
    /// One line a problem, each naming the file.
    pub fn lines(&self, file: &Path) -> Vec<String> {
        let file = file.display();
        match self {
            Error::File(what) => vec![format!("{file}: {what}")],
            Error::Options(problems) => problems.iter().map(|p| format!("{file}: {p}")).collect(),
        }
    }
}
