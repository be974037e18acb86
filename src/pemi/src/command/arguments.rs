// SPDX-License-Identifier: GPL-2.0-or-later
//! Values of flags, and what is said of those that are not allowed.

use std::path::PathBuf;

use lexopt::prelude::*;

/// The value of a flag that takes a path.
pub fn path(parser: &mut lexopt::Parser) -> Result<PathBuf, lexopt::Error> {
    Ok(parser.value()?.into())
}

/// The value of a flag that takes any text.
pub fn text(parser: &mut lexopt::Parser) -> Result<String, lexopt::Error> {
    parser.value()?.string()
}

/// The value of a flag that takes a number.
pub fn number<T: TryFrom<u64>>(
    parser: &mut lexopt::Parser,
    flag: &str,
    low: u64,
    high: u64,
) -> Result<T, lexopt::Error> {
    let text = text(parser)?;
    let number = text
        .parse()
        .ok()
        .filter(|n| (low..=high).contains(n))
        .and_then(|n: u64| T::try_from(n).ok());
    number.ok_or_else(|| {
        format!("{flag}: value '{text}' is not valid; allowed: {low} to {high}").into()
    })
}
