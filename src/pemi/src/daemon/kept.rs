// SPDX-License-Identifier: GPL-2.0-or-later
//! A file in which something is kept over restarts, and how often it is written.
//!
//! Flash wears with every write, so a file there is written once an hour at most, and what has
//! come since is lost with a restart. One in memory is written once a minute and at the end.
//! It is written so that a power cut or a full disk leave a whole one ([`file::replace`]).

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::sys::file;

/// Where a router keeps files in memory.
const MEMORY: [&str; 3] = ["/var/", "/tmp/", "/run/"];
const IN_MEMORY: Duration = Duration::from_secs(60);
const ON_FLASH: Duration = Duration::from_secs(3600);
/// Longer is none of ours (chosen: sixteen networks with all samples need less).
const LONGEST: u64 = 256 * 1024;

/// The file.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    /// What is in it, for the log.
    what: &'static str,
    written: Instant,
    /// Something is to be written.
    news: bool,
    /// It could not be written, and the log says so.
    told: bool,
}

impl Kept {
    /// The file at `path`, and what `parse` makes of its text. A file that cannot be read, or makes
    /// no sense, is one that is not there.
    pub fn open<T>(
        path: &Path,
        what: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> (Kept, Option<T>) {
        let found = match read(path) {
            Ok(text) => {
                let found = parse(&text);
                if found.is_none() {
                    log::warn!("{}: no {what} can be read from it; it begins anew", path.display());
                }
                found
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                log::warn!("{}: {error}; the {what} begins anew", path.display());
                None
            }
        };
        let written = Instant::now();
        (Kept { path: path.to_path_buf(), what, written, news: false, told: false }, found)
    }

    /// There is something new to keep.
    pub fn changed(&mut self) {
        self.news = true;
    }

    /// Writes it if it is time to.
    pub fn keep(&mut self, text: impl FnOnce() -> String) {
        let every = if self.is_in_memory() { IN_MEMORY } else { ON_FLASH };
        if self.news && self.written.elapsed() >= every {
            self.write(&text());
        }
    }

    /// Writes it for the last time.
    pub fn close(&mut self, text: impl FnOnce() -> String) {
        if self.news && (self.is_in_memory() || self.written.elapsed() >= ON_FLASH) {
            self.write(&text());
        }
    }

    fn is_in_memory(&self) -> bool {
        let name = self.path.as_os_str().as_bytes();
        MEMORY.iter().any(|folder| name.starts_with(folder.as_bytes()))
    }

    fn write(&mut self, text: &str) {
        self.written = Instant::now();
        match file::replace(&self.path, text) {
            Ok(()) => (self.news, self.told) = (false, false),
            Err(error) => {
                if !std::mem::replace(&mut self.told, true) {
                    log::warn!(
                        "option 'benefit': {} cannot be written: {error}; the {} is kept in memory \
                         until the daemon ends",
                        self.path.display(),
                        self.what
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

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> (Kept, Option<u32>) {
        Kept::open(path, "number", |text| text.parse().ok())
    }

    #[test]
    fn a_file_in_memory_is_written_at_the_end_and_one_on_flash_is_spared() {
        let folder = std::env::temp_dir().join(format!("pemi-kept-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("kept");
        let seven = || "7".to_string();
        let (mut kept, found) = open(&path);
        assert_eq!(found, None);
        kept.close(seven);
        assert!(!path.exists(), "nothing is new");
        kept.changed();
        kept.keep(seven);
        assert!(!path.exists(), "it is too early");
        kept.close(seven);
        assert_eq!(open(&path).1, Some(7));
        let (mut spared, _) = open(Path::new("/etc/pemi-is-not-here/kept"));
        spared.changed();
        spared.close(seven);
        assert!(!spared.told, "it was not tried");
        fs::write(&path, "nonsense").unwrap();
        assert_eq!(open(&path).1, None);
        fs::write(&path, vec![b'7'; LONGEST as usize + 1]).unwrap();
        assert_eq!(open(&path).1, None);
        fs::remove_dir_all(&folder).unwrap();
        kept.changed();
        kept.close(seven);
        assert!(kept.news && kept.told, "there is no folder any more");
    }
}
