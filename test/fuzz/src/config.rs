// SPDX-License-Identifier: GPL-2.0-or-later
//! Target `config`: a configuration file, and the firewall rules that come of it.

use std::collections::BTreeSet;
use std::path::Path;

use pemi::config::{self, Config, Error};
use pemi::firewall::rules::{self, Family};

/// Calls everything with `data`.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let repaired = config::repair(text);
    config::parse(&repaired, None).expect("what was repaired is right");
    match config::parse(text, None) {
        Ok((config, _)) => accepted(&config),
        Err(error) => {
            let lines = error.lines(Path::new("file"));
            assert!(!lines.is_empty() && lines.iter().all(|line| line.starts_with("file: ")));
            if let Error::Options(problems) = error {
                problems.iter().for_each(|problem| assert!(!problem.uci().1.is_empty()));
            }
        }
    }
}

fn accepted(config: &Config) {
    let (again, _) = config::parse(&config.to_json().to_string(), None).expect("its own words");
    assert_eq!(&again, config);
    assert_eq!(config.restart_for(config), [""; 0]);
    config.restart_for(&Config::default());
    let engine = config.engine(true);
    assert!(engine.cache_bytes > 0 || config.cache_kib < u32::from(config.queues));
    assert!(engine.max_flows > 0);
    let plain = Config {
        device: (0..config.device.len()).map(|n| format!("eth{n}")).collect(),
        ..config.clone()
    };
    for rules in [rules::ruleset, rules::no_offload] {
        nothing_slipped_in(&rules(config), &rules(&plain), config);
    }
    let family = Family::of(config.mode);
    assert!(rules::ruleset(config).contains(&format!("table {family} {} {{", rules::TABLE)));
}

/// Names of devices are within quotes and nowhere else: but for what is quoted, the
/// rules are those for devices with plain names.
fn nothing_slipped_in(text: &str, plain: &str, config: &Config) {
    let (code, quoted) = parts(text);
    assert_eq!(code, parts(plain).0);
    assert_eq!(code.matches('{').count(), code.matches('}').count(), "{text}");
    assert!(!code.contains([';', '#', '$', '\\', '\'']) || !code.contains("include"), "{text}");
    let devices: BTreeSet<&str> = config.device.iter().map(String::as_str).collect();
    for name in quoted {
        assert!(devices.contains(name) || name.starts_with("!pemi: "), "{name:?} in {text}");
        assert!(!name.contains(['\n', '"', '\\', '*']), "{name:?}");
    }
}

/// What is outside of quotes, with `""` for each quoted text, and these.
fn parts(text: &str) -> (String, Vec<&str>) {
    let pieces: Vec<&str> = text.split('"').collect();
    assert!(pieces.len() % 2 == 1, "a quote that is not closed: {text}");
    let outside: Vec<&str> = pieces.iter().copied().step_by(2).collect();
    (outside.join("\"\""), pieces.into_iter().skip(1).step_by(2).collect())
}

/// Files as the init script writes them, and each kind of mistake.
pub fn seeds() -> Vec<Vec<u8>> {
    [
        "{}",
        r#"{"enabled":"1","network":["lan"],"device":["br-lan","wlan0"],"port":["443","8443"],
            "cache_kib":"2048","max_flows":256,"conceal":"off","release_s":"0",
            "log_level":"debug","mark":"0x100","firewall":"nft","control":"/run/pemi.sock",
            "sidekick":{"enabled":0,"interval":"10ms","port":5103,"threshold":8}}"#,
        r#"{"mode":"bridged","direction":"both","device":"lan1 {;$'#} @x","queues":3,
            "sidekick":{"enabled":true,"interval":"2p"}}"#,
        r#"{"network":"lan guest","absent":"guest","devices":["br-lan"],"ubus":"/var/run/ubus"}"#,
        r#"{"bypass_mark":"0x10000000","helped_mark":1,"realtime_priority":0,"resend_percent":0}"#,
        r#"{"queue":65535,"queues":2,"mark":"0x30000000","device":"a\"b","sidekick":7}"#,
        r#"{"cache_kib":63,"port":[],"mode":"magic","conceal":2,"interval":"x","ubus":""}"#,
        "[",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
