// SPDX-License-Identifier: GPL-2.0-or-later
//! What is written elsewhere of the options agrees with the one table of them: the shipped
//! configuration, the READMEs, the init script, the LuCI app and its translations.
//!
//! None of these can read the table: the first four are read by people or by a shell, and
//! LuCI's settings have to be there while no daemon runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use pemi::command::options;
use serde_json::Value;

/// Options that LuCI does not offer. The init script sets the first four; the other is for
/// those who edit the file.
const NOT_IN_LUCI: [&str; 5] = ["absent", "devices", "firewall", "ubus", "control"];
/// The one option whose shipped value is no default of the daemon's: the init script takes
/// this network if neither a network nor a device is configured.
const NETWORK: (&str, &str) = ("main.network", "lan");

/// An option as `pemi options --json` has it.
struct Described(Value);

impl Described {
    fn text(&self, member: &str) -> &str {
        self.0[member].as_str().unwrap_or_default()
    }

    fn name(&self) -> String {
        format!("{}.{}", self.text("section"), self.text("name"))
    }

    fn is_mark(&self) -> bool {
        self.text("unit") == "bits"
    }

    /// The range of a number that people read in decimal digits.
    fn range(&self) -> Option<(u64, u64)> {
        let range = (self.0["least"].as_u64()?, self.0["most"].as_u64()?);
        (!self.is_mark()).then_some(range)
    }

    fn words(&self) -> Vec<&str> {
        self.0["words"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Its default as it would stand in the file of UCI.
    fn default(&self) -> String {
        match &self.0["default"] {
            Value::Bool(on) => u8::from(*on).to_string(),
            Value::String(text) => text.clone(),
            Value::Number(bits) if self.is_mark() => format!("{:#x}", bits.as_u64().unwrap()),
            Value::Array(items) if items.is_empty() => "none".into(),
            Value::Array(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(" "),
            Value::Null => "none".into(),
            value => value.to_string(),
        }
    }
}

/// All options by section and name.
fn table() -> BTreeMap<String, Described> {
    let Value::Array(all) = options::json() else { panic!("no list") };
    all.into_iter().map(Described).map(|option| (option.name(), option)).collect()
}

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows below the line of a document that begins so, as cells without backquotes.
fn rows(document: &str, head: &str) -> Vec<Vec<String>> {
    let lines = document.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|row| row.split('|').skip(1).map(|cell| cell.trim().replace('`', "")).collect())
        .collect()
}

/// The text between two others, the first of them as well.
fn part<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap_or_else(|| panic!("{from:?} is not there"));
    let length = text[start..].find(to).unwrap_or(text.len() - start);
    &text[start..start + length]
}

#[test]
fn the_shipped_configuration_has_the_defaults() {
    let (table, mut section) = (table(), "");
    for line in read("files/etc/config/pemi").lines().filter(|line| !line.is_empty()) {
        let words: Vec<&str> =
            line.split_whitespace().map(|word| word.trim_matches('\'')).collect();
        if words[0] == "config" {
            section = words[2];
            continue;
        }
        let name = format!("{section}.{}", words[1]);
        let option = table.get(&name).unwrap_or_else(|| panic!("no option: {line}"));
        if name == NETWORK.0 {
            assert_eq!(words[2], NETWORK.1);
        } else {
            assert_eq!(words[2], option.default(), "{name}");
        }
    }
}

#[test]
fn the_readme_of_the_daemon_has_every_option() {
    let mut table = table();
    for row in rows(&read("src/pemi/README.md"), "| option | default | allowed |") {
        let [name, default, allowed, about, _] = &row[..] else { panic!("{row:?}") };
        let name = if name.contains('.') { name.clone() } else { format!("main.{name}") };
        let option = table.remove(&name).unwrap_or_else(|| panic!("no option, or twice: {name}"));
        assert_eq!(*default, option.default(), "{name}");
        match (option.text("kind"), option.range()) {
            ("switch", _) => assert_eq!(allowed, "switch", "{name}"),
            ("choice", _) => assert_eq!(*allowed, option.words().join(", "), "{name}"),
            (_, Some((least, most))) => {
                assert_eq!(*allowed, format!("{least} to {most}"), "{name}")
            }
            _ => {}
        }
        let restart = about == "restart" || about.ends_with("; restart");
        assert_eq!(restart, option.0["restart"] == true, "{name}: whether it says restart");
    }
    assert_eq!(table.keys().collect::<Vec<_>>(), [""; 0], "options that have no row");
}

#[test]
fn the_readme_for_users_has_the_shipped_values() {
    let (table, document) = (table(), read("README.md"));
    for section in ["main", "sidekick"] {
        let rows = rows(&document, &format!("| option of `{section}` |"));
        assert!(!rows.is_empty(), "{section}");
        for row in rows {
            let name = format!("{section}.{}", row[0].trim_start_matches("list "));
            let option = table.get(&name).unwrap_or_else(|| panic!("no option: {name}"));
            let shipped = if row[1].is_empty() { "none" } else { &row[1] };
            let expected = if name == NETWORK.0 { NETWORK.1 } else { &option.default() };
            assert_eq!(shipped, expected, "{name}");
            // Words that are not shipped are explained, or at least named.
            for word in option.words().into_iter().filter(|word| *word != shipped) {
                assert!(row[2].contains(word), "{name}: {word} is not there");
            }
        }
    }
}

#[test]
fn the_init_script_knows_options_that_there_are() {
    let (table, script) = (table(), read("files/etc/init.d/pemi"));
    let name = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(text.len());
        text[..end].to_string()
    };
    let mut known = BTreeSet::new();
    for before in ["\t\tmain.", "\tjson_add_string "] {
        let found = script.split(before).skip(1).map(name).filter(|name| !name.is_empty());
        known.extend(found.map(|name| format!("main.{name}")));
    }
    assert!(known.len() >= 7, "{known:?}");
    let strangers: Vec<_> = known.iter().filter(|name| !table.contains_key(*name)).collect();
    assert_eq!(strangers, [""; 0]);
    // It asks for the daemon's words for on and off.
    let allowed: Vec<&str> = table["main.enabled"].text("allowed").split(", ").collect();
    for which in [0, 1] {
        let words: Vec<&str> = allowed.iter().skip(which).step_by(2).copied().collect();
        assert!(script.contains(&words.join(" | ")), "{words:?}");
    }
    assert!(script.contains(&format!("pemi_networks={}", NETWORK.1)));
}

/// Where LuCI's settings have what belongs to each option.
fn luci() -> BTreeMap<String, String> {
    let source = read("luci-app-pemi/htdocs/luci-static/resources/view/pemi/settings.js");
    let (rest, sidekick) = source.split_once("\nfunction sidekick(").unwrap();
    let (sidekick, _) = sidekick.split_once("\n}").unwrap();
    let (marks, main) = rest.split_once("\nfunction basic(").unwrap();
    let mut found = BTreeMap::new();
    for mark in part(marks, "const MARKS", "\n]").lines().filter(|line| line.contains("name: '")) {
        found.insert(format!("main.{}", quoted(mark)), mark.to_string());
    }
    for (section, code) in [("main", main), ("sidekick", sidekick)] {
        let mut option = None;
        for line in code.lines() {
            // The name of an option stands behind other arguments, and before its label.
            let call = ["\tvalue(s", "\tflag(s", "\tlist(s", "\to = s.taboption("];
            if call.iter().any(|call| line.starts_with(call)) {
                let (before, _) = line.split_once("', _(").unwrap_or_else(|| panic!("{line}"));
                let (_, name) = before.rsplit_once('\'').unwrap();
                option = Some(format!("{section}.{name}"));
            }
            if let Some(name) = &option {
                let text: &mut String = found.entry(name.clone()).or_default();
                *text += line;
                text.push('\n');
            }
        }
    }
    found
}

/// The first quoted text of a line.
fn quoted(line: &str) -> &str {
    line.split('\'').nth(1).unwrap_or_default()
}

#[test]
fn luci_offers_the_options_with_their_ranges_and_defaults() {
    let (table, luci) = (table(), luci());
    let offered: BTreeSet<&String> = luci.keys().collect();
    let expected: BTreeSet<&String> = table
        .iter()
        .filter(|(_, option)| {
            option.text("section") != "main" || !NOT_IN_LUCI.contains(&option.text("name"))
        })
        .map(|(name, _)| name)
        .collect();
    assert_eq!(offered, expected);
    let checks = read("luci-app-pemi/htdocs/luci-static/resources/pemi/options.js");
    for (name, code) in &luci {
        let (option, default) = (&table[name], table[name].default());
        let mut expected = match option.text("kind") {
            "switch" => vec![format!("'{default}');")],
            "choice" => vec![format!("[ [ '{default}', _(")],
            "ports" => vec![format!("o.placeholder = '{default}'")],
            "interval" => vec![format!("'{default}', options.interval)")],
            "number" if option.is_mark() => vec![format!("standard: '{default}'")],
            "number" => vec![format!("'{default}', ")],
            _ => vec![],
        };
        if let Some((least, most)) = option.range() {
            expected.push(format!("options.range({least}, {most})"));
            expected.push(format!("_('{least} to {most}"));
        }
        for text in expected {
            assert!(code.contains(&text), "{name}: no {text} in\n{code}");
        }
        if !option.words().is_empty() {
            let words: BTreeSet<&str> = code.split("[ '").skip(1).map(quoted_end).collect();
            assert_eq!(words, option.words().into_iter().collect(), "{name}");
        }
        // Kinds with a check of their own: it has the numbers that the daemon names.
        if let kind @ ("ports" | "interval") = option.text("kind") {
            let check = part(&checks, &format!("\t{kind}: function"), "\n\t},");
            let numbers = numbers(option.text("allowed"));
            assert!(numbers.is_subset(&self::numbers(check)), "{name}: {numbers:?} in\n{check}");
        }
    }
}

fn quoted_end(text: &str) -> &str {
    text.split('\'').next().unwrap_or_default()
}

/// The numbers in a text, those within words, too.
fn numbers(text: &str) -> BTreeSet<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// The translations of a language by what they translate.
fn translations(language: &str) -> BTreeMap<String, String> {
    let text = read(&format!("luci-app-pemi/po/{language}/pemi.po"));
    let mut found = BTreeMap::new();
    for entry in text.split("\n\n") {
        let lines: Vec<&str> = entry.lines().filter(|line| !line.starts_with('#')).collect();
        // A text may go on in the lines below.
        let joined = lines.join("\n").replace("\"\n\"", "").replace("\\\"", "'");
        let after =
            |key: &str| joined.lines().find_map(|line| line.strip_prefix(key)).map(unquoted);
        if let (Some(id), Some(said)) = (after("msgid "), after("msgstr ")) {
            found.insert(id, said);
        }
    }
    found
}

fn unquoted(text: &str) -> String {
    text.trim_matches('"').into()
}

#[test]
fn translations_have_the_ranges() {
    let (table, luci) = (table(), luci());
    for language in ["de", "zh_Hans"] {
        let translations = translations(language);
        for (name, code) in &luci {
            let Some((least, most)) = table[name].range() else { continue };
            let help = quoted_end(&part(code, &format!("'{least} to {most}"), "\n")[1..]);
            let said = &translations.get(help).unwrap_or_else(|| panic!("{language}: {help}"));
            let said = numbers(said);
            assert!(said.contains(&least) && said.contains(&most), "{language}: {name}: {said:?}");
        }
    }
}
