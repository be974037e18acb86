// SPDX-License-Identifier: GPL-2.0-or-later
//! A hop by traces: the files that `run.py --trace1` takes, with the same meaning.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail, ensure};
use linkem::delay::DelayTrace;
use linkem::trace::{OPPORTUNITY_BYTES, Trace};
use linkem::{MS, Nanos};
use serde::Deserialize;

use crate::random::Random;

/// Our own, and beside them what makes the generated ones.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../mininet/traces");

/// What a direction is like from moment to moment.
#[derive(Clone, Debug)]
pub struct Way {
    /// Delivery opportunities, in place of a rate.
    pub rate: Option<Trace>,
    /// In place of a delay.
    pub delay: Option<DelayTrace>,
}

/// Towards the clients and back.
type Ways = [Way; 2];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    down: Option<Files>,
    up: Option<Files>,
    generate: Option<Generate>,
    // Where a recording is from is for people.
    #[expect(dead_code)]
    title: Option<String>,
    #[expect(dead_code)]
    source: Option<String>,
    #[expect(dead_code)]
    licence: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Files {
    rate: Option<PathBuf>,
    delay: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Generate {
    kind: String,
    seed: u64,
    seconds: u64,
}

/// The hop of a trace file, or of the one of this name among our own; each seed begins
/// elsewhere in it, in both directions at the same moment.
pub fn read(name: &str, seed: u64) -> anyhow::Result<Ways> {
    // A fast hop's trace has hundreds of thousands of lines, and thousands of runs want it.
    static KNOWN: Mutex<Option<HashMap<String, Arc<Ways>>>> = Mutex::new(None);
    let ways = {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.get_or_insert_default();
        match known.get(name) {
            Some(ways) => ways.clone(),
            None => {
                let ways = from_file(name).with_context(|| format!("wifi.trace '{name}'"))?;
                known.entry(name.to_owned()).or_insert(Arc::new(ways)).clone()
            }
        }
    };
    Ok(begun_elsewhere(&ways, seed))
}

fn begun_elsewhere(ways: &Ways, seed: u64) -> Ways {
    // A line of delays is of so long.
    const STEP: Nanos = 10 * MS;
    let round = ways.iter().map(Way::round).max().unwrap_or(0);
    let by = STEP * Random::new(seed ^ 0x7ace).below(round / STEP);
    ways.clone().map(|way| Way {
        rate: way.rate.map(|rate| rate.begun_at(by)),
        delay: way.delay.map(|delay| delay.begun_at(by)),
    })
}

impl Way {
    fn round(&self) -> Nanos {
        let rate = self.rate.as_ref().map_or(0, Trace::round);
        rate.max(self.delay.as_ref().map_or(0, DelayTrace::round))
    }

    fn of(files: &Files) -> anyhow::Result<Way> {
        let rate = files.rate.as_ref().map(|path| Trace::read(path, OPPORTUNITY_BYTES));
        let delay = files.delay.as_ref().map(|path| DelayTrace::read(path));
        ensure!(rate.is_some() || delay.is_some(), "neither a rate nor a delay is there");
        let error = anyhow::Error::msg;
        Ok(Way { rate: rate.transpose().map_err(error)?, delay: delay.transpose().map_err(error)? })
    }
}

fn from_file(name: &str) -> anyhow::Result<Ways> {
    let own = Path::new(FOLDER).join(format!("{name}.toml"));
    let path = if own.is_file() { own } else { PathBuf::from(name) };
    let text = std::fs::read_to_string(&path)
        .context("is neither one of test/mininet/traces nor a file; see the names there")?;
    let file: File = toml::from_str(&text)?;
    match file {
        File { generate: Some(how), down: None, up: None, .. } => generated(&how),
        File { generate: None, down: Some(down), up: Some(up), .. } => {
            let foreign = std::env::var_os("PEMI_TRACES").map(PathBuf::from);
            let folder = path.parent().unwrap_or(Path::new("."));
            let found = |name: PathBuf| {
                let foreign = foreign.as_ref().map(|foreign| foreign.join(&name));
                foreign.filter(|path| path.is_file()).unwrap_or_else(|| folder.join(name))
            };
            let way = |files: Files| {
                Way::of(&Files { rate: files.rate.map(found), delay: files.delay.map(found) })
            };
            Ok([way(down)?, way(up)?])
        }
        _ => bail!("wanted [down] and [up], or [generate] in their place"),
    }
}

/// What our generator makes; gone from the disk when it has been read.
fn generated(how: &Generate) -> anyhow::Result<Ways> {
    let folder = std::env::temp_dir().join(format!("pemi-sim-{}-{}", std::process::id(), how.kind));
    let answer = Command::new("python3")
        .arg(Path::new(FOLDER).join("generate.py"))
        .args(["--kind", &how.kind, "--seed", &how.seed.to_string()])
        .args(["--seconds", &how.seconds.to_string(), "--out"])
        .arg(&folder)
        .output()
        .context("test/mininet/traces/generate.py needs python3")?;
    let ways = if answer.status.success() {
        let found = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
        let way = |name: &str| {
            let delay = found(&format!("{name}-delay")).or_else(|| found("delay"));
            Way::of(&Files { rate: found(name), delay })
        };
        way("down").and_then(|down| Ok([down, way("up")?]))
    } else {
        Err(anyhow::anyhow!("{}", String::from_utf8_lossy(&answer.stderr).trim()))
    };
    let _ = std::fs::remove_dir_all(&folder);
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_of_our_own() {
        let [down, up] = read("wifi-sleep", 1).unwrap();
        assert!(down.rate.is_none() && up.rate.is_none());
        // Only what is for the client waits.
        let longest = |way: &Way| {
            let delay = way.delay.as_ref().unwrap();
            (0..delay.round() / MS).map(|ms| delay.at(ms * MS)).max().unwrap()
        };
        assert!(longest(&down) > 100 * MS && longest(&up) < 20 * MS);
    }

    #[test]
    fn each_seed_begins_elsewhere_and_always_there() {
        let first = |seed| {
            let [down, up] = read("wifi-office", seed).unwrap();
            [down, up].map(|way| {
                let mut rate = way.rate.unwrap();
                let from = rate.peek();
                (0..100).for_each(|_| rate.consume());
                rate.peek() - from
            })
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn a_recording_of_ones_own_is_read_from_beside_its_file() {
        let folder = std::env::temp_dir().join(format!("pemi-sim-own-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
        write("times", "5\n10\n");
        write("delays", "3\n");
        let both = "rate = \"times\"\ndelay = \"delays\"\n";
        write("own.toml", &format!("title = \"own\"\n[down]\n{both}[up]\n{both}"));
        write("half.toml", &format!("[down]\n{both}"));
        let name = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let [down, up] = read(&name("own.toml"), 7).unwrap();
        assert_eq!(down.delay.unwrap().at(0), 3 * MS);
        assert_eq!(up.rate.unwrap().round(), 10 * MS);
        let error = read(&name("half.toml"), 7).unwrap_err();
        assert!(format!("{error:#}").contains("[down] and [up]"), "{error:#}");
        let error = read("wifi-nowhere", 7).unwrap_err();
        assert!(format!("{error:#}").contains("wifi.trace 'wifi-nowhere'"), "{error:#}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
