// SPDX-License-Identifier: GPL-2.0-or-later
//! `pemi options`: what can be configured, and the flags among it for `pemi help`. All of it
//! comes from the table of options.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::config::Config;
use crate::config::options::{Entry, Kind, TABLE};

/// For programs: a list of options, each an object.
pub fn json() -> Value {
    TABLE.iter().map(object).collect()
}

/// What does not go with its kind is null.
fn object(option: &Entry) -> Value {
    let (least, most, words) = match &option.kind {
        Kind::Number(range, _) => (Some(*range.start()), Some(*range.end()), None),
        Kind::Choice(_) => (None, None, Some(option.kind.words())),
        _ => (None, None, None),
    };
    let members = [
        ("section", option.section.into()),
        ("name", option.name.into()),
        ("kind", option.kind.name().into()),
        ("allowed", option.kind.allowed().into()),
        ("least", least.into()),
        ("most", most.into()),
        ("words", words.into()),
        ("default", option.kind.get(&mut Config::default())),
        ("unit", option.unit.into()),
        ("restart", option.restart.into()),
        ("flag", option.flag_name().map(|name| format!("--{name}")).into()),
        ("about", option.about.into()),
    ];
    let mut object = Map::new();
    for (name, value) in members {
        object.insert(name.into(), value);
    }
    object.into()
}

/// For people: the defaults as `pemi check` has them, and what there is to know of each.
pub fn text() -> String {
    let mut text = String::new();
    for option in TABLE {
        let default = format!("{} {}", option.kind.get(&mut Config::default()), option.unit);
        let restart = if option.restart { "; a change restarts the daemon" } else { "" };
        let _ = writeln!(
            text,
            "{} = {}\n    {}\n    allowed: {}{restart}",
            option.full_name(),
            default.trim_end(),
            option.about,
            option.kind.allowed(),
        );
    }
    text
}

/// The flags of `pemi run` that stand for options, as in `pemi help`.
pub fn flags() -> String {
    TABLE.iter().filter_map(|option| Some(flag(option, &option.flag_name()?))).collect()
}

fn flag(option: &Entry, name: &str) -> String {
    let (value, before, after) = match option.kind {
        Kind::Switch(_) => ("", "do not ", ""),
        Kind::Number(..) => (" N", "", ""),
        Kind::Names(_) => (" NAME", "", "; repeatable"),
        Kind::Ports(_) => (" P", "", "; repeatable"),
        Kind::Choice(_) => (" WORD", "", ": "),
        _ => (" PATH", "", ""),
    };
    let flag = format!("{name}{value}");
    let words = option.kind.words().join(", ");
    format!("  --{flag:<18} {before}{}{after}{words}\n", option.about)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::options::MAIN;

    #[test]
    fn every_option_is_an_object_for_programs() {
        let Value::Array(all) = json() else { panic!("no list") };
        assert_eq!(all.len(), TABLE.len());
        let find = |name: &str| {
            let found = all.iter().find(|it| it["section"] == MAIN && it["name"] == name);
            found.unwrap().clone()
        };
        assert_eq!(
            find("cache_kib"),
            json!({
                "section": "main", "name": "cache_kib", "kind": "number", "unit": "KiB",
                "allowed": "a number from 64 to 1048576", "least": 64, "most": 1_048_576, "words": null,
                "default": 4096, "restart": false, "flag": "--cache-kib",
                "about": "memory for packet copies, over all queues",
            })
        );
        assert_eq!(find("mode")["words"], json!(["routed", "bridged"]));
        assert_eq!(find("mode")["restart"], true);
        assert_eq!(find("mode")["flag"], Value::Null);
        assert_eq!(find("conceal")["flag"], "--no-conceal");
        assert_eq!(find("enabled")["default"], false);
    }

    #[test]
    fn people_read_what_an_option_is_for_and_may_be() {
        let text = text();
        for part in [
            "\ncache_kib = 4096 KiB\n    memory for packet copies, over all queues\n    \
             allowed: a number from 64 to 1048576\n",
            "\nmode = \"routed\"\n",
            "\n    allowed: routed, bridged; a change restarts the daemon\n",
            "\nsidekick.port = 5103\n",
        ] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }

    #[test]
    fn flags_are_explained_in_two_columns() {
        let text = flags();
        for line in [
            "  --cache-kib N        memory for packet copies, over all queues",
            "  --no-conceal         do not hold replies that tell of a loss under repair",
            "  --port P             UDP ports of the servers; repeatable",
            "  --log-level WORD     what is logged: error, warn, info, debug",
        ] {
            assert!(text.lines().any(|it| it == line), "no {line:?} in\n{text}");
        }
        assert!(!text.contains("--mode"));
        // As wide as a terminal, and the words begin below each other.
        for line in text.lines() {
            assert!(line.len() < 80 && line[..23].ends_with(' '), "{line}");
        }
    }
}
