// SPDX-License-Identifier: GPL-2.0-or-later
//! Who may use whom: the folders of `src` are layers, and this holds them apart.
//!
//! The compiler would let any module use any other. What keeps the packet path free of the
//! command line, and what lies below free of what lies above, is this test: it reads the
//! paths that begin with `crate::` or `super::` in the program (not in its unit tests).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A folder, and those of others that it may use. What is in no line is an error, too.
const LAYERS: &[(&str, &[&str])] = &[
    ("sys", &[]),
    ("config", &[]),
    ("log", &["sys"]),
    ("firewall", &["config", "sys"]),
    ("radio", &["config", "sys"]),
    ("sidekick", &["config", "sys"]),
    ("datapath", &["config", "log", "sys"]),
    ("daemon", &["config", "datapath", "firewall", "log", "radio", "sidekick", "sys"]),
    ("command", &["config", "daemon", "datapath", "firewall", "log", "sys"]),
];

/// Modules by their paths (`datapath/nfqueue`), and the modules that each of them uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The program below a folder, without comments and without unit tests.
fn sources(folder: &Path, root: &Path, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, root, found);
            continue;
        }
        let name = path.with_extension("");
        let name = name.strip_prefix(root).unwrap().to_str().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let (program, _) = text.split_once("\n#[cfg(test)]").unwrap_or((&text, ""));
        let above = ["lib", "main", "bin/pemi-tools"].contains(&name);
        if !above && !name.ends_with("/tests") {
            let lines = program.lines().map(|line| line.split("//").next().unwrap_or_default());
            found.insert(name.into(), lines.collect::<Vec<_>>().join(" "));
        }
    }
}

/// Puts down each path that `text` begins with: `a::{b, c::d}` has two. Gives the rest.
fn expand<'a>(mut text: &'a str, mut path: Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    loop {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        if end > 0 {
            path.push(text[..end].into());
        }
        text = &text[end..];
        match text.strip_prefix("::") {
            Some(rest) if !rest.starts_with('{') => text = rest,
            Some(rest) => {
                text = &rest[1..];
                while !text.starts_with('}') {
                    text = expand(text.trim_start(), path.clone(), found);
                    text = text.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
                }
                return &text[1..];
            }
            None => {
                found.push(path);
                // What it is called here does not matter.
                return text.find([',', '}', ';']).map_or("", |at| &text[at..]);
            }
        }
    }
}

/// The paths in the program of `module`, from the root of the crate.
fn paths(module: &str, text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back().unwrap_or(' ');
            if !before.is_alphanumeric() && !['_', ':', '$'].contains(&before) {
                expand(&text[at..], Vec::new(), &mut found);
            }
        }
    }
    for path in &mut found {
        let mut here: Vec<String> = module.split('/').map(str::to_string).collect();
        let above = path.iter().take_while(|part| *part == "super").count();
        here.truncate(if above == 0 { 0 } else { here.len() - above });
        path.drain(..above.max(1));
        path.splice(..0, here);
    }
    found
}

/// Who uses whom in `sources`.
fn uses(sources: &BTreeMap<String, String>) -> Uses {
    let module = |path: &[String]| {
        (1..=path.len()).rev().map(|len| path[..len].join("/")).find(|it| sources.contains_key(it))
    };
    let of = |name: &str, text: &str| {
        let mut used: BTreeSet<String> =
            paths(name, text).iter().filter_map(|path| module(path)).collect();
        used.remove(name);
        used
    };
    sources.iter().map(|(name, text)| (name.clone(), of(name, text))).collect()
}

fn program() -> Uses {
    let (root, mut found) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), BTreeMap::default());
    sources(&root, &root, &mut found);
    uses(&found)
}

/// Uses that LAYERS does not allow.
fn trespasses(uses: &Uses) -> Vec<String> {
    let folder = |module: &str| module.split('/').next().unwrap_or_default().to_string();
    let mut wrong = Vec::new();
    for (module, used) in uses {
        let from = folder(module);
        let allowed = LAYERS.iter().find(|(name, _)| *name == from).map(|(_, allowed)| *allowed);
        if allowed.is_none() {
            wrong.push(format!("{module} is in no layer"));
        }
        wrong.extend(
            used.iter()
                .filter(|other| folder(other) != from)
                .filter(|other| !allowed.unwrap_or_default().contains(&folder(other).as_str()))
                .map(|other| format!("{module} uses {other}")),
        );
    }
    wrong
}

/// Modules that need each other, be it through others, and those that use such. A module and
/// its parent are one: what a file has in common with those in its folder stands in it.
fn circles(mut uses: Uses) -> BTreeSet<String> {
    for (module, used) in &mut uses {
        used.retain(|other| !module.starts_with(&format!("{other}/")));
    }
    loop {
        let free: Vec<String> =
            uses.iter().filter(|(_, used)| used.is_empty()).map(|(it, _)| it.clone()).collect();
        if free.is_empty() {
            return uses.into_keys().collect();
        }
        free.iter().for_each(|it| drop(uses.remove(it)));
        uses.values_mut().for_each(|used| used.retain(|other| !free.contains(other)));
    }
}

#[test]
fn layers_use_those_below_them_only() {
    assert_eq!(trespasses(&program()), [] as [&str; 0]);
}

#[test]
fn no_files_need_each_other() {
    assert_eq!(circles(program()), BTreeSet::new());
}

#[test]
fn the_layers_themselves_are_in_order() {
    for (place, (folder, used)) in LAYERS.iter().enumerate() {
        for other in *used {
            let below = LAYERS[..place].iter().any(|(name, _)| name == other);
            assert!(below, "{folder} may use {other}, which is not above it in the table");
        }
    }
}

/// The test can fail: a program that does all that is forbidden.
#[test]
fn what_is_wrong_is_found() {
    let source = |name: &str, text: &str| (name.to_string(), text.to_string());
    let sources = BTreeMap::from([
        source("sys/poll", "use crate::{command::cli, config}; fn f() { crate::log::events() }"),
        source("command/cli", "use super::options::{self, A as B};"),
        source("command/options", "use crate::command::{cli::{Command, number}, show};"),
        source("command/show", ""),
        source("log", ""),
        source("config", ""),
        source("config/reader", "use super::Config;"),
        source("attic/old", ""),
    ]);
    let uses = uses(&sources);
    let used: Vec<&str> = uses["command/options"].iter().map(String::as_str).collect();
    assert_eq!(used, ["command/cli", "command/show"]);
    assert_eq!(
        trespasses(&uses),
        [
            "attic/old is in no layer",
            "sys/poll uses command/cli",
            "sys/poll uses config",
            "sys/poll uses log"
        ]
    );
    let circles = circles(uses);
    assert_eq!(circles, ["command/cli", "command/options", "sys/poll"].map(String::from).into());
}
