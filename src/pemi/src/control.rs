//! The control socket: one JSON request a line, one JSON answer a line.
//!
//! It is served beside the packet path by a thread of normal priority; whoever
//! is slow here holds up nobody but other askers, and those for a second.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use pemi_engine::Nanos;
use serde_json::{Value, json};

use crate::poll::{self, Interest};
use crate::request::{Answer, INVALID_ARGUMENT, OK, Request};
use crate::sched;

/// Askers at a time.
const MAX_CLIENTS: usize = 16;
/// Bytes of a request line.
const MAX_LINE: usize = 4096;
/// An asker that says nothing for this long is sent away.
const SILENCE: Duration = Duration::from_secs(30);
/// For an answer to be taken.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reads a request line; on error the code and what is wrong.
fn request(line: &[u8]) -> Result<Request, (u32, String)> {
    let invalid = |what: String| (INVALID_ARGUMENT, what);
    let value: Value =
        serde_json::from_slice(line).map_err(|e| invalid(format!("not JSON: {e}")))?;
    let method = value["method"].as_str().ok_or_else(|| invalid("method is missing".into()))?;
    Request::new(method, &value)
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    line: Vec<u8>,
    last: Instant,
}

/// The listening socket and who is connected.
#[derive(Debug)]
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
}

impl Control {
    /// Listens at `path`, for the owner only. A socket that a dead process left
    /// there is replaced, one that answers is not.
    pub fn open(path: &Path) -> io::Result<Control> {
        if let Some(parent) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(parent)?;
        }
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
        Ok(Control { listener, path: path.into(), clients: Vec::new() })
    }

    /// What to wait for.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.listener.as_fd()).chain(self.clients.iter().map(|c| c.stream.as_fd()))
    }

    /// Serves whoever has something to say; `answer` gives the data for a
    /// request.
    pub fn serve(&mut self, mut answer: impl FnMut(Request) -> Answer) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() < MAX_CLIENTS && stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client { stream, line: Vec::new(), last: Instant::now() });
            }
        }
        self.clients.retain_mut(|client| {
            client.last.elapsed() < SILENCE && client.serve(&mut answer).is_ok()
        });
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Gone already is fine.
        let _ = fs::remove_file(&self.path);
    }
}

impl Client {
    /// An error ends the connection.
    fn serve(&mut self, answer: &mut impl FnMut(Request) -> Answer) -> io::Result<()> {
        let mut chunk = [0; 1024];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.line.extend(&chunk[..len]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            self.last = Instant::now();
            while let Some(end) = self.line.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.line.drain(..=end).collect();
                let reply = match request(&line).and_then(&mut *answer) {
                    Ok(data) => json!({"status": OK, "data": data}),
                    Err((status, error)) => json!({"status": status, "error": error}),
                };
                self.write(format!("{reply}\n").as_bytes())?;
            }
            if self.line.len() > MAX_LINE {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }

    /// The others wait meanwhile, so whoever reads slowly is sent away.
    fn write(&mut self, mut data: &[u8]) -> io::Result<()> {
        let start = Instant::now();
        while !data.is_empty() {
            match self.stream.write(data) {
                Ok(len) => data = &data[len..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let left = PATIENCE.saturating_sub(start.elapsed());
                    if left.is_zero() {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                    let mut interest = [Interest::write(&self.stream)];
                    poll::wait(&mut interest, Some(left.as_nanos() as Nanos))?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
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
    use super::*;
    use crate::request::METHOD_NOT_FOUND;
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
            let mut interests: Vec<Interest> =
                control.descriptors().map(|fd| Interest::read(&fd)).collect();
            poll::wait(&mut interests, None).unwrap();
            control.serve(|request| match request {
                Request::Status => Ok(json!({"big": "x".repeat(1 << 20)})),
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
