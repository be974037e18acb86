//! Taking options out of a JSON object whose values may be written as UCI does.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::Problem;

/// Takes options out of an object and collects what is wrong with them.
pub(super) struct Reader<'a> {
    object: &'a Map<String, Value>,
    section: &'static str,
    problems: Vec<Problem>,
    known: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    /// For the options of `object`, whose names in messages begin with `section`.
    pub fn new(object: &'a Map<String, Value>, section: &'static str) -> Reader<'a> {
        Reader { object, section, problems: Vec::new(), known: Vec::new() }
    }

    fn get(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.object.get(name).filter(|value| !value.is_null()).cloned()
    }

    pub fn ignore(&mut self, name: &'static str) {
        self.known.push(name);
    }

    fn bad(&mut self, name: &str, value: &Value, allowed: impl Into<String>) {
        let option = format!("{}{name}", self.section);
        self.problems.push(Problem::new(&option, value.to_string(), allowed));
    }

    pub fn number<T: TryFrom<u64>>(
        &mut self,
        name: &'static str,
        into: &mut T,
        low: u64,
        high: u64,
    ) {
        let Some(value) = self.get(name) else { return };
        match as_number(&value)
            .filter(|n| (low..=high).contains(n))
            .and_then(|n| T::try_from(n).ok())
        {
            Some(number) => *into = number,
            None => self.bad(name, &value, format!("a number from {low} to {high}")),
        }
    }

    pub fn switch(&mut self, name: &'static str, into: &mut bool) {
        let Some(value) = self.get(name) else { return };
        match as_switch(&value) {
            Some(on) => *into = on,
            None => {
                self.bad(name, &value, "1, 0, on, off, true, false, yes, no, enabled, disabled")
            }
        }
    }

    pub fn choice<T: Copy>(&mut self, name: &'static str, into: &mut T, choices: &[(&str, T)]) {
        let Some(value) = self.get(name) else { return };
        match choices.iter().find(|(word, _)| value.as_str() == Some(word)) {
            Some((_, choice)) => *into = *choice,
            None => {
                let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                self.bad(name, &value, words.join(", "));
            }
        }
    }

    /// A list, or one string with spaces as old UCI files have it.
    fn list(&mut self, name: &'static str) -> Option<(Value, Vec<Value>)> {
        let value = self.get(name)?;
        let items = match &value {
            Value::Array(items) => items.clone(),
            Value::String(words) => words.split_ascii_whitespace().map(Value::from).collect(),
            single => vec![single.clone()],
        };
        Some((value, items))
    }

    pub fn names(&mut self, name: &'static str, into: &mut Vec<String>) {
        let Some((value, items)) = self.list(name) else { return };
        // Linux limits interface names to 15 bytes. The last three would mean
        // something else in a firewall rule.
        let valid = |s: &&str| {
            s.len() <= 15 && s.bytes().all(|b| b.is_ascii_graphic() && !b"/\"\\*".contains(&b))
        };
        let names: Option<Vec<String>> =
            items.iter().map(|item| item.as_str().filter(valid).map(str::to_string)).collect();
        match names {
            Some(names) => *into = names.into_iter().filter(|name| !name.is_empty()).collect(),
            None => self.bad(
                name,
                &value,
                "a list of names of up to 15 characters, none of them / \" \\ *",
            ),
        }
    }

    pub fn ports(&mut self, name: &'static str, into: &mut Vec<u16>) {
        let Some((value, items)) = self.list(name) else { return };
        let port =
            |item: &Value| as_number(item).and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 0);
        match items.iter().map(port).collect::<Option<Vec<u16>>>() {
            Some(ports) if (1..=16).contains(&ports.len()) => *into = ports,
            _ => self.bad(name, &value, "1 to 16 numbers from 1 to 65535"),
        }
    }

    pub fn path(&mut self, name: &'static str, into: &mut PathBuf) {
        let Some(value) = self.get(name) else { return };
        // A socket's path has to fit into sockaddr_un.
        match value.as_str().filter(|path| path.starts_with('/') && path.len() < 108) {
            Some(path) => *into = path.into(),
            None => self.bad(name, &value, "an absolute path of up to 107 bytes"),
        }
    }

    /// Empty means none.
    pub fn path_or_none(&mut self, name: &'static str, into: &mut Option<PathBuf>) {
        let mut path = PathBuf::new();
        if self.object.get(name).is_some_and(|value| value != "") {
            self.path(name, &mut path);
        } else {
            self.ignore(name);
        }
        *into = (path != Path::new("")).then_some(path);
    }

    pub fn interval(&mut self, name: &'static str, into: &mut String) {
        let Some(value) = self.get(name) else { return };
        let count = |text: &str, unit| {
            text.strip_suffix(unit)
                .and_then(|n| n.parse::<u32>().ok())
                .is_some_and(|n| (1..=1000).contains(&n))
        };
        let valid = |text: &&str| *text == "adaptive" || count(text, "ms") || count(text, "p");
        match value.as_str().filter(valid) {
            Some(text) => *into = text.into(),
            None => {
                self.bad(name, &value, "adaptive, 1p to 1000p (packets) or 1ms to 1000ms (time)")
            }
        }
    }

    pub fn finish(self) -> (Vec<Problem>, Vec<String>) {
        let unknown = self.object.keys().filter(|key| !self.known.contains(&key.as_str()));
        let section = self.section;
        let warnings = unknown
            .map(|key| {
                format!("option '{section}{key}' is not known; known: {}", self.known.join(", "))
            })
            .collect();
        (self.problems, warnings)
    }
}

fn as_number(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        },
        value => value.as_u64(),
    }
}

fn as_switch(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(on) => Some(*on),
        Value::Number(number) => match number.as_u64()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        Value::String(text) => match text.as_str() {
            "1" | "on" | "true" | "yes" | "enabled" => Some(true),
            "0" | "off" | "false" | "no" | "disabled" => Some(false),
            _ => None,
        },
        _ => None,
    }
}
