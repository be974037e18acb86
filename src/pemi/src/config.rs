// SPDX-License-Identifier: GPL-2.0-or-later
//! The configuration: its options, their values in a file, and what is wrong with them.
//!
//! The file is JSON with the names of the UCI options, as the init script writes it. Numbers
//! and switches may be strings, as in UCI.

use std::fs;
use std::path::Path;

use pemi_engine::SEC;
use serde_json::{Map, Value};

pub(crate) mod flags;
mod memory;
pub mod options;
mod problem;
mod share;

pub use memory::fits;
pub use options::{
    Capture, Config, Firewall, Mode, Named, Protocols, Radio, Repair, Repaired, Sidekick,
};
use options::{Entry, MAIN, SECTIONS, TABLE};
pub use problem::{Error, Problem};
pub(crate) use share::{BITS, Share};

/// Devices that may have a ring (chosen: more networks than a router has).
pub(crate) const MOST_RINGS: usize = 8;

impl Config {
    /// What one engine gets; the cache is shared out among the queues.
    pub fn engine(&self, events: bool) -> pemi_engine::Config {
        let queues = u32::from(self.queues.max(1));
        pemi_engine::Config {
            cache_bytes: (self.cache_kib / queues) as usize * 1024,
            max_flows: (self.max_flows / queues).max(1) as usize,
            resend_percent: self.resend_percent,
            resend_total_percent: self.resend_total_percent,
            conceal: self.conceal,
            release_after: (self.release_s > 0).then(|| i64::from(self.release_s) * SEC),
            events,
            // What a ring shows has passed.
            reorders: !self.rings(),
            control_percent: self.control_percent,
            both_directions: self.direction == Repaired::Both,
            reports: self.reports(),
            protocols: match self.others() {
                true => pemi_engine::Protocols::All { quic: self.port.clone() },
                false => pemi_engine::Protocols::Quic,
            },
            reports_counted: self.repair == Repair::Auto,
            counts: self.radio != Radio::Off,
            ..pemi_engine::Config::default()
        }
    }

    /// Whether packets are sent in a way that the access point reports of. With `auto` somebody has
    /// to count what was lost.
    pub(crate) fn reports(&self) -> bool {
        let known = match self.repair {
            Repair::Infer => false,
            Repair::Auto => self.radio != Radio::Off,
            Repair::Radio => true,
        };
        known && self.direction == Repaired::Down
    }

    /// Whether flows that are not QUIC come to the queue. Without devices nobody could say which
    /// end of one is the client. On a bridge there are no rules for them.
    pub(crate) fn others(&self) -> bool {
        self.protocols == Protocols::All
            && self.reports()
            && self.mode == Mode::Routed
            && !self.device.is_empty()
    }

    /// Whether packets of clients whose radio loses nothing pass as they are. What is lost beyond
    /// the router no radio tells of, and Sidekick sees only what is not offloaded.
    pub(crate) fn gates(&self) -> bool {
        self.radio != Radio::Off
            && self.release_s > 0
            && self.direction == Repaired::Down
            && !self.sidekick.enabled
    }

    /// Whether a ring shows what goes to clients, so that it does not come to the queue.
    pub fn rings(&self) -> bool {
        self.capture == Capture::Ring && self.against_rings().is_none()
    }

    /// Whose clients the queue with this number has beside a ring; all are those of the only one.
    pub(crate) fn share(&self, queue: u16) -> Share {
        let narrow = |number: u16| u8::try_from(number).unwrap_or(u8::MAX);
        Share { queues: narrow(self.queues.max(1)), index: narrow(queue.wrapping_sub(self.queue)) }
    }

    /// What in other options speaks against rings.
    pub fn against_rings(&self) -> Option<&'static str> {
        let reasons = [
            (self.mode != Mode::Routed, "mode is not 'routed'"),
            (self.direction != Repaired::Down, "direction is not 'down'"),
            (self.reports(), "repair is not 'infer', so packets may be taken out"),
            (self.device.is_empty(), "there is no device or network"),
            (self.device.len() > MOST_RINGS, "there are more than 8 devices"),
        ];
        reasons.into_iter().find_map(|(speaks, reason)| speaks.then_some(reason))
    }

    /// The options that take effect only when the daemon starts anew.
    pub fn restart_for(&self, running: &Config) -> Vec<String> {
        let (mut new, mut old) = (self.clone(), running.clone());
        let mut changed = |option: &Entry| {
            let [new, old] = [&mut new, &mut old].map(|config| option.kind.get(config).to_string());
            new != old
        };
        TABLE.iter().filter(|it| it.restart && changed(it)).map(Entry::full_name).collect()
    }

    /// The effective settings as `pemi check --json` prints them.
    pub fn to_json(&self) -> Value {
        let mut config = self.clone();
        let mut all = Value::Object(Map::new());
        for option in TABLE.iter().filter(|option| option.kind.is_kept()) {
            let value = option.kind.get(&mut config);
            match option.section {
                MAIN => all[option.name] = value,
                section => all[section][option.name] = value,
            }
        }
        all
    }
}

/// Reads a file. Beside the settings it gives warnings about options nobody
/// knows.
pub fn load(file: &Path) -> Result<(Config, Vec<String>), Error> {
    let text = fs::read_to_string(file).map_err(|e| Error::File(format!("cannot be read: {e}")))?;
    parse(&text, memory::total_kib())
}

/// Reads the text of a file for a machine with so much memory, if that is known.
pub fn parse(text: &str, memory_kib: Option<u64>) -> Result<(Config, Vec<String>), Error> {
    // As everywhere else: of two kinds of text there would be two readers.
    let value: Value = serde_json::from_slice(text.as_bytes())
        .map_err(|e| Error::File(format!("is not JSON: {e}")))?;
    let Value::Object(object) = value else {
        return Err(Error::File("is not a JSON object".into()));
    };
    let (mut config, mut problems, mut warnings) = (Config::default(), Vec::new(), Vec::new());
    for section in SECTIONS {
        let values = match object.get(*section) {
            _ if *section == MAIN => &object,
            Some(Value::Object(values)) => values,
            Some(other) => {
                problems.push(Problem::new(section, other.to_string(), "an object"));
                continue;
            }
            None => continue,
        };
        problems.extend(take(&mut config, section, values));
        warnings.extend(unknown(section, values));
    }
    problems.extend(contradictions(&config));
    if config.sidekick.enabled && config.mode == Mode::Bridged {
        warnings.push(
            "option 'sidekick.enabled': Sidekick needs mode 'routed'; it is off in mode 'bridged'"
                .into(),
        );
    }
    if config.repair == Repair::Radio && !config.reports() {
        warnings
            .push("option 'repair': 'radio' needs direction 'down'; losses are inferred".into());
    }
    if config.protocols == Protocols::All && !config.others() {
        warnings.push(
            "option 'protocols': 'all' needs repair 'radio', or 'auto' with radio not 'off', mode \
             'routed', direction 'down' and a network or device; only QUIC is helped"
                .into(),
        );
    }
    if let (Capture::Ring, Some(reason)) = (config.capture, config.against_rings()) {
        warnings.push(format!("option 'capture': 'ring' is not used: {reason}"));
    }
    if let (true, Some(kib)) = (problems.is_empty(), memory_kib) {
        problems = memory::problems(&config, kib);
    }
    if problems.is_empty() { Ok((config, warnings)) } else { Err(Error::Options(problems)) }
}

/// Takes the options of a section over. Gives those whose values are not allowed.
fn take(config: &mut Config, section: &str, values: &Map<String, Value>) -> Vec<Problem> {
    let options = TABLE.iter().filter(|option| option.section == section);
    options
        .filter_map(|option| {
            let value = values.get(option.name).filter(|value| !value.is_null())?;
            let refused = !option.kind.set(config, value);
            refused.then(|| {
                Problem::new(&option.full_name(), value.to_string(), option.kind.allowed())
            })
        })
        .collect()
}

/// A warning for each value of a section that belongs to no option.
fn unknown(section: &str, values: &Map<String, Value>) -> Vec<String> {
    let options = TABLE.iter().filter(|option| option.section == section);
    let mut known: Vec<&str> = options.map(|option| option.name).collect();
    if section == MAIN {
        known.extend(&SECTIONS[1..]);
    }
    let unknown = values.keys().filter(|key| !known.contains(&key.as_str()));
    unknown
        .map(|key| {
            let known = known.join(", ");
            format!("section '{section}', option '{key}' is not known; known: {known}")
        })
        .collect()
}

/// Options whose values do not go together.
fn contradictions(config: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    if u32::from(config.queue) + u32::from(config.queues) > 65_536 {
        problems.push(Problem::new(
            "queue",
            config.queue.to_string(),
            "queue + queues up to 65536",
        ));
    }
    let marks = [
        ("mark", config.mark),
        ("bypass_mark", config.bypass_mark),
        ("helped_mark", config.helped_mark),
    ];
    for (at, (name, mark)) in marks.iter().enumerate() {
        if let Some((other, bits)) = marks[..at].iter().find(|(_, bits)| bits & mark != 0) {
            let allowed = format!("bits that {other}, {bits:#x}, does not have");
            problems.push(Problem::new(name, format!("{mark:#x}"), allowed));
        }
    }
    problems
}

/// The text of a file without what is wrong in it here, so that defaults stand in.
pub fn repair(text: &str) -> String {
    without_problems(text, memory::total_kib())
}

fn without_problems(text: &str, memory_kib: Option<u64>) -> String {
    let mut object = match serde_json::from_slice(text.as_bytes()) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    };
    while let Err(Error::Options(problems)) =
        parse(&Value::from(object.clone()).to_string(), memory_kib)
    {
        let mut smaller = false;
        for problem in &problems {
            smaller |= match (problem.option().split_once('.'), &mut object) {
                (None, object) => drop_option(object, problem.option()),
                (Some((section, option)), object) => object
                    .get_mut(section)
                    .and_then(Value::as_object_mut)
                    .is_some_and(|object| drop_option(object, option)),
            };
        }
        if !smaller {
            // A default that does not go with what another option says.
            for option in RELATED {
                drop_option(&mut object, option);
            }
        }
    }
    Value::from(object).to_string()
}

/// Takes an option out, and says whether it was there. What is left is put together anew, because to
/// remove from a map is 4 KB of code on MIPS.
fn drop_option(object: &mut Map<String, Value>, option: &str) -> bool {
    let before = object.len();
    for (name, value) in std::mem::take(object) {
        if name != option {
            object.insert(name, value);
        }
    }
    object.len() < before
}

/// Options whose values depend on each other.
const RELATED: [&str; 5] = ["mark", "bypass_mark", "helped_mark", "queue", "queues"];

#[cfg(test)]
mod tests;
