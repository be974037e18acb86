//! The configuration file: JSON with the names of the UCI options, as the init
//! script writes it. Numbers and switches may be strings, as in UCI.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use log::LevelFilter;
use pemi_engine::SEC;
use serde_json::{Map, Value, json};

/// Where the control socket is unless the configuration says otherwise.
pub const CONTROL: &str = "/var/run/pemi/control.sock";
/// Where ubusd's socket is on OpenWrt.
pub const UBUS: &str = "/var/run/ubus/ubus.sock";

/// How packets reach the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The router forwards between networks.
    Routed,
    /// Clients and WAN are on one bridge.
    Bridged,
}

/// Which losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repaired {
    /// Those on the way to the clients.
    Down,
    /// Those beyond the router, on the way to the servers, as well.
    Both,
}

/// Names of the directions.
pub const DIRECTIONS: &[(&str, Repaired)] = &[("down", Repaired::Down), ("both", Repaired::Both)];

/// Who brings packets to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firewall {
    /// Somebody else.
    None,
    /// The daemon, with a table of its own in nf_tables.
    Nft,
}

const FIREWALLS: &[(&str, Firewall)] = &[("none", Firewall::None), ("nft", Firewall::Nft)];

/// The settings of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Networks whose clients are helped; for people to read, the devices count.
    pub network: Vec<String>,
    /// Those of the networks that have no device now.
    pub absent: Vec<String>,
    /// Interfaces towards the clients.
    pub device: Vec<String>,
    /// How packets reach the daemon.
    pub mode: Mode,
    /// Which losses are repaired.
    pub direction: Repaired,
    /// UDP ports of the servers.
    pub port: Vec<u16>,
    /// Packet copies kept, KiB.
    pub cache_kib: u32,
    /// Flows known at a time.
    pub max_flows: u32,
    /// Largest share of a flow's packets sent again.
    pub resend_percent: u32,
    /// Whether telling replies are held.
    pub conceal: bool,
    /// Seconds without a repair after which a flow is let go; 0: never.
    pub release_s: u32,
    /// Number of the first queue.
    pub queue: u16,
    /// How many queues, one thread each.
    pub queues: u16,
    /// Packet mark of what the daemon sends.
    pub mark: u32,
    /// Packet mark of flows that are let go.
    pub bypass_mark: u32,
    /// Connection mark of flows that are helped.
    pub helped_mark: u32,
    /// Who brings packets to the queue.
    pub firewall: Firewall,
    /// SCHED_FIFO priority of the packet path; 0: none.
    pub realtime_priority: u8,
    /// What is logged.
    pub log_level: LevelFilter,
    /// Path of the control socket.
    pub control: PathBuf,
    /// Path of ubusd's socket; none: no object on ubus.
    pub ubus: Option<PathBuf>,
    /// The helper for cooperating senders.
    pub sidekick: Sidekick,
}

/// Settings of the helper for cooperating senders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sidekick {
    /// Whether it answers.
    pub enabled: bool,
    /// Its UDP port.
    pub port: u16,
    /// Between quACKs: packets (`2p`) or time (`10ms`).
    pub interval: String,
    /// Missing packets that one quACK can name.
    pub threshold: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            network: Vec::new(),
            absent: Vec::new(),
            device: Vec::new(),
            mode: Mode::Routed,
            direction: Repaired::Down,
            port: vec![443],
            cache_kib: 4096,
            max_flows: 1024,
            resend_percent: 10,
            conceal: true,
            release_s: 30,
            queue: 5443,
            queues: 1,
            mark: 0x2000_0000,
            bypass_mark: 0x1000_0000,
            helped_mark: 0x4000_0000,
            firewall: Firewall::None,
            realtime_priority: 40,
            log_level: LevelFilter::Info,
            control: CONTROL.into(),
            ubus: None,
            sidekick: Sidekick { enabled: false, port: 5103, interval: "2p".into(), threshold: 8 },
        }
    }
}

impl Config {
    /// What one engine gets; the cache is shared out among the queues.
    pub fn engine(&self, events: bool) -> pemi_engine::Config {
        let queues = u32::from(self.queues.max(1));
        pemi_engine::Config {
            cache_bytes: (self.cache_kib / queues) as usize * 1024,
            max_flows: (self.max_flows / queues).max(1) as usize,
            resend_percent: self.resend_percent,
            conceal: self.conceal,
            release_after: (self.release_s > 0).then(|| i64::from(self.release_s) * SEC),
            events,
            both_directions: self.direction == Repaired::Both,
            ..pemi_engine::Config::default()
        }
    }

    /// The options that take effect only when the daemon starts anew.
    pub fn restart_for(&self, running: &Config) -> Vec<&'static str> {
        [
            ("mode", self.mode != running.mode),
            ("queue", self.queue != running.queue),
            ("queues", self.queues != running.queues),
            ("mark", self.mark != running.mark),
            ("firewall", self.firewall != running.firewall),
            ("realtime_priority", self.realtime_priority != running.realtime_priority),
            ("control", self.control != running.control),
            ("ubus", self.ubus != running.ubus),
        ]
        .into_iter()
        .filter_map(|(option, changed)| changed.then_some(option))
        .collect()
    }

    /// The effective settings as `pemi check --json` prints them.
    pub fn to_json(&self) -> Value {
        json!({
            "network": self.network, "absent": self.absent, "device": self.device,
            "port": self.port,
            "mode": if self.mode == Mode::Routed { "routed" } else { "bridged" },
            "direction": if self.direction == Repaired::Down { "down" } else { "both" },
            "cache_kib": self.cache_kib, "max_flows": self.max_flows,
            "resend_percent": self.resend_percent, "conceal": self.conceal,
            "release_s": self.release_s, "queue": self.queue, "queues": self.queues,
            "mark": self.mark, "bypass_mark": self.bypass_mark, "helped_mark": self.helped_mark,
            "firewall": if self.firewall == Firewall::Nft { "nft" } else { "none" },
            "realtime_priority": self.realtime_priority,
            "log_level": self.log_level.as_str().to_ascii_lowercase(),
            "control": self.control, "ubus": self.ubus,
            "sidekick": {
                "enabled": self.sidekick.enabled, "port": self.sidekick.port,
                "interval": self.sidekick.interval, "threshold": self.sidekick.threshold,
            },
        })
    }
}

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
}

impl Problem {
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

/// Reads a file. Beside the settings it gives warnings about options nobody
/// knows.
pub fn load(file: &Path) -> Result<(Config, Vec<String>), Error> {
    let text = fs::read_to_string(file).map_err(|e| Error::File(format!("cannot be read: {e}")))?;
    parse(&text)
}

/// Reads the text of a file.
pub fn parse(text: &str) -> Result<(Config, Vec<String>), Error> {
    let value: Value =
        serde_json::from_str(text).map_err(|e| Error::File(format!("is not JSON: {e}")))?;
    let Value::Object(object) = value else {
        return Err(Error::File("is not a JSON object".into()));
    };
    let mut config = Config::default();
    let mut reader =
        Reader { object: &object, section: "", problems: Vec::new(), known: Vec::new() };
    // For the init script, which starts no daemon without it.
    reader.switch("enabled", &mut true);
    reader.names("network", &mut config.network);
    reader.names("absent", &mut config.absent);
    reader.names("device", &mut config.device);
    // Of the networks, as the init script has found them.
    let mut found = Vec::new();
    reader.names("devices", &mut found);
    found.retain(|name| !config.device.contains(name));
    config.device.append(&mut found);
    reader.ports("port", &mut config.port);
    reader.choice(
        "mode",
        &mut config.mode,
        &[("routed", Mode::Routed), ("bridged", Mode::Bridged)],
    );
    reader.choice("direction", &mut config.direction, DIRECTIONS);
    reader.number("cache_kib", &mut config.cache_kib, 64, 1_048_576);
    reader.number("max_flows", &mut config.max_flows, 16, 65_536);
    reader.number("resend_percent", &mut config.resend_percent, 0, 100);
    reader.switch("conceal", &mut config.conceal);
    reader.number("release_s", &mut config.release_s, 0, 86_400);
    reader.number("queue", &mut config.queue, 0, 65_535);
    reader.number("queues", &mut config.queues, 1, 8);
    reader.number("mark", &mut config.mark, 1, u64::from(u32::MAX));
    reader.number("bypass_mark", &mut config.bypass_mark, 1, u64::from(u32::MAX));
    reader.number("helped_mark", &mut config.helped_mark, 1, u64::from(u32::MAX));
    reader.choice("firewall", &mut config.firewall, FIREWALLS);
    reader.number("realtime_priority", &mut config.realtime_priority, 0, 98);
    reader.choice("log_level", &mut config.log_level, LEVELS);
    reader.path("control", &mut config.control);
    reader.path_or_none("ubus", &mut config.ubus);
    reader.ignore("sidekick");
    let (mut problems, mut warnings) = reader.finish();
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
    match object.get("sidekick") {
        None => {}
        Some(Value::Object(object)) => {
            let sidekick = &mut config.sidekick;
            let mut reader =
                Reader { object, section: "sidekick.", problems: Vec::new(), known: Vec::new() };
            reader.switch("enabled", &mut sidekick.enabled);
            reader.number("port", &mut sidekick.port, 1, 65_535);
            reader.interval("interval", &mut sidekick.interval);
            reader.number("threshold", &mut sidekick.threshold, 1, 64);
            let (more, unknown) = reader.finish();
            problems.extend(more);
            warnings.extend(unknown);
        }
        Some(other) => problems.push(Problem::new("sidekick", other.to_string(), "an object")),
    }
    if problems.is_empty() { Ok((config, warnings)) } else { Err(Error::Options(problems)) }
}

/// The text of a file without what is wrong in it, so that defaults stand in.
pub fn repair(text: &str) -> String {
    let mut object = match serde_json::from_str(text) {
        Ok(Value::Object(object)) => object,
        _ => Map::new(),
    };
    while let Err(Error::Options(problems)) = parse(&Value::from(object.clone()).to_string()) {
        let mut smaller = false;
        for problem in &problems {
            smaller |= match (problem.option.split_once('.'), &mut object) {
                (None, object) => object.remove(&problem.option).is_some(),
                (Some((section, option)), object) => object
                    .get_mut(section)
                    .and_then(Value::as_object_mut)
                    .is_some_and(|object| object.remove(option).is_some()),
            };
        }
        if !smaller {
            // A default that does not go with what another option says.
            RELATED.iter().for_each(|option| drop(object.remove(*option)));
        }
    }
    Value::from(object).to_string()
}

/// Options whose values depend on each other.
const RELATED: [&str; 5] = ["mark", "bypass_mark", "helped_mark", "queue", "queues"];

/// Names of log levels.
pub const LEVELS: &[(&str, LevelFilter)] = &[
    ("error", LevelFilter::Error),
    ("warn", LevelFilter::Warn),
    ("info", LevelFilter::Info),
    ("debug", LevelFilter::Debug),
];

/// Takes options out of an object and collects what is wrong with them.
struct Reader<'a> {
    object: &'a Map<String, Value>,
    section: &'static str,
    problems: Vec<Problem>,
    known: Vec<&'static str>,
}

impl Reader<'_> {
    fn get(&mut self, name: &'static str) -> Option<Value> {
        self.known.push(name);
        self.object.get(name).filter(|value| !value.is_null()).cloned()
    }

    fn ignore(&mut self, name: &'static str) {
        self.known.push(name);
    }

    fn bad(&mut self, name: &str, value: &Value, allowed: impl Into<String>) {
        let option = format!("{}{name}", self.section);
        self.problems.push(Problem::new(&option, value.to_string(), allowed));
    }

    fn number<T: TryFrom<u64>>(&mut self, name: &'static str, into: &mut T, low: u64, high: u64) {
        let Some(value) = self.get(name) else { return };
        match as_number(&value)
            .filter(|n| (low..=high).contains(n))
            .and_then(|n| T::try_from(n).ok())
        {
            Some(number) => *into = number,
            None => self.bad(name, &value, format!("a number from {low} to {high}")),
        }
    }

    fn switch(&mut self, name: &'static str, into: &mut bool) {
        let Some(value) = self.get(name) else { return };
        match as_switch(&value) {
            Some(on) => *into = on,
            None => {
                self.bad(name, &value, "1, 0, on, off, true, false, yes, no, enabled, disabled")
            }
        }
    }

    fn choice<T: Copy>(&mut self, name: &'static str, into: &mut T, choices: &[(&str, T)]) {
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

    fn names(&mut self, name: &'static str, into: &mut Vec<String>) {
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

    fn ports(&mut self, name: &'static str, into: &mut Vec<u16>) {
        let Some((value, items)) = self.list(name) else { return };
        let port =
            |item: &Value| as_number(item).and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 0);
        match items.iter().map(port).collect::<Option<Vec<u16>>>() {
            Some(ports) if (1..=16).contains(&ports.len()) => *into = ports,
            _ => self.bad(name, &value, "1 to 16 numbers from 1 to 65535"),
        }
    }

    fn path(&mut self, name: &'static str, into: &mut PathBuf) {
        let Some(value) = self.get(name) else { return };
        // A socket's path has to fit into sockaddr_un.
        match value.as_str().filter(|path| path.starts_with('/') && path.len() < 108) {
            Some(path) => *into = path.into(),
            None => self.bad(name, &value, "an absolute path of up to 107 bytes"),
        }
    }

    /// Empty means none.
    fn path_or_none(&mut self, name: &'static str, into: &mut Option<PathBuf>) {
        let mut path = PathBuf::new();
        if self.object.get(name).is_some_and(|value| value != "") {
            self.path(name, &mut path);
        } else {
            self.ignore(name);
        }
        *into = (path != Path::new("")).then_some(path);
    }

    fn interval(&mut self, name: &'static str, into: &mut String) {
        let Some(value) = self.get(name) else { return };
        let count = |text: &str, unit| {
            text.strip_suffix(unit)
                .and_then(|n| n.parse::<u32>().ok())
                .is_some_and(|n| (1..=1000).contains(&n))
        };
        match value.as_str().filter(|text| count(text, "ms") || count(text, "p")) {
            Some(text) => *into = text.into(),
            None => self.bad(name, &value, "packets or time, 1p to 1000p or 1ms to 1000ms"),
        }
    }

    fn finish(self) -> (Vec<Problem>, Vec<String>) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_init_script_writes() {
        let (config, warnings) = parse(
            r#"{"enabled":"1","network":["lan"],"device":["br-lan","wlan0"],"mode":"routed","port":["443","8443"],
            "cache_kib":"2048","max_flows":256,"conceal":"off","release_s":"0","log_level":"debug","mark":"0x100",
            "sidekick":{"enabled":0,"interval":"10ms"}}"#,
        )
        .unwrap();
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(config.device, ["br-lan", "wlan0"]);
        assert_eq!(config.port, [443, 8443]);
        assert_eq!((config.cache_kib, config.max_flows, config.mark), (2048, 256, 0x100));
        assert!(!config.conceal);
        assert_eq!(config.engine(false).release_after, None);
        assert_eq!(config.log_level, LevelFilter::Debug);
        assert_eq!(config.sidekick.interval, "10ms");
    }

    #[test]
    fn missing_options_mean_the_defaults() {
        assert_eq!(parse("{}"), Ok((Config::default(), vec![])));
        assert_eq!(parse(r#"{"device":""}"#), Ok((Config::default(), vec![])));
        assert_eq!(parse(r#"{"device":"eth0 eth1"}"#).unwrap().0.device, ["eth0", "eth1"]);
        let (config, _) = parse(r#"{"device":"eth0","devices":"br-lan eth0"}"#).unwrap();
        assert_eq!(config.device, ["eth0", "br-lan"]);
    }

    #[test]
    fn every_bad_value_is_named_with_what_is_allowed() {
        for (text, option, allowed) in [
            (r#"{"cache_kib":63}"#, "cache_kib", "64 to 1048576"),
            (r#"{"cache_kib":"many"}"#, "cache_kib", "64 to 1048576"),
            (r#"{"cache_kib":-1}"#, "cache_kib", "64 to 1048576"),
            (r#"{"max_flows":65537}"#, "max_flows", "16 to 65536"),
            (r#"{"resend_percent":101}"#, "resend_percent", "0 to 100"),
            (r#"{"enabled":"maybe"}"#, "enabled", "on, off"),
            (r#"{"conceal":"perhaps"}"#, "conceal", "on, off"),
            (r#"{"conceal":2}"#, "conceal", "on, off"),
            (r#"{"release_s":1.5}"#, "release_s", "0 to 86400"),
            (r#"{"queue":65536}"#, "queue", "0 to 65535"),
            (r#"{"queue":65535,"queues":2}"#, "queue", "up to 65536"),
            (r#"{"queues":0}"#, "queues", "1 to 8"),
            (r#"{"mode":"magic"}"#, "mode", "routed, bridged"),
            (r#"{"direction":"up"}"#, "direction", "down, both"),
            (r#"{"port":[]}"#, "port", "1 to 65535"),
            (r#"{"port":[443,0]}"#, "port", "1 to 65535"),
            (r#"{"device":["a-name-too-long-for-linux"]}"#, "device", "15 characters"),
            (r#"{"device":["a/b"]}"#, "device", "15 characters"),
            (r#"{"device":["wlan*"]}"#, "device", "15 characters"),
            (r#"{"device":["é0"]}"#, "device", "15 characters"),
            (r#"{"firewall":"iptables"}"#, "firewall", "none, nft"),
            (r#"{"helped_mark":"0x20000000"}"#, "helped_mark", "bits that mark, 0x20000000"),
            (r#"{"log_level":"loud"}"#, "log_level", "error, warn, info, debug"),
            (r#"{"control":"relative"}"#, "control", "absolute path"),
            (r#"{"ubus":"relative"}"#, "ubus", "absolute path"),
            (r#"{"realtime_priority":99}"#, "realtime_priority", "0 to 98"),
            (r#"{"mark":0}"#, "mark", "1 to 4294967295"),
            (r#"{"mark":"0x30000000"}"#, "bypass_mark", "bits that mark, 0x30000000"),
            (r#"{"sidekick":{"interval":"2x"}}"#, "sidekick.interval", "1ms to 1000ms"),
            (r#"{"sidekick":{"threshold":65}}"#, "sidekick.threshold", "1 to 64"),
            (r#"{"sidekick":7}"#, "sidekick", "an object"),
        ] {
            let lines = parse(text).unwrap_err().lines(Path::new("/etc/x.json"));
            assert_eq!(lines.len(), 1, "{text}: {lines:?}");
            for part in ["/etc/x.json", &format!("'{option}'"), allowed] {
                assert!(lines[0].contains(part), "{text}: {} lacks {part}", lines[0]);
            }
        }
    }

    #[test]
    fn defaults_stand_in_for_what_is_wrong() {
        for (text, repaired) in [
            (r#"{"cache_kib":1,"max_flows":99}"#, r#"{"max_flows":99}"#),
            (r#"{"sidekick":{"port":0,"threshold":9}}"#, r#"{"sidekick":{"threshold":9}}"#),
            (r#"{"sidekick":7,"devices":"a/b"}"#, "{}"),
            // The default of bypass_mark has the same bit.
            (r#"{"mark":"0x10000000","max_flows":99}"#, r#"{"max_flows":99}"#),
            (r#"{"mark":1}"#, r#"{"mark":1}"#),
            ("{", "{}"),
            ("7", "{}"),
        ] {
            assert_eq!(repair(text), repaired);
            assert!(parse(repaired).is_ok());
        }
    }

    #[test]
    fn both_directions_only_if_asked_for() {
        assert!(!Config::default().engine(false).both_directions);
        let (config, _) = parse(r#"{"direction":"both"}"#).unwrap();
        assert!(config.engine(false).both_directions);
        assert_eq!(config.to_json()["direction"], "both");
    }

    #[test]
    fn ubus_only_if_asked_for() {
        assert_eq!(parse("{}").unwrap().0.ubus, None);
        for none in [r#"{"ubus":""}"#, r#"{"ubus":null}"#] {
            assert_eq!(parse(none), Ok((Config::default(), vec![])));
        }
        let (config, warnings) = parse(r#"{"ubus":"/var/run/ubus/ubus.sock"}"#).unwrap();
        assert_eq!((config.ubus.as_deref(), warnings.len()), (Some(Path::new(UBUS)), 0));
        assert_eq!(config.to_json()["ubus"], UBUS);
    }

    #[test]
    fn some_options_need_a_restart() {
        let running = Config::default();
        let new = Config { queues: 4, mark: 1, conceal: false, ..running.clone() };
        assert_eq!(new.restart_for(&running), ["queues", "mark"]);
        assert!(Config { conceal: false, ..running.clone() }.restart_for(&running).is_empty());
    }

    #[test]
    fn all_problems_at_once_and_unknown_options_are_warnings() {
        let problems = parse(r#"{"queues":9,"mode":1,"cache_kib":1}"#).unwrap_err();
        assert_eq!(problems.lines(Path::new("f")).len(), 3);
        let (_, warnings) = parse(r#"{"cash_kib":1}"#).unwrap();
        assert!(warnings[0].contains("'cash_kib'") && warnings[0].contains("cache_kib"));
        assert!(matches!(parse("{"), Err(Error::File(_))));
        assert!(matches!(parse("[]"), Err(Error::File(_))));
        assert!(matches!(load(Path::new("/nonexistent/x")), Err(Error::File(_))));
    }
}
