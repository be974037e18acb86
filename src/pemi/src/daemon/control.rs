// SPDX-License-Identifier: GPL-2.0-or-later
//! The control socket: one JSON request a line, one JSON answer a line.
//!
//! It is served beside the packet path by the thread that takes signals, so nothing here
//! waits and nothing goes on for long: those who ask take turns, a request each, and a slow
//! one holds up nobody.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::daemon::object::object;
use crate::daemon::request::{Answer, INVALID_ARGUMENT, OK, Request};
use crate::sys::poll::Interest;
use crate::sys::{file, sched};

/// Connections at a time.
const MAX_CLIENTS: usize = 16;
/// Bytes of a request line.
const MAX_LINE: usize = 4096;
/// A connection on which nothing comes for this long is closed.
const SILENCE: Duration = Duration::from_secs(30);
/// The time within which an answer has to be taken. The next request of the same
/// connection waits until then.
const PATIENCE: Duration = Duration::from_secs(1);
/// After this time signals and everything else have their turn.
const TURN: Duration = Duration::from_millis(50);

/// Reads a request line; on error the code and what is wrong.
pub fn request(line: &[u8]) -> Result<Request, (u32, String)> {
    let invalid = |what: String| (INVALID_ARGUMENT, what);
    let value: Value =
        serde_json::from_slice(line).map_err(|e| invalid(format!("not JSON: {e}")))?;
    let method = value["method"].as_str().ok_or_else(|| invalid("method is missing".into()))?;
    Request::new(method, &value)
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    sent: usize,
    /// When it said something last, or was given an answer.
    last: Instant,
}

/// The listening socket and its connections.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
    /// Whose turn is next comes first.
    clients: VecDeque<Client>,
}

impl Control {
    /// Listens at `path`, for the owner only. A socket that a dead process left
    /// there is replaced, one that answers is not.
    pub fn open(path: &Path) -> io::Result<Control> {
        file::make_folders(path)?;
        if UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another pemi answers there"));
        }
        match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "is there, and no socket",
                ));
            }
            Err(_) => {}
        }
        let listener = {
            // The mask is one for all threads.
            static MASK: Mutex<()> = Mutex::new(());
            let _alone = MASK.lock();
            let mask = sched::set_umask(0o177);
            let listener = UnixListener::bind(path);
            sched::set_umask(mask);
            listener?
        };
        listener.set_nonblocking(true)?;
        Ok(Control { listener, path: path.into(), clients: VecDeque::new() })
    }

    /// What to wait for.
    pub fn interests(&self) -> impl Iterator<Item = Interest> {
        let listener = std::iter::once(Interest::read(&self.listener));
        listener.chain(self.clients.iter().map(Client::interest))
    }

    /// Whether a request has been read that still waits for its turn.
    pub fn is_pending(&self) -> bool {
        self.clients.iter().any(Client::is_pending)
    }

    /// Serves whoever has something to say, one request of each; `answer` gives the data
    /// for a request.
    pub fn serve(&mut self, mut answer: impl FnMut(Request) -> Answer) {
        for _ in 0..MAX_CLIENTS {
            let Ok((stream, _)) = self.listener.accept() else { break };
            if self.clients.len() < MAX_CLIENTS && stream.set_nonblocking(true).is_ok() {
                self.clients.push_back(Client::new(stream));
            }
        }
        let start = Instant::now();
        for _ in 0..self.clients.len() {
            let Some(mut client) = self.clients.pop_front() else { break };
            if client.serve(&mut answer).is_ok() {
                self.clients.push_back(client);
            }
            if start.elapsed() >= TURN {
                break;
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Gone already is fine.
        let _ = fs::remove_file(&self.path);
    }
}

impl Client {
    fn new(stream: UnixStream) -> Client {
        let last = Instant::now();
        Client { stream, input: Vec::new(), output: Vec::new(), sent: 0, last }
    }

    fn interest(&self) -> Interest {
        if self.output.is_empty() {
            Interest::read(&self.stream)
        } else {
            Interest::write(&self.stream)
        }
    }

    fn is_pending(&self) -> bool {
        self.output.is_empty() && self.input.contains(&b'\n')
    }

    /// An error ends the connection.
    fn serve(&mut self, answer: &mut impl FnMut(Request) -> Answer) -> io::Result<()> {
        self.write()?;
        if !self.output.is_empty() {
            return Ok(());
        }
        if !self.is_pending() {
            self.read()?;
        }
        if let Some(end) = self.input.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.input.drain(..=end).collect();
            let reply = match request(&line).and_then(answer) {
                Ok(data) => format!("{{\"data\":{data},\"status\":{OK}}}\n"),
                Err((status, error)) => {
                    let answer = object(vec![("status", status.into()), ("error", error.into())]);
                    format!("{answer}\n")
                }
            };
            self.output = reply.into_bytes();
            self.last = Instant::now();
            return self.write();
        }
        if self.input.len() > MAX_LINE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(())
    }

    /// Takes what has come, as far as it is needed to go on.
    fn read(&mut self) -> io::Result<()> {
        let mut chunk = [0; 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => {
                self.input.extend(&chunk[..len]);
                self.last = Instant::now();
                Ok(())
            }
            Err(error) if is_passing(&error) && self.last.elapsed() < SILENCE => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Hands over as much of the answer as there is room for.
    fn write(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(len) => self.sent += len,
                Err(error) if is_passing(&error) && self.last.elapsed() < PATIENCE => return Ok(()),
                Err(error) => return Err(error),
            }
            if self.sent == self.output.len() {
                // A large answer's memory is not kept.
                (self.output, self.sent) = (Vec::new(), 0);
            }
        }
        Ok(())
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Asks the daemon at `path`.
pub fn ask(path: &Path, request: &Value) -> Result<Value, String> {
    let stream = UnixStream::connect(path).map_err(|e| {
        format!("{}: {e}; is the pemi service running? (service pemi status)", path.display())
    })?;
    ask_on(stream, path, request)
}

/// Asks the daemon at the other end, which is that of `path`.
pub fn ask_on(mut stream: UnixStream, path: &Path, request: &Value) -> Result<Value, String> {
    let failed = |what: &str, error: io::Error| format!("{}: {what}: {error}", path.display());
    let patience = Some(Duration::from_secs(5));
    stream.set_read_timeout(patience).map_err(|e| failed("set-up", e))?;
    stream.set_write_timeout(patience).map_err(|e| failed("set-up", e))?;
    stream.write_all(format!("{request}\n").as_bytes()).map_err(|e| failed("asking", e))?;
    let mut reply = Vec::new();
    let mut chunk = [0; 4096];
    while !reply.ends_with(b"\n") {
        match stream.read(&mut chunk).map_err(|e| failed("no answer", e))? {
            0 => return Err(format!("{}: the connection was closed", path.display())),
            len => reply.extend(&chunk[..len]),
        }
    }
    let reply: Value =
        serde_json::from_slice(&reply).map_err(|e| format!("answer is not JSON: {e}"))?;
    match reply["status"].as_u64() {
        Some(0) => Ok(reply["data"].clone()),
        _ => Err(format!(
            "the daemon refused: {}",
            reply["error"].as_str().unwrap_or("unknown error")
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::daemon::request::METHOD_NOT_FOUND;
    use crate::sys::poll;
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::PermissionsExt;
    use std::thread;

    #[test]
    fn requests() {
        assert_eq!(request(br#"{"method":"status"}"#), Ok(Request::Status));
        assert_eq!(request(br#"{"method":"flows","limit":5}"#), Ok(Request::Flows { limit: 5 }));
        for (line, code, part) in [
            ("{", INVALID_ARGUMENT, "not JSON"),
            ("{}", INVALID_ARGUMENT, "method is missing"),
            (r#"{"method":"flows","limit":0}"#, INVALID_ARGUMENT, "1 to 1000"),
            (r#"{"method":"reboot"}"#, METHOD_NOT_FOUND, "'reboot'"),
        ] {
            let (got, text) = request(line.as_bytes()).unwrap_err();
            assert_eq!(got, code, "{line}");
            assert!(text.contains(part), "{line}: {text}");
        }
    }

    /// A folder of its own, gone with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            Folder(std::env::temp_dir().join(format!("pemi-test-{}-{name}", std::process::id())))
        }

        fn socket(&self) -> PathBuf {
            self.0.join("control.sock")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Serves until one whole connection has come and gone.
    fn serve(mut control: Control) {
        let mut seen = false;
        while !seen || !control.clients.is_empty() {
            let mut interests: Vec<Interest> = control.interests().collect();
            let timeout = control.is_pending().then_some(0);
            poll::wait(&mut interests, timeout).unwrap();
            control.serve(|request| match request {
                Request::Status => Ok(json!({"big": "x".repeat(1 << 20)}).into()),
                _ => Err((INVALID_ARGUMENT, "no".into())),
            });
            seen |= !control.clients.is_empty();
        }
    }

    #[test]
    fn asks_and_answers() {
        let folder = Folder::new("ask");
        let path = folder.socket();
        let server = thread::spawn({
            let control = Control::open(&path).unwrap();
            move || serve(control)
        });
        let stream = UnixStream::connect(&path).unwrap();
        let answer = ask(&path, &json!({"method": "status"})).unwrap();
        assert_eq!(answer["big"].as_str().unwrap().len(), 1 << 20);
        assert!(ask(&path, &json!({"method": "reset"})).unwrap_err().contains("refused"));
        // Two requests in one write, one of them broken.
        (&stream).write_all(b"nonsense\n{\"method\":\"reboot\"}\n").unwrap();
        let mut lines = BufReader::new(&stream).lines();
        assert!(lines.next().unwrap().unwrap().contains("\"status\":2"));
        assert!(lines.next().unwrap().unwrap().contains("\"status\":3"));
        drop(lines);
        drop(stream);
        server.join().unwrap();
        assert!(!path.exists(), "the socket goes with the daemon");
        assert!(ask(&path, &json!({})).unwrap_err().contains("is the pemi service running?"));
    }

    #[test]
    fn askers_take_turns_and_who_takes_no_answer_holds_up_nobody() {
        let folder = Folder::new("turns");
        let path = folder.socket();
        let mut control = Control::open(&path).unwrap();
        // One has asked a hundred times, another one takes nothing, the third asks once.
        let streams = [(); 3].map(|()| UnixStream::connect(&path).unwrap());
        for (mut stream, times) in streams.iter().zip([100, 100, 1]) {
            stream.write_all("{\"method\":\"status\"}\n".repeat(times).as_bytes()).unwrap();
        }
        let mut asked = 0;
        let start = Instant::now();
        for _ in 0..6 {
            control.serve(|_| {
                asked += 1;
                Ok(json!({"big": "x".repeat(1 << 20)}).into())
            });
        }
        assert_eq!(asked, 3, "none has room for a whole answer");
        assert!(start.elapsed() < PATIENCE);
        let mut taker = BufReader::new(&streams[2]);
        taker.get_ref().set_nonblocking(true).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\n") {
            control.serve(|_| panic!("all others wait for their answers to be taken"));
            let _ = taker.read_until(b'\n', &mut answer);
        }
        assert!(answer.len() > 1 << 20);

        // With short answers it is one each.
        let streams = [(); 3].map(|()| UnixStream::connect(&path).unwrap());
        control.clients.clear();
        for (mut stream, times) in streams.iter().zip([100, 100, 1]) {
            stream.write_all("{\"method\":\"reset\"}\n".repeat(times).as_bytes()).unwrap();
        }
        let mut asked = 0;
        for turn in 1..=3 {
            control.serve(|_| {
                asked += 1;
                Ok(json!({}).into())
            });
            assert!(asked <= 3 * turn && control.is_pending(), "{asked} in turn {turn}");
        }
        streams[2].set_nonblocking(true).unwrap();
        assert!((&streams[2]).read(&mut [0; 8]).is_ok(), "no answer in three turns");
    }

    #[test]
    fn a_stale_socket_is_replaced_a_live_one_is_not() {
        let folder = Folder::new("stale");
        let path = folder.socket();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let control = Control::open(&path).unwrap();
        assert_eq!(Control::open(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(control);
        fs::write(&path, "precious").unwrap();
        assert_eq!(Control::open(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn the_socket_is_for_the_owner_only() {
        let folder = Folder::new("mode");
        let path = folder.socket();
        let _control = Control::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
