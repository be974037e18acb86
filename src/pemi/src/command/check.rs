// SPDX-License-Identifier: GPL-2.0-or-later
//! `pemi check`: reads a configuration and explains what it says or what is wrong.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::config::{self, Error};
use crate::daemon::object::object;

/// Options of `pemi check`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The file.
    pub file: PathBuf,
    /// Answer in JSON.
    pub json: bool,
    /// The UCI file that it was made of, to be named instead of it.
    pub uci: Option<PathBuf>,
    /// Where a configuration goes that lacks what is wrong in this one.
    pub repaired: Option<PathBuf>,
}

/// Explains; the error says what is wrong, a problem a line.
pub fn run(options: &Options) -> Result<(), String> {
    let file = &options.file;
    let result = config::load(file);
    if let Some(path) = &options.repaired {
        let text = fs::read_to_string(file).unwrap_or_default();
        fs::write(path, config::repair(&text) + "\n")
            .map_err(|e| format!("{}: {e}", path.display()))?;
    }
    match result {
        Ok((config, warnings)) if options.json => {
            let config = config.to_json();
            let answer =
                vec![("ok", true.into()), ("warnings", warnings.into()), ("config", config)];
            println!("{}", object(answer));
            Ok(())
        }
        Ok((_, warnings)) if options.uci.is_some() => {
            // Warnings alone: the init script has nothing to do with the rest.
            let name = options.uci.as_ref().unwrap_or(file).display();
            warnings.iter().for_each(|warning| println!("{name}: {warning}"));
            Ok(())
        }
        Ok((config, warnings)) => {
            println!("{}: OK", file.display());
            warnings.iter().for_each(|warning| println!("warning: {warning}"));
            if let Value::Object(options) = config.to_json() {
                options.iter().for_each(|(name, value)| println!("  {name} = {value}"));
            }
            Ok(())
        }
        Err(error) => {
            let lines = match &options.uci {
                Some(uci) => uci_lines(&error, uci),
                None => error.lines(file),
            };
            if options.json {
                println!("{}", object(vec![("ok", false.into()), ("errors", lines.into())]));
                return Err(String::new());
            }
            Err(lines.join("\n"))
        }
    }
}

fn uci_lines(error: &Error, uci: &Path) -> Vec<String> {
    let Error::Options(problems) = error else { return error.lines(uci) };
    problems
        .iter()
        .map(|problem| {
            let (section, option) = problem.uci();
            let what = problem.what();
            format!("{}: section '{section}', option '{option}': {what}", uci.display())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uci_names_are_used_where_the_file_comes_from_uci() {
        let error = config::parse(r#"{"queues":9,"sidekick":{"port":0}}"#, None).unwrap_err();
        let lines = uci_lines(&error, Path::new("/etc/config/pemi"));
        assert_eq!(
            lines,
            [
                "/etc/config/pemi: section 'main', option 'queues': value 9 is not valid; \
                 allowed: a number from 1 to 8",
                "/etc/config/pemi: section 'sidekick', option 'port': value 0 is not valid; \
                 allowed: a number from 1 to 65535",
            ]
        );
    }
}
