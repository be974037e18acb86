// SPDX-License-Identifier: GPL-2.0-or-later
//! Scenario files and what a run of them promises.

use std::path::Path;

use pemi_sim::matrix;
use pemi_sim::run::{Assist, run};

fn error(text: &str, changes: &[&str]) -> String {
    let changes: Vec<String> = changes.iter().map(|change| (*change).into()).collect();
    format!("{:#}", matrix::parse(text, &changes).unwrap_err())
}

#[test]
fn the_examples_are_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        matrix::read(&path, &[]).unwrap();
        names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(names, ["bursts", "call", "chromium", "fairness", "jitter", "train", "upload"]);
}

#[test]
fn errors_name_the_option() {
    for (text, problem) in [
        ("[wifi]\ndelay = 5", "unknown field `delay`"),
        ("[[flow]]\nbites = 5", "unknown field `bites`"),
        ("[wifi]\ndelay_ms = \"long\"", "delay_ms = \"long\""),
        ("[[flow]]\nclient = \"netscape\"", "unknown variant `netscape`"),
    ] {
        let error = error(text, &[]);
        assert!(error.contains(problem) && error.contains("line 2"), "{error}");
    }
    for (change, problems) in [
        ("wifi.delay=5", ["unknown field `delay`", "wifi"]),
        ("wifi.delay_ms=\"long\"", ["invalid type", "delay_ms"]),
        ("flow.cc=vegas", ["unknown variant `vegas`", "cc"]),
        ("limit_s.x=1", ["'limit_s' is a value", "limit_s.x=1"]),
        ("wifi", ["wanted OPTION=VALUE", "'wifi'"]),
    ] {
        let error = error("limit_s = 9", &[change]);
        for problem in problems {
            assert!(error.contains(problem), "{change}: {error}");
        }
    }
}

#[test]
fn a_seed_is_a_result() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    for name in ["train", "chromium", "jitter"] {
        let changes = ["flow.bytes=1000000".to_owned()];
        let path = folder.join(name).with_extension("toml");
        let scenario = matrix::read(&path, &changes).unwrap();
        let result =
            |seed| serde_json::to_string(&run(&scenario, Assist::On, seed).unwrap()).unwrap();
        assert_eq!(result(7), result(7), "{name}");
        assert_ne!(result(7), result(8), "{name}");
    }
}
