// SPDX-License-Identifier: GPL-2.0-or-later
//! Kinds of options: what a value may be, and taking it from JSON whose values may be
//! written as UCI does, as strings.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Config;

/// Ports of servers; chosen, each is compared with those of every packet.
const MAX_PORTS: usize = 16;
/// Linux limits names of interfaces to this many bytes.
const MAX_NAME: usize = 15;
/// A socket's path has to fit into `sockaddr_un`, with a zero behind it.
const MAX_PATH: usize = 107;
/// Largest number of packets or milliseconds between two quACKs.
const MAX_INTERVAL: u32 = 1000;

/// Where the settings have a value. It serves reading as well, of a copy.
type At<T> = fn(&mut Config) -> &mut T;

/// What an option may be, and where its value is kept.
#[derive(Debug)]
pub enum Kind {
    /// A switch of the init script, off unless it says on. It is looked at, and not kept.
    Service,
    /// On or off.
    Switch(At<bool>),
    /// A number of this range.
    Number(RangeInclusive<u32>, fn(&mut Config) -> Width<'_>),
    /// One of some words.
    Choice(fn(&mut Config) -> &mut dyn Word),
    /// A list of names.
    Names(At<Vec<String>>),
    /// A list of names that go behind those of another option.
    MoreNames(At<Vec<String>>),
    /// A list of UDP ports.
    Ports(At<Vec<u16>>),
    /// The path of a socket.
    Path(At<PathBuf>),
    /// The path of a socket; empty means none.
    PathOrNone(At<Option<PathBuf>>),
    /// When to quACK.
    Interval(At<String>),
}

/// A number as wide as it is kept.
#[derive(Debug)]
pub enum Width<'a> {
    /// In a byte.
    U8(&'a mut u8),
    /// In two.
    U16(&'a mut u16),
    /// In four.
    U32(&'a mut u32),
}

/// A type each of whose values has a name.
pub trait Named: Copy + PartialEq + 'static {
    /// The names.
    const NAMES: &'static [(&'static str, Self)];
}

/// A value of a [`Named`] type, whichever it is.
pub trait Word {
    /// The name in this place of its type's, if there are so many, and whether it is its own.
    fn name(&self, at: usize) -> Option<(&'static str, bool)>;
    /// Becomes the value in this place.
    fn become_nth(&mut self, at: usize);
}

impl<T: Named> Word for T {
    fn name(&self, at: usize) -> Option<(&'static str, bool)> {
        T::NAMES.get(at).map(|(name, value)| (*name, value == self))
    }

    fn become_nth(&mut self, at: usize) {
        *self = T::NAMES[at].1;
    }
}

impl dyn Word + '_ {
    fn names(&self) -> impl Iterator<Item = (&'static str, bool)> {
        (0..).map_while(|at| self.name(at))
    }

    /// Its name.
    pub fn word(&self) -> &'static str {
        self.names().find(|(_, own)| *own).map_or("", |(name, _)| name)
    }

    /// All names of its type.
    pub fn words(&self) -> Vec<&'static str> {
        self.names().map(|(name, _)| name).collect()
    }

    /// Becomes what has this name, if there is such a value.
    pub fn choose(&mut self, word: &str) -> bool {
        let found = self.names().position(|(name, _)| name == word);
        found.inspect(|at| self.become_nth(*at)).is_some()
    }
}

impl Kind {
    /// Takes a value over into the settings, or leaves them alone if it is not allowed.
    pub fn set(&self, config: &mut Config, value: &Value) -> bool {
        match self {
            Kind::Service => as_switch(value).is_some(),
            Kind::Switch(at) => put(at(config), as_switch(value)),
            Kind::Number(range, at) => {
                as_number(value).filter(|n| range.contains(n)).is_some_and(|n| at(config).set(n))
            }
            Kind::Choice(at) => value.as_str().is_some_and(|word| at(config).choose(word)),
            Kind::Names(at) => put(at(config), as_names(value)),
            Kind::MoreNames(at) => {
                let (known, more) = (at(config), as_names(value));
                let found = more.is_some();
                // Two networks may have one device, as IPv4 and IPv6 of one line have.
                for name in more.into_iter().flatten() {
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
                found
            }
            Kind::Ports(at) => put(at(config), as_ports(value)),
            Kind::Path(at) => put(at(config), as_path(value)),
            Kind::PathOrNone(at) if *value == "" => put(at(config), Some(None)),
            Kind::PathOrNone(at) => put(at(config), as_path(value).map(Some)),
            Kind::Interval(at) => put(at(config), as_interval(value)),
        }
    }

    /// Whether the settings have a value for it alone.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Kind::Service | Kind::MoreNames(_))
    }

    /// The value that the settings have; of what they do not keep, the default.
    pub fn get(&self, config: &mut Config) -> Value {
        match self {
            Kind::Service => false.into(),
            Kind::MoreNames(_) => Value::Array(Vec::new()),
            Kind::Switch(at) => (*at(config)).into(),
            Kind::Number(_, at) => at(config).get().into(),
            Kind::Choice(at) => at(config).word().into(),
            Kind::Names(at) => at(config).clone().into(),
            Kind::Ports(at) => at(config).clone().into(),
            // They come from text, so they are some.
            Kind::Path(at) => at(config).to_str().into(),
            Kind::PathOrNone(at) => at(config).as_deref().and_then(Path::to_str).into(),
            Kind::Interval(at) => at(config).clone().into(),
        }
    }

    /// What is allowed, in words.
    pub fn allowed(&self) -> String {
        match self {
            Kind::Service | Kind::Switch(_) => {
                let words: Vec<&str> = SWITCH.iter().flat_map(|(on, off)| [*on, *off]).collect();
                words.join(", ")
            }
            Kind::Number(range, _) => format!("a number from {} to {}", range.start(), range.end()),
            Kind::Choice(_) => self.words().join(", "),
            Kind::Names(_) | Kind::MoreNames(_) => {
                format!("a list of names of up to {MAX_NAME} characters, none of them / \" \\ *")
            }
            Kind::Ports(_) => format!("1 to {MAX_PORTS} numbers from 1 to 65535"),
            Kind::Path(_) => format!("an absolute path of up to {MAX_PATH} bytes"),
            Kind::PathOrNone(_) => format!("an absolute path of up to {MAX_PATH} bytes, or empty"),
            Kind::Interval(_) => format!(
                "adaptive, 1p to {MAX_INTERVAL}p (packets) or 1ms to {MAX_INTERVAL}ms (time)"
            ),
        }
    }

    /// The words of a choice.
    pub fn words(&self) -> Vec<&'static str> {
        match self {
            Kind::Choice(at) => at(&mut Config::default()).words(),
            _ => Vec::new(),
        }
    }

    /// Its name, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Service | Kind::Switch(_) => "switch",
            Kind::Number(..) => "number",
            Kind::Choice(_) => "choice",
            Kind::Names(_) | Kind::MoreNames(_) => "names",
            Kind::Ports(_) => "ports",
            Kind::Path(_) | Kind::PathOrNone(_) => "path",
            Kind::Interval(_) => "interval",
        }
    }
}

impl Width<'_> {
    fn get(&self) -> u32 {
        match self {
            Width::U8(number) => (**number).into(),
            Width::U16(number) => (**number).into(),
            Width::U32(number) => **number,
        }
    }

    /// Fails if there is no room.
    fn set(self, number: u32) -> bool {
        match self {
            Width::U8(into) => put(into, number.try_into().ok()),
            Width::U16(into) => put(into, number.try_into().ok()),
            Width::U32(into) => put(into, Some(number)),
        }
    }
}

fn put<T>(into: &mut T, value: Option<T>) -> bool {
    let given = value.is_some();
    if let Some(value) = value {
        *into = value;
    }
    given
}

fn as_number(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => match text.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        },
        value => value.as_u64()?.try_into().ok(),
    }
}

/// Words for on and off.
const SWITCH: [(&str, &str); 5] =
    [("1", "0"), ("on", "off"), ("true", "false"), ("yes", "no"), ("enabled", "disabled")];

fn as_switch(value: &Value) -> Option<bool> {
    let word = match value {
        Value::Bool(on) => return Some(*on),
        Value::Number(number) => &number.to_string(),
        value => value.as_str()?,
    };
    let (on, _) = SWITCH.iter().find(|(on, off)| word == *on || word == *off)?;
    Some(word == *on)
}

/// A list, or one string with spaces as old UCI files have it.
fn as_list(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        Value::String(words) => words.split_ascii_whitespace().map(Value::from).collect(),
        single => vec![single.clone()],
    }
}

fn as_names(value: &Value) -> Option<Vec<String>> {
    // The last three would mean something else in a firewall rule.
    let valid = |s: &&str| {
        s.len() <= MAX_NAME && s.bytes().all(|b| b.is_ascii_graphic() && !b"/\"\\*".contains(&b))
    };
    let items = as_list(value);
    let names = items.iter().map(|item| item.as_str().filter(valid).map(str::to_string));
    let names: Vec<String> = names.collect::<Option<_>>()?;
    Some(names.into_iter().filter(|name| !name.is_empty()).collect())
}

fn as_ports(value: &Value) -> Option<Vec<u16>> {
    let port =
        |item: &Value| as_number(item).and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 0);
    let ports: Vec<u16> = as_list(value).iter().map(port).collect::<Option<_>>()?;
    (1..=MAX_PORTS).contains(&ports.len()).then_some(ports)
}

fn as_path(value: &Value) -> Option<PathBuf> {
    value.as_str().filter(|path| path.starts_with('/') && path.len() <= MAX_PATH).map(PathBuf::from)
}

fn as_interval(value: &Value) -> Option<String> {
    let count = |text: &str, unit| {
        text.strip_suffix(unit)
            .and_then(|n| n.parse::<u32>().ok())
            .is_some_and(|n| (1..=MAX_INTERVAL).contains(&n))
    };
    let valid = |text: &&str| *text == "adaptive" || count(text, "ms") || count(text, "p");
    value.as_str().filter(valid).map(str::to_string)
}
