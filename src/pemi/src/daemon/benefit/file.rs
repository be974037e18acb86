// SPDX-License-Identifier: GPL-2.0-or-later
//! The comparison over restarts: a file of JSON, a few kilobytes long.
//!
//! Flash wears with every write, so a file there is written once an hour at most, and what has
//! come since is lost with a restart. One in memory is written once a minute and at the end.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pemi_engine::Knowledge;
use serde_json::{Map, Value};

use super::Network;
use super::sample::{ALONE, HELPED, KINDS, Sample, Samples};
use crate::sys::file;

/// Where a router keeps files in memory.
const MEMORY: [&str; 3] = ["/var/", "/tmp/", "/run/"];
const IN_MEMORY: Duration = Duration::from_secs(60);
const ON_FLASH: Duration = Duration::from_secs(3600);
/// Longer is none of ours (chosen: eight networks with all samples need less).
const LONGEST: u64 = 256 * 1024;

/// The file, if there is to be one.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    written: Instant,
    /// Something is to be written.
    news: bool,
    /// It could not be written, and the log says so.
    told: bool,
}

impl Kept {
    /// The file at `path`, and the networks that are in it. A file that cannot be read, or makes no
    /// sense, is one that is not there.
    pub fn open(path: &Path, now_unix: u64) -> (Kept, Vec<Network>) {
        let found = match read(path) {
            Ok(text) => parse(&text, now_unix).unwrap_or_else(|| {
                log::warn!("{}: no comparison can be read from it; it begins anew", path.display());
                Vec::new()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                log::warn!("{}: {error}; the comparison begins anew", path.display());
                Vec::new()
            }
        };
        let written = Instant::now();
        (Kept { path: path.to_path_buf(), written, news: false, told: false }, found)
    }

    /// There is something new to keep.
    pub fn changed(&mut self) {
        self.news = true;
    }

    /// Writes it if it is time to.
    pub fn keep(&mut self, networks: &[Network], now_unix: u64) {
        let every = if self.is_in_memory() { IN_MEMORY } else { ON_FLASH };
        if self.news && self.written.elapsed() >= every {
            self.write(networks, now_unix);
        }
    }

    /// Writes it for the last time.
    pub fn close(&mut self, networks: &[Network], now_unix: u64) {
        if self.news && (self.is_in_memory() || self.written.elapsed() >= ON_FLASH) {
            self.write(networks, now_unix);
        }
    }

    fn is_in_memory(&self) -> bool {
        MEMORY.iter().any(|folder| self.path.starts_with(folder))
    }

    fn write(&mut self, networks: &[Network], now_unix: u64) {
        self.written = Instant::now();
        match file::replace(&self.path, &text(networks, now_unix)) {
            Ok(()) => (self.news, self.told) = (false, false),
            Err(error) => {
                if !std::mem::replace(&mut self.told, true) {
                    log::warn!(
                        "option 'benefit': {} cannot be written: {error}; the comparison is kept in \
                         memory until the daemon ends",
                        self.path.display()
                    );
                }
            }
        }
    }
}

fn read(path: &Path) -> io::Result<String> {
    if fs::metadata(path)?.len() > LONGEST {
        return Err(io::Error::other("it is too long"));
    }
    fs::read_to_string(path)
}

fn text(networks: &[Network], now_unix: u64) -> String {
    let mut file = Map::new();
    for network in networks {
        let mut its = Map::new();
        if let Some(left) = network.back_left() {
            its.insert("back_until".into(), (now_unix + left.as_secs()).into());
        }
        for (kind, samples) in KINDS.iter().zip(&network.kinds) {
            let list = |of: &VecDeque<Sample>| -> Value {
                of.iter().map(|it| vec![it.kbit_s, it.stalls.into()]).collect()
            };
            if *samples != Samples::default() {
                let sides = [list(&samples.helped), list(&samples.alone)];
                its.insert(kind.name().into(), sides.to_vec().into());
            }
        }
        file.insert(network.name.clone(), its.into());
    }
    Value::from(file).to_string()
}

fn parse(text: &str, now_unix: u64) -> Option<Vec<Network>> {
    let Value::Object(file) = serde_json::from_str(text).ok()? else { return None };
    let mut networks = Vec::new();
    for (name, its) in file {
        let mut network = Network::new(name);
        if let Some(until) = its["back_until"].as_u64() {
            network.stand_back_for(Duration::from_secs(until.saturating_sub(now_unix)));
        }
        for (kind, samples) in KINDS.iter().zip(&mut network.kinds) {
            samples.helped = side(&its, *kind, 0, HELPED)?;
            samples.alone = side(&its, *kind, 1, ALONE)?;
        }
        networks.push(network);
    }
    Some(networks)
}

/// One side of a kind; the newest are the last.
fn side(its: &Value, kind: Knowledge, at: usize, most: usize) -> Option<VecDeque<Sample>> {
    let list = match &its[kind.name()] {
        Value::Null => return Some(VecDeque::new()),
        sides => sides[at].as_array()?,
    };
    let sample = |it: &Value| {
        let kbit_s = u32::try_from(it[0].as_u64()?).ok()?;
        Some(Sample { kbit_s, stalls: u16::try_from(it[1].as_u64()?).ok()? })
    };
    list.iter().skip(list.len().saturating_sub(most)).map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> Network {
        let mut network = Network::new("br-lan".into());
        for kbit_s in 1..=200 {
            network.kinds[0].add(kbit_s % 3 != 0, Sample { kbit_s, stalls: 2 });
        }
        network.kinds[2].add(true, Sample { kbit_s: u32::MAX, stalls: 0 });
        network.stand_back_for(Duration::from_secs(5000));
        network
    }

    #[test]
    fn what_is_written_is_read() {
        let written = [network(), Network::new("br-guest".into())];
        let read = parse(&text(&written, 1_800_000_000), 1_800_001_000).unwrap();
        let [guest, lan] = &read[..] else { panic!("{read:?}") };
        assert_eq!((&lan.name[..], &guest.name[..]), ("br-lan", "br-guest"));
        assert_eq!(lan.kinds, written[0].kinds);
        let left = lan.back_left().unwrap().as_secs();
        assert!((3990..=4000).contains(&left), "{left}");
        assert_eq!(guest.back_left(), None);
        assert!(text(&written, 0).len() < 4000);
    }

    #[test]
    fn a_clock_that_is_wrong_makes_nobody_wait_for_long() {
        // Routers without a battery begin in the past.
        let read = parse(&text(&[network()], 1_800_000_000), 0).unwrap();
        assert!(read[0].back_left().unwrap() <= super::super::BACK);
        let late = parse(&text(&[network()], 0), 1_800_000_000).unwrap();
        assert_eq!(late[0].back_left(), None);
    }

    #[test]
    fn nonsense_is_no_file() {
        for text in
            ["", "[]", "{", "7", r#"{"a":{"replies":[[[1]],[]]}}"#, r#"{"a":{"replies":7}}"#]
        {
            assert!(parse(text, 0).is_none(), "{text}");
        }
        assert_eq!(parse("{}", 0).unwrap().len(), 0);
        let strange = r#"{"a":7,"b":{"more":1}}"#;
        assert_eq!(parse(strange, 0).unwrap().len(), 2);
    }

    #[test]
    fn a_file_in_memory_is_written_at_the_end_and_one_on_flash_is_spared() {
        let folder = std::env::temp_dir().join(format!("pemi-benefit-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("benefit");
        let (mut kept, found) = Kept::open(&path, 0);
        assert!(found.is_empty());
        kept.close(&[network()], 0);
        assert!(!path.exists(), "nothing is new");
        kept.changed();
        kept.keep(&[network()], 0);
        assert!(!path.exists(), "it is too early");
        kept.close(&[network()], 0);
        assert_eq!(Kept::open(&path, 0).1.len(), 1);
        fs::write(&path, "nonsense").unwrap();
        assert!(Kept::open(&path, 0).1.is_empty());
        fs::remove_dir_all(&folder).unwrap();
        kept.changed();
        kept.close(&[network()], 0);
        assert!(kept.news && kept.told, "there is no folder any more");
    }
}
