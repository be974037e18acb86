// SPDX-License-Identifier: GPL-2.0-or-later
//! The engine's folders are layers: each may use those below it and none above.
//! This reads the sources, because the compiler lets any module of a crate use any
//! other one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each folder of `src/engine/src` and what it may use beside itself and the files at
/// the root, from the bottom to the top.
const LAYERS: [(&str, &[&str]); 7] = [
    ("wire", &[]),
    ("store", &[]),
    ("measure", &["wire", "store"]),
    ("infer", &["store", "measure"]),
    ("repair", &["store", "measure", "infer"]),
    ("flow", &["wire", "store", "measure", "infer", "repair"]),
    ("engine", &["wire", "store", "measure", "repair", "flow"]),
];

/// The files at the root, which everything may use, and what each of them uses.
const ROOT: [(&str, &[&str]); 5] = [
    ("time", &[]),
    ("rules", &[]),
    ("stats", &[]),
    ("tunables", &["time"]),
    ("api", &["time", "rules", "tunables"]),
];

/// A source file: its module, as in `infer::sizes`, and the modules that it uses.
struct Source {
    module: String,
    uses: BTreeSet<String>,
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../src/engine/src")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the sources are there") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// `infer/sizes.rs` is `infer::sizes`, `infer/mod.rs` is `infer`.
fn module_of(path: &Path) -> String {
    let relative = path.strip_prefix(src()).expect("it is one of the sources").with_extension("");
    let names: Vec<_> = relative.iter().map(|name| name.to_string_lossy()).collect();
    names.join("::").trim_end_matches("::mod").to_owned()
}

/// The paths of modules that follow each `crate::` in `text`, comments aside.
fn mentioned(text: &str) -> BTreeSet<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let after = code.flat_map(|line| line.split("crate::").skip(1));
    after
        .map(|rest| {
            let lower = |c: char| c.is_ascii_lowercase() || c == '_' || c == ':';
            let path = rest.split(|c| !lower(c)).next().unwrap_or_default();
            // `crate::{a, b}` would escape this test.
            assert!(!path.is_empty(), "one import a line: crate::{rest}");
            path.trim_end_matches(':').to_owned()
        })
        .collect()
}

fn sources() -> Vec<Source> {
    let mut paths = Vec::new();
    files(&src(), &mut paths);
    let modules: BTreeSet<String> = paths.iter().map(|path| module_of(path)).collect();
    // The longest beginning of a path that is a module: what follows is an item in it.
    let module = |mut path: &str| loop {
        if modules.contains(path) {
            return path.to_owned();
        }
        path = path.rsplit_once("::").unwrap_or_else(|| panic!("{path} is no module")).0;
    };
    let read = |path: &PathBuf| Source {
        module: module_of(path),
        uses: mentioned(&fs::read_to_string(path).expect("it is text"))
            .iter()
            .map(|path| module(path))
            .collect(),
    };
    paths.iter().map(read).filter(|source| source.module != "lib").collect()
}

fn top(module: &str) -> &str {
    module.split("::").next().unwrap_or(module)
}

#[test]
fn no_folder_uses_one_above_it() {
    let layers: BTreeMap<&str, &[&str]> = LAYERS.into_iter().chain(ROOT).collect();
    let root = ROOT.map(|(name, _)| name);
    for Source { module, uses } in sources() {
        let here = top(&module);
        let allowed = layers.get(here).unwrap_or_else(|| panic!("{here} is in no layer"));
        for used in &uses {
            let there = top(used);
            let may = there == here
                || allowed.contains(&there)
                || root.contains(&there) && !root.contains(&here);
            assert!(may, "{module} uses {used}, which is not below it");
        }
    }
}

#[test]
fn the_table_itself_goes_from_the_bottom_to_the_top() {
    let mut below: Vec<&str> = Vec::new();
    for (folder, uses) in ROOT.into_iter().chain(LAYERS) {
        assert!(uses.iter().all(|used| below.contains(used)), "{folder} stands too low");
        below.push(folder);
    }
}

#[test]
fn files_use_each_other_in_no_circle() {
    let mut left = sources();
    // A file that uses none of those that are left is in no circle.
    loop {
        let modules: BTreeSet<String> = left.iter().map(|source| source.module.clone()).collect();
        let before = left.len();
        left.retain(|source| {
            source.uses.iter().any(|used| *used != source.module && modules.contains(used))
        });
        if left.len() == before {
            break;
        }
    }
    let circle: Vec<&str> = left.iter().map(|source| source.module.as_str()).collect();
    assert!(circle.is_empty(), "in a circle, or above one: {circle:?}");
}
