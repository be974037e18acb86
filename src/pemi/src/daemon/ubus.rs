// SPDX-License-Identifier: GPL-2.0-or-later
//! The object `pemi` on ubus, spoken without libubus.
//!
//! Its connection never blocks, and whoever drives it calls [`Ubus::serve`]
//! when it is ready and [`Ubus::tick`] each second.

use std::path::{Path, PathBuf};

use pemi_ubus::blobmsg::Kind;
use pemi_ubus::link::{Link, Trouble};
use pemi_ubus::message::Methods;
use pemi_ubus::owner::Object;
use pemi_ubus::status::meaning;
use serde_json::{Map, Value};

use crate::daemon::request::{Answer, Data, Request};
use crate::sys::poll::Interest;
use crate::sys::socket;

/// Name of the object.
pub const OBJECT: &str = "pemi";
/// What it can be asked for.
pub const METHODS: &Methods = &[
    ("status", &[]),
    ("flows", &[("limit", Kind::Int32)]),
    ("clients", &[("limit", Kind::Int32), ("skip", Kind::Int32)]),
    ("benefit", &[]),
    ("history", &[("seconds", Kind::Int32), ("skip", Kind::Int32)]),
    ("trend", &[("span", Kind::String), ("limit", Kind::Int32), ("skip", Kind::Int32)]),
    ("reset", &[]),
    ("log", &[("level", Kind::String)]),
];

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
        self.link.as_ref().map(|link| match link.has_output() {
            true => Interest::write(link),
            false => Interest::read(link),
        })
    }

    /// Connects if there is no connection.
    pub fn tick(&mut self) {
        let (Some(path), None) = (&self.path, &self.link) else { return };
        match socket::connect(path) {
            Ok(stream) => {
                let object = Object { name: OBJECT, methods: METHODS };
                self.link = Some(Link::new(stream, object));
            }
            Err(error) => self.lost(Trouble::Away(error)),
        }
    }

    /// Does what can be done without waiting; `answer` gives the data for a
    /// request.
    pub fn serve(&mut self, mut answer: impl FnMut(Request) -> Answer) {
        let Some(link) = &mut self.link else { return };
        match link.serve(|method, arguments| answered(method, arguments, &mut answer)) {
            Ok(()) if link.is_published() => {
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

/// Asks for the answer to a call.
pub fn answered(
    method: &str,
    arguments: Map<String, Value>,
    answer: &mut impl FnMut(Request) -> Answer,
) -> Result<Value, u32> {
    let answer = Request::new(method, &arguments.into()).and_then(answer);
    answer.map(Data::tree).map_err(|(status, error)| {
        // There is room for the number only in the answer.
        log::debug!("ubus: {error}");
        status
    })
}

/// What the log says already. It gets one line when the object goes or when another reason
/// keeps it away, and one line when the object is there.
#[derive(Debug, Default)]
struct Told {
    published: bool,
    trouble: Option<std::mem::Discriminant<Trouble>>,
}

impl Told {
    fn published(&mut self) -> Option<String> {
        self.trouble = None;
        let news = !std::mem::replace(&mut self.published, true);
        news.then(|| format!("ubus object {} published", OBJECT))
    }

    fn lost(&mut self, path: &Path, trouble: &Trouble) -> Option<String> {
        self.published = false;
        let kind = Some(std::mem::discriminant(trouble));
        if std::mem::replace(&mut self.trouble, kind) == kind {
            return None;
        }
        let what = match trouble {
            Trouble::Away(error) => format!("is ubusd running? {error}"),
            Trouble::Unwelcome => "ubusd closes the connection: this process's user and group \
                 need names in /etc/passwd and /etc/group"
                .into(),
            Trouble::Nonsense => "what answers is not ubusd".into(),
            Trouble::Refused(status) => format!(
                "object {} is refused ({}): another process has it (another pemi?), or this user must \
                 not publish it: check /usr/share/acl.d/pemi.json, then killall -HUP ubusd",
                OBJECT,
                meaning(*status)
            ),
        };
        Some(format!("ubus: {}: {what}; trying again each second", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use std::io;

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
