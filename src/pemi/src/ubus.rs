//! The object `pemi` on ubus, spoken without libubus.
//!
//! Its connection never blocks, and whoever drives it calls [`Ubus::serve`]
//! when it is ready and [`Ubus::tick`] each second.

pub mod blob;
pub mod blobmsg;
pub mod caller;
pub mod message;
pub mod owner;

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::poll::Interest;
use crate::request::{Answer, Request};
use crate::socket;
use owner::{Failure, Owner};

/// Bytes read at a time. The rest waits for the next turn, so that callers in a
/// hurry leave time for everything else.
const CHUNK: usize = 4096;

/// The name of a status.
pub fn meaning(status: u32) -> &'static str {
    match status {
        0 => "ok",
        1 => "invalid command",
        2 => "invalid argument",
        3 => "method not found",
        4 => "not found",
        5 => "no data",
        6 => "permission denied",
        7 => "timeout",
        8 => "not supported",
        _ => "unknown error",
    }
}

/// The connection to ubusd, made again whenever it is lost.
#[derive(Debug)]
pub struct Ubus {
    path: Option<PathBuf>,
    link: Option<Link>,
    told: Told,
}

impl Ubus {
    /// For ubusd's socket at `path`, if there is to be one.
    pub fn new(path: Option<&Path>) -> Ubus {
        Ubus { path: path.map(Path::to_path_buf), link: None, told: Told::default() }
    }

    /// What to wait for.
    pub fn interest(&self) -> Option<Interest> {
        self.link.as_ref().map(Link::interest)
    }

    /// Connects if there is no connection.
    pub fn tick(&mut self) {
        let (Some(path), None) = (&self.path, &self.link) else { return };
        match socket::connect(path) {
            Ok(stream) => self.link = Some(Link { stream, owner: Owner::new() }),
            Err(error) => self.lost(Trouble::Away(error)),
        }
    }

    /// Does what can be done without waiting; `answer` gives the data for a
    /// request.
    pub fn serve(&mut self, answer: impl FnMut(Request) -> Answer) {
        let Some(link) = &mut self.link else { return };
        match link.serve(answer) {
            Ok(()) if link.owner.is_published() => {
                if let Some(line) = self.told.published() {
                    log::info!("{line}");
                }
            }
            Ok(()) => {}
            Err(trouble) => self.lost(trouble),
        }
    }

    fn lost(&mut self, trouble: Trouble) {
        self.link = None;
        let path = self.path.as_deref().unwrap_or(Path::new(""));
        if let Some(line) = self.told.lost(path, &trouble) {
            log::warn!("{line}");
        }
    }
}

#[derive(Debug)]
struct Link {
    stream: UnixStream,
    owner: Owner,
}

impl Link {
    /// Calls wait while an answer does: ubusd keeps them.
    fn interest(&self) -> Interest {
        if self.owner.output().is_empty() {
            Interest::read(&self.stream)
        } else {
            Interest::write(&self.stream)
        }
    }

    fn serve(&mut self, mut answer: impl FnMut(Request) -> Answer) -> Result<(), Trouble> {
        let mut fresh = true;
        loop {
            while !self.owner.output().is_empty() {
                match again(|| self.stream.write(self.owner.output())) {
                    Ok(Some(len)) => self.owner.sent(len),
                    Ok(None) => return Ok(()),
                    Err(error) => return Err(self.broken(error)),
                }
            }
            self.owner.advance(&mut answer)?;
            if !self.owner.output().is_empty() {
                continue;
            }
            if !std::mem::take(&mut fresh) {
                return Ok(());
            }
            let mut chunk = [0; CHUNK];
            match again(|| self.stream.read(&mut chunk)) {
                Ok(Some(0)) => return Err(self.broken(io::ErrorKind::UnexpectedEof.into())),
                Ok(Some(len)) => self.owner.receive(&chunk[..len]),
                Ok(None) => return Ok(()),
                Err(error) => return Err(self.broken(error)),
            }
        }
    }

    fn broken(&self, error: io::Error) -> Trouble {
        if self.owner.is_welcome() { Trouble::Away(error) } else { Trouble::Unwelcome }
    }
}

/// `None` if it would have to wait.
fn again(mut attempt: impl FnMut() -> io::Result<usize>) -> io::Result<Option<usize>> {
    loop {
        match attempt() {
            Ok(len) => return Ok(Some(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Why the object is not on ubus.
#[derive(Debug)]
enum Trouble {
    /// ubusd is not there.
    Away(io::Error),
    /// It does not talk to us.
    Unwelcome,
    /// It talks, but not as expected.
    Nonsense,
    /// It does not want the object.
    Refused(u32),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Trouble {
        match failure {
            Failure::Refused(status) => Trouble::Refused(status),
            Failure::Nonsense => Trouble::Nonsense,
        }
    }
}

/// What the log says already: one line when the object goes or another reason
/// keeps it away, one when it is there.
#[derive(Debug, Default)]
struct Told {
    published: bool,
    trouble: Option<std::mem::Discriminant<Trouble>>,
}

impl Told {
    fn published(&mut self) -> Option<String> {
        self.trouble = None;
        let news = !std::mem::replace(&mut self.published, true);
        news.then(|| format!("ubus object {} published", owner::OBJECT))
    }

    fn lost(&mut self, path: &Path, trouble: &Trouble) -> Option<String> {
        self.published = false;
        let kind = Some(std::mem::discriminant(trouble));
        if std::mem::replace(&mut self.trouble, kind) == kind {
            return None;
        }
        let what = match trouble {
            Trouble::Away(error) => format!("is ubusd running? {error}"),
            Trouble::Unwelcome => "ubusd closes the connection at once: the user and the group of \
                 this process need names in /etc/passwd and /etc/group"
                .into(),
            Trouble::Nonsense => "what answers there does not speak like ubusd".into(),
            Trouble::Refused(status) => format!(
                "object {} is refused ({}): either another process has it (is another pemi \
                 running?) or this user must not publish it: check /usr/share/acl.d/pemi.json, \
                 then killall -HUP ubusd",
                owner::OBJECT,
                meaning(*status)
            ),
        };
        Some(format!("ubus: {}: {what}; trying again each second", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_when_it_goes_and_one_when_it_is_back() {
        let path = Path::new("/run/u.sock");
        let mut told = Told::default();
        let away = |kind: io::ErrorKind| Trouble::Away(kind.into());
        let line = told.lost(path, &away(io::ErrorKind::NotFound)).unwrap();
        assert!(line.contains("/run/u.sock") && line.contains("is ubusd running?"), "{line}");
        assert_eq!(told.lost(path, &away(io::ErrorKind::NotFound)), None);
        assert!(told.published().is_some());
        assert_eq!(told.published(), None);
        assert!(told.lost(path, &away(io::ErrorKind::UnexpectedEof)).is_some());
        assert_eq!(told.lost(path, &away(io::ErrorKind::ConnectionRefused)), None);
        let line = told.lost(path, &Trouble::Refused(2)).unwrap();
        assert!(line.contains("killall -HUP ubusd") && line.contains("invalid argument"), "{line}");
        assert_eq!(told.lost(path, &Trouble::Refused(2)), None);
        assert!(told.lost(path, &Trouble::Unwelcome).unwrap().contains("/etc/passwd"));
        assert!(told.published().is_some());
    }
}
