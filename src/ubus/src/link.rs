// SPDX-License-Identifier: GPL-2.0-or-later
//! The connection of an owner: what its [`Owner`] says and hears, over a stream.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use serde_json::{Map, Value};

use super::owner::{Answer, Failure, Object, Owner};

/// Bytes read at a time. The rest waits for the next turn, so that callers in a
/// hurry leave time for everything else.
const CHUNK: usize = 4096;

/// A connection that is being served. Its stream is either non-blocking, and somebody
/// waits for it to be ready, or it blocks, and [`Link::serve`] waits for the next call.
#[derive(Debug)]
pub struct Link {
    stream: UnixStream,
    owner: Owner,
}

impl Link {
    /// For a new connection to ubusd, on which `object` is to be published.
    pub fn new(stream: UnixStream, object: Object) -> Link {
        Link { stream, owner: Owner::new(object) }
    }

    /// Whether it waits for ubusd to take something, rather than for what comes. Calls wait
    /// while an answer does: ubusd keeps them.
    pub fn has_output(&self) -> bool {
        !self.owner.output().is_empty()
    }

    /// Whether the object can be called.
    pub fn is_published(&self) -> bool {
        self.owner.is_published()
    }

    /// Reads once, and does what can be done without waiting more. `answer` is given the name
    /// of a method and its arguments; see [`Owner::advance`].
    pub fn serve(
        &mut self,
        mut answer: impl FnMut(&str, Map<String, Value>) -> Answer,
    ) -> Result<(), Trouble> {
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

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
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
pub enum Trouble {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const OBJECT: Object = Object { name: "o", methods: &[("m", &[])] };
    const HELLO: &[u8] = b"\0\0\0\0\0\0\0\x07\0\0\0\x04";

    fn pair() -> (UnixStream, Link) {
        let (ubusd, stream) = UnixStream::pair().unwrap();
        stream.set_nonblocking(true).unwrap();
        (ubusd, Link::new(stream, OBJECT))
    }

    #[test]
    fn it_says_what_its_owner_says_and_never_waits() {
        let (mut ubusd, mut link) = pair();
        let answer = |_: &str, _| Ok(json!({}));
        link.serve(answer).unwrap();
        ubusd.write_all(HELLO).unwrap();
        link.serve(answer).unwrap();
        assert!(!link.has_output() && !link.is_published());
        let mut said = [0; 1024];
        let len = ubusd.read(&mut said).unwrap();
        assert_eq!(said[..len], crate::message::add_object(1, "o", OBJECT.methods));
        drop(ubusd);
        assert!(matches!(link.serve(answer), Err(Trouble::Away(_))));
    }

    #[test]
    fn why_a_connection_ended_before_it_began() {
        let answer = |_: &str, _| Ok(json!({}));
        let (ubusd, mut link) = pair();
        drop(ubusd);
        assert!(matches!(link.serve(answer), Err(Trouble::Unwelcome)));
        let (mut ubusd, mut link) = pair();
        ubusd.write_all(b"HTTP/1.1 400 Bad Request").unwrap();
        assert!(matches!(link.serve(answer), Err(Trouble::Nonsense)));
    }
}
