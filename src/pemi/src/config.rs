//! The configuration file: JSON with the names of the UCI options, as the init
//! script writes it. Numbers and switches may be strings, as in UCI.

use std::fs;
use std::path::{Path, PathBuf};

use log::LevelFilter;
use pemi_engine::SEC;
use serde_json::{Map, Value, json};

mod problem;
mod reader;

pub use problem::{Error, Problem};
use reader::Reader;

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
    /// When to quACK: after packets (`2p`), time (`10ms`), or `adaptive`.
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
            sidekick: Sidekick {
                enabled: false,
                port: 5103,
                interval: "adaptive".into(),
                threshold: 8,
            },
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
    let mut reader = Reader::new(&object, "");
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
            let mut reader = Reader::new(object, "sidekick.");
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
    if config.sidekick.enabled && config.mode == Mode::Bridged {
        warnings.push(
            "option 'sidekick.enabled': Sidekick needs mode 'routed'; it is off in mode 'bridged'"
                .into(),
        );
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
            smaller |= match (problem.option().split_once('.'), &mut object) {
                (None, object) => object.remove(problem.option()).is_some(),
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
            (r#"{"sidekick":{"interval":"0p"}}"#, "sidekick.interval", "adaptive, 1p to 1000p"),
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
    fn sidekick_takes_several_kinds_of_intervals_and_no_bridge() {
        for interval in ["adaptive", "1p", "1000p", "1ms", "1000ms"] {
            let text = format!(r#"{{"sidekick":{{"enabled":1,"interval":"{interval}"}}}}"#);
            let (config, warnings) = parse(&text).unwrap();
            assert_eq!((config.sidekick.interval.as_str(), warnings.len()), (interval, 0));
        }
        let (_, warnings) = parse(r#"{"mode":"bridged","sidekick":{"enabled":1}}"#).unwrap();
        assert!(warnings[0].contains("'sidekick.enabled'"), "{warnings:?}");
        let (_, warnings) = parse(r#"{"mode":"bridged","sidekick":{"enabled":0}}"#).unwrap();
        assert_eq!(warnings, Vec::<String>::new());
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
