// SPDX-License-Identifier: GPL-2.0-or-later
//! The manual page names every command and option that the program knows, and no others.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::Value;

/// Without the marks of its language.
fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/pemi.8");
    fs::read_to_string(path).unwrap().replace("\\-", "-").replace("\\e", "\\")
}

fn said(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pemi")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// All that begins with two hyphens.
fn flags(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words = text.split(|c| !is_part(c));
    words.filter(|word| word.starts_with("--") && word.len() > 2).collect()
}

/// What is the program's own in its help; the others are of programs that it names.
fn of_help(help: &str) -> BTreeSet<&str> {
    let mut found = flags(help);
    found.remove("--noflush");
    found
}

/// The commands of a text in which they stand behind `before` and the program's name.
fn commands<'a>(text: &'a str, before: &str) -> BTreeSet<&'a str> {
    let before = format!("{before}pemi ");
    let lines = text.lines().filter_map(|line| line.strip_prefix(&before[..]));
    lines.filter_map(|line| line.split([' ', ',']).next()).collect()
}

#[test]
fn every_command_has_its_part() {
    let (page, help) = (page(), said(&["help"]));
    let in_help = commands(&help, "  ");
    assert!(in_help.contains("status"), "{in_help:?}");
    assert_eq!(commands(&page, ".SS "), in_help);
}

#[test]
fn every_flag_is_told() {
    let (page, mut help) = (page(), said(&["help"]));
    help.push_str(&said(&["replay", "--help"]));
    // For help itself, which needs no line; and of nft's program.
    let mut in_page = flags(&page);
    for other in ["--help", "--noflush"] {
        in_page.remove(other);
    }
    let mut in_help = of_help(&help);
    in_help.remove("--help");
    assert_eq!(in_page, in_help);
}

#[test]
fn every_option_is_there_with_its_default() {
    let page = page();
    let options: Value = serde_json::from_str(&said(&["options", "--json"])).unwrap();
    let mut expected = String::new();
    let mut section = "";
    for option in options.as_array().unwrap() {
        let text = |member: &str| option[member].as_str().unwrap();
        if section != text("section") {
            section = text("section");
            expected.push_str(&format!(".SS {section}\n"));
        }
        let default = match &option["default"] {
            Value::Bool(on) => u8::from(*on).to_string(),
            Value::Array(items) if items.is_empty() => "none".into(),
            Value::Array(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(" "),
            Value::Null => "none".into(),
            Value::Number(bits) if text("unit") == "bits" => {
                format!("{:#x}", bits.as_u64().unwrap())
            }
            Value::String(word) => word.clone(),
            other => other.to_string(),
        };
        let restart = if option["restart"] == true { "; a change restarts the daemon" } else { "" };
        expected.push_str(&format!(
            ".TP\n.BR {} \" ({default})\"\n{}.\nAllowed: {}{restart}.\n",
            text("name"),
            text("about"),
            text("allowed"),
        ));
    }
    assert!(page.contains(&expected), "pemi.8 has to have this, with \\- for hyphens:\n{expected}");
}
