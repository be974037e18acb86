// SPDX-License-Identifier: GPL-2.0-or-later
//! A file that is there as a whole or not at all, and the folders above it.

use std::ffi::{CString, OsStr};
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Puts a file with this text into the place of the one at `path`, which is absolute. If that fails the
/// old one stays. If the power goes meanwhile one of them is there, whole: what is in the new one is on the
/// disk before its name is, and both are when this is over.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = Path::new(&name);
    let written = fs::File::create(new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let replaced = written.and_then(|()| rename(new, path)).and_then(|()| keep_names(path));
    if replaced.is_err() {
        // It may be half a file on a full disk.
        let _ = fs::remove_file(new);
    }
    replaced
}

/// Has the names in this file's folder on the disk.
fn keep_names(file: &Path) -> io::Result<()> {
    let name = file.as_os_str().as_bytes();
    let end = name.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    fs::File::open(OsStr::from_bytes(&name[..end]))?.sync_all()
}

/// Makes the folders that a file is to be in, as far as they are not there. (What the standard
/// library knows of the parts of a path is 3 KB of code on MIPS.)
pub fn make_folders(file: &Path) -> io::Result<()> {
    let name = file.as_os_str().as_bytes();
    for end in (1..name.len()).filter(|end| name[*end] == b'/') {
        let folder = Path::new(OsStr::from_bytes(&name[..end]));
        match fs::DirBuilder::new().mode(0o755).create(folder) {
            Err(error) if !folder.is_dir() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The one call for it that every processor has; the standard library's depends on the processor,
/// and the filter of system calls would need all of them.
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let from = CString::new(from.as_os_str().as_bytes())?;
    let to = CString::new(to.as_os_str().as_bytes())?;
    let (here, flags) = (libc::AT_FDCWD, 0);
    // SAFETY: both strings end with a zero and live until the call is over.
    let done = unsafe {
        libc::syscall(libc::SYS_renameat2, here, from.as_ptr(), here, to.as_ptr(), flags)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn folders_are_made_as_far_as_they_are_not_there() {
        let folder = std::env::temp_dir().join(format!("pemi-folders-{}", std::process::id()));
        let path = folder.join("one/two/file");
        (0..2).for_each(|_| make_folders(&path).unwrap());
        assert!(folder.join("one/two").is_dir() && !path.exists());
        fs::write(&path, "").unwrap();
        assert!(make_folders(&path.join("below")).is_err());
        make_folders(Path::new("here")).unwrap();
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_old_one_stays_if_there_is_no_room_for_the_new_one() {
        let folder = std::env::temp_dir().join(format!("pemi-replace-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("kept");
        replace(&path, "one").unwrap();
        replace(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        // What is in the way of the new one is as bad as a full disk.
        fs::create_dir(folder.join("kept.new")).unwrap();
        assert!(replace(&path, "three").is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        fs::remove_dir(folder.join("kept.new")).unwrap();
        symlink("/dev/full", folder.join("kept.new")).unwrap();
        let error = replace(&path, "three").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing is left of it");
        replace(&path, "three").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three");
        fs::remove_dir_all(folder).unwrap();
    }
}
