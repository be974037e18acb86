// SPDX-License-Identifier: GPL-2.0-or-later
//! Another program, beside this one or in its place. The standard library can do more of this
//! than is needed here, and is 27 KB of code on MIPS.

use std::env;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::ptr;

/// Where what a program prints goes to that nobody reads.
const NOWHERE: &CStr = c"/dev/null";

/// A program that was started. Whoever drops it does not wait for it.
#[derive(Debug)]
pub struct Child {
    process: libc::pid_t,
    /// Whether it has succeeded, once it has ended: then its number may be another's.
    ended: Option<bool>,
}

/// Its ends of pipes: what it reads, and what it says on standard error.
#[derive(Debug)]
pub struct Pipes {
    pub stdin: File,
    pub stderr: File,
}

/// Starts a program with pipes for what it reads and complains of.
pub fn start(program: &Path, arguments: &[&str]) -> io::Result<(Child, Pipes)> {
    let words = [program.as_os_str()].into_iter().chain(arguments.iter().map(OsStr::new));
    let (words, environment) = (List::of(words.map(OsStr::to_os_string))?, environment(None)?);
    let (stdin, stdin_of_parent) = pipe()?;
    let (stderr_of_parent, stderr) = pipe()?;
    let plan = Plan::new(&stdin, &stderr)?;
    let mut process = 0;
    // SAFETY: the lists end in null pointers and live until the call is over, the plan too.
    succeeded(unsafe {
        libc::posix_spawn(
            &raw mut process,
            words.texts[0].as_ptr(),
            plan.actions.as_ptr(),
            plan.attributes.as_ptr(),
            words.pointers(),
            environment.pointers(),
        )
    })?;
    let pipes = Pipes { stdin: File::from(stdin_of_parent), stderr: File::from(stderr_of_parent) };
    Ok((Child { process, ended: None }, pipes))
}

impl Child {
    /// Whether it has succeeded, if it has ended; does not wait.
    pub fn result(&mut self) -> io::Result<Option<bool>> {
        if self.ended.is_none() {
            let mut status = 0;
            // SAFETY: the kernel writes one number.
            match unsafe { libc::waitpid(self.process, &raw mut status, libc::WNOHANG) } {
                0 => {}
                -1 => return Err(io::Error::last_os_error()),
                _ => self.ended = Some(status == 0),
            }
        }
        Ok(self.ended)
    }

    /// Ends it, unless it has ended.
    pub fn kill(&mut self) {
        if let Ok(None) = self.result() {
            // SAFETY: a plain call; the number is still this child's, as nobody has waited for it.
            unsafe { libc::kill(self.process, libc::SIGKILL) };
        }
    }
}

/// Runs a program in the place of this one, in the same environment and perhaps one thing more.
/// It comes back only if that fails, with the reason.
pub fn replace_by(words: Vec<OsString>, more: Option<(&str, &str)>) -> io::Error {
    let (words, environment) = match (List::of(words.into_iter()), environment(more)) {
        (Ok(words), Ok(environment)) if !words.texts.is_empty() => (words, environment),
        (Err(error), _) | (_, Err(error)) => return error,
        _ => return io::ErrorKind::InvalidInput.into(),
    };
    // SAFETY: lists of texts that end in null pointers and are not dropped before the call.
    unsafe {
        unblock();
        libc::execvpe(
            words.texts[0].as_ptr(),
            words.pointers().cast(),
            environment.pointers().cast(),
        );
    }
    io::Error::last_os_error()
}

/// Takes back what the standard library and we have changed of the process's signals: the next
/// program expects them as they are for any.
///
/// # Safety
///
/// The caller is about to become another program.
unsafe fn unblock() {
    let none = no_signals();
    // SAFETY: plain calls on a signal set that lives here.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

fn no_signals() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the call fills the whole set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// How a program is started: which descriptors it gets, and no signal blocked or ignored.
struct Plan {
    actions: Box<MaybeUninit<libc::posix_spawn_file_actions_t>>,
    attributes: Box<MaybeUninit<libc::posix_spawnattr_t>>,
}

impl Plan {
    fn new(stdin: &OwnedFd, stderr: &OwnedFd) -> io::Result<Plan> {
        let mut plan = Plan {
            actions: Box::new(MaybeUninit::zeroed()),
            attributes: Box::new(MaybeUninit::zeroed()),
        };
        let (actions, attributes) = (plan.actions.as_mut_ptr(), plan.attributes.as_mut_ptr());
        let none = no_signals();
        let mut pipe = none;
        let flags = libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK;
        // SAFETY: both are set up before they are used, stay where they are in their boxes, and
        // the descriptors are open.
        unsafe {
            libc::sigaddset(&raw mut pipe, libc::SIGPIPE);
            succeeded(libc::posix_spawn_file_actions_init(actions))?;
            succeeded(libc::posix_spawnattr_init(attributes))?;
            succeeded(libc::posix_spawn_file_actions_adddup2(actions, stdin.as_raw_fd(), 0))?;
            succeeded(libc::posix_spawn_file_actions_addopen(
                actions,
                1,
                NOWHERE.as_ptr(),
                libc::O_WRONLY,
                0,
            ))?;
            succeeded(libc::posix_spawn_file_actions_adddup2(actions, stderr.as_raw_fd(), 2))?;
            succeeded(libc::posix_spawnattr_setsigdefault(attributes, &raw const pipe))?;
            succeeded(libc::posix_spawnattr_setsigmask(attributes, &raw const none))?;
            // The flags fit: the call takes fewer bits than the constants have.
            succeeded(libc::posix_spawnattr_setflags(attributes, flags as libc::c_short))?;
        }
        Ok(plan)
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: all zero is what an empty one is, should setting up have failed.
        unsafe {
            libc::posix_spawn_file_actions_destroy(self.actions.as_mut_ptr());
            libc::posix_spawnattr_destroy(self.attributes.as_mut_ptr());
        }
    }
}

/// Texts as the kernel takes them: pointers to them, and a null pointer.
struct List {
    texts: Vec<CString>,
    ends: Vec<*mut libc::c_char>,
}

impl List {
    fn of(texts: impl Iterator<Item = OsString>) -> io::Result<List> {
        let texts: Result<Vec<_>, _> = texts.map(|text| CString::new(text.into_vec())).collect();
        let texts = texts.map_err(|_| io::ErrorKind::InvalidInput)?;
        let pointers = texts.iter().map(|text| text.as_ptr().cast_mut());
        let ends = pointers.chain([ptr::null_mut()]).collect();
        Ok(List { texts, ends })
    }

    fn pointers(&self) -> *const *mut libc::c_char {
        self.ends.as_ptr()
    }
}

/// The variables of this process, and one more or in another's place.
fn environment(more: Option<(&str, &str)>) -> io::Result<List> {
    let kept = env::vars_os().filter(|(name, _)| more.is_none_or(|(new, _)| name != new));
    let more = more.map(|(name, value)| (name.into(), value.into()));
    List::of(kept.chain(more).map(|(mut text, value): (OsString, OsString)| {
        text.push("=");
        text.push(value);
        text
    }))
}

/// The ends to read from and to write to; other programs do not get them.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two numbers.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: new descriptors that nobody else knows.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Of calls that return the error's number.
fn succeeded(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn wait(child: &mut Child) -> bool {
        loop {
            match child.result().unwrap() {
                Some(succeeded) => return succeeded,
                None => thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    #[test]
    fn a_program_reads_and_complains_and_its_result_is_kept() {
        let script = "read word; echo \"$word $0\" >&2; echo unseen; exit 3";
        let (mut child, mut pipes) = start(Path::new("/bin/sh"), &["-c", script, "name"]).unwrap();
        pipes.stdin.write_all(b"hello\n").unwrap();
        let mut said = String::new();
        pipes.stderr.read_to_string(&mut said).unwrap();
        assert_eq!(said, "hello name\n");
        assert!(!wait(&mut child));
        assert_eq!(child.result().unwrap(), Some(false), "asked again");
        child.kill();
    }

    #[test]
    fn it_gets_the_environment_and_no_blocked_signals() {
        let script = "test -n \"$PATH\" && grep -q '^SigBlk:\\s*0*$' /proc/self/status";
        let (mut child, _pipes) = start(Path::new("/bin/sh"), &["-c", script]).unwrap();
        assert!(wait(&mut child));
    }

    #[test]
    fn one_that_is_killed_has_not_succeeded() {
        let (mut child, _pipes) = start(Path::new("/bin/sleep"), &["60"]).unwrap();
        assert_eq!(child.result().unwrap(), None);
        child.kill();
        assert!(!wait(&mut child));
    }

    #[test]
    fn what_is_no_program_is_told() {
        let error = start(Path::new("/nonexistent/nft"), &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let error = start(Path::new("/bin/sh\0x"), &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let error = replace_by(vec!["/bin/sh\0x".into()], Some(("A", "b")));
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
