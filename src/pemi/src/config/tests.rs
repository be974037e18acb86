// SPDX-License-Identifier: GPL-2.0-or-later
use log::LevelFilter;
use serde_json::json;

use super::options::UBUS;
use super::*;

fn parse(text: &str) -> Result<(Config, Vec<String>), Error> {
    super::parse(text, None)
}

fn repair(text: &str) -> String {
    without_problems(text, None)
}

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
    let (config, _) = parse(r#"{"device":"eth0","devices":"br-lan eth0 br-lan"}"#).unwrap();
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
        (r#"{"resend_total_percent":-1}"#, "resend_total_percent", "0 to 100"),
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

/// The keys of a configuration in JSON, those of sections behind their names, with values.
fn values(config: &Config) -> Vec<(String, Value)> {
    let Value::Object(all) = config.to_json() else { panic!("no object") };
    all.into_iter()
        .flat_map(|(name, value)| match value {
            Value::Object(inner) => {
                inner.into_iter().map(|(key, it)| (format!("{name}.{key}"), it)).collect()
            }
            value => vec![(name, value)],
        })
        .collect()
}

#[test]
fn each_option_of_the_table_has_a_value_of_its_own() {
    let default = Config::default();
    let mut some = vec![json!(true), json!(false), json!(1), json!(2), json!(64)];
    some.extend("bridged both radio all ring nft always debug a /a 2p".split(' ').map(Value::from));
    for option in TABLE.iter().filter(|option| option.kind.is_kept()) {
        let mut config = default.clone();
        let own = option.kind.get(&mut config);
        assert!(own.is_null() || option.kind.set(&mut config, &own), "{}", option.full_name());
        assert_eq!(config, default, "{}: its default is not taken", option.full_name());
        let changed = some.iter().any(|value| {
            option.kind.set(&mut config, value) && option.kind.get(&mut config) != own
        });
        assert!(changed, "{} takes none of {some:?}", option.full_name());
        let (now, then) = (values(&config), values(&default));
        let different: Vec<&str> =
            now.iter().zip(&then).filter(|(a, b)| a != b).map(|((name, _), _)| &name[..]).collect();
        assert_eq!(different, [option.full_name()]);
        assert_eq!(config.restart_for(&default).is_empty(), !option.restart);
    }
    assert_eq!(values(&default).len(), TABLE.iter().filter(|it| it.kind.is_kept()).count());
}

#[test]
fn names_and_flags_are_there_once() {
    for names in [
        TABLE.iter().map(Entry::full_name).collect::<Vec<_>>(),
        TABLE
            .iter()
            .filter_map(Entry::flag_name)
            .chain(["config", "events", "user", "seccomp"].map(String::from))
            .collect(),
    ] {
        let once: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(once.len(), names.len(), "{names:?}");
    }
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
fn all_protocols_need_somebody_who_reports_and_known_clients() {
    let all = r#""protocols":"all","repair":"radio","device":"br-lan""#;
    let (config, warnings) = parse(&format!("{{{all}}}")).unwrap();
    assert!(config.others() && warnings.is_empty(), "{warnings:?}");
    let quic = vec![443];
    assert_eq!(config.engine(false).protocols, pemi_engine::Protocols::All { quic });
    let (config, warnings) = parse(r#"{"protocols":"all","device":"br-lan"}"#).unwrap();
    assert!(config.others() && warnings.is_empty(), "{warnings:?}");
    for (other, count) in [
        (all.replace("radio", "infer"), 1),
        (all.replace("br-lan", ""), 1),
        (format!("{},\"radio\":\"off\"", all.replace("\"radio\"", "\"auto\"")), 1),
        (format!(r#"{all},"mode":"bridged""#), 1),
        (format!(r#"{all},"direction":"both""#), 2),
    ] {
        let (config, warnings) = parse(&format!("{{{other}}}")).unwrap();
        assert_eq!(config.engine(false).protocols, pemi_engine::Protocols::Quic);
        assert_eq!(warnings.len(), count, "{warnings:?}");
        assert!(warnings.last().unwrap().contains("'protocols': 'all' needs"), "{warnings:?}");
    }
}

#[test]
fn reports_are_asked_for_in_both_modes_and_of_what_goes_to_clients_only() {
    for (more, expected) in [
        (r#""repair":"radio""#, true),
        (r#""repair":"auto","mode":"bridged""#, true),
        (r#""repair":"infer","mode":"bridged""#, false),
        (r#""repair":"auto","direction":"both""#, false),
    ] {
        let (config, _) = parse(&format!("{{{more}}}")).unwrap();
        assert_eq!(config.engine(false).reports, expected, "{more}");
    }
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
