// SPDX-License-Identifier: GPL-2.0-or-later
//! README says where `unsafe` is, so that a reviewer knows where to look.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Modules below a folder that hold `unsafe`, by their paths.
fn holding(folder: &Path, root: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            holding(&path, root, found);
        } else if fs::read_to_string(&path).unwrap().lines().any(is_unsafe) {
            let module = path.with_extension("");
            found.insert(module.strip_prefix(root).unwrap().to_str().unwrap().into());
        }
    }
}

/// Of code: a comment may speak of it.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    ["unsafe {", "unsafe extern", "unsafe fn", "unsafe impl"].iter().any(|it| code.contains(it))
}

#[test]
fn readme_names_every_module_that_holds_unsafe() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(crate_root.join("README.md")).unwrap();
    let (_, rest) = readme.split_once("`unsafe` is confined to").unwrap();
    let (sentence, _) = rest.split_once('.').unwrap();
    let named: BTreeSet<String> =
        sentence.split('`').skip(1).step_by(2).map(str::to_string).collect();
    let (mut found, source) = (BTreeSet::new(), crate_root.join("src"));
    holding(&source, &source, &mut found);
    // Tests of a module are no part of the program.
    found.retain(|module| !module.ends_with("/tests"));
    assert_eq!(named, found);
}
