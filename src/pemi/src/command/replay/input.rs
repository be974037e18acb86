// SPDX-License-Identifier: GPL-2.0-or-later
//! A capture file as a stream of bytes that knows where it is.

use std::fmt;
use std::io::{self, Read};

/// Why a capture cannot be read any further.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where in the file, in bytes.
    pub offset: u64,
    /// What is wrong there and what was expected.
    pub what: String,
}

impl Error {
    /// Something wrong at `offset`.
    pub fn new(offset: u64, what: impl Into<String>) -> Error {
        Error { offset, what: what.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {}: {}", self.offset, self.what)
    }
}

/// Reads forwards only, so that standard input will do. One buffer serves all
/// packets; nobody asks for more than [`MAX_PACKET`](super::packet::MAX_PACKET) at
/// a time, whatever a length field says.
#[derive(Debug)]
pub struct Input<R> {
    reader: R,
    offset: u64,
    bytes: Vec<u8>,
}

impl<R: Read> Input<R> {
    /// From the beginning.
    pub fn new(reader: R) -> Input<R> {
        Input { reader, offset: 0, bytes: Vec::new() }
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// What the last [`Input::fill`] has read.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads `len` bytes into the buffer; `what` is what they are.
    pub fn fill(&mut self, len: usize, what: &str) -> Result<(), Error> {
        self.bytes.resize(len, 0);
        let got = read(&mut self.reader, self.offset, &mut self.bytes)?;
        self.advance(got as u64, len as u64, what)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        let got = read(&mut self.reader, self.offset, &mut bytes)?;
        self.advance(got as u64, N as u64, what)?;
        Ok(bytes)
    }

    /// The next `N` bytes; `None` if the file ends here.
    pub fn array_or_end<const N: usize>(&mut self, what: &str) -> Result<Option<[u8; N]>, Error> {
        let mut bytes = [0; N];
        let got = read(&mut self.reader, self.offset, &mut bytes)?;
        if got == 0 {
            return Ok(None);
        }
        self.advance(got as u64, N as u64, what)?;
        Ok(Some(bytes))
    }

    /// Passes over `len` bytes.
    pub fn skip(&mut self, len: u64, what: &str) -> Result<(), Error> {
        let mut piece = [0; 512];
        let mut got = 0;
        while got < len {
            let wanted = (len - got).min(piece.len() as u64) as usize;
            let more = read(&mut self.reader, self.offset + got, &mut piece[..wanted])?;
            got += more as u64;
            if more < wanted {
                break;
            }
        }
        self.advance(got, len, what)
    }

    fn advance(&mut self, got: u64, wanted: u64, what: &str) -> Result<(), Error> {
        if got != wanted {
            let what = format!("the file ends within {what}: {wanted} bytes expected, {got} there");
            return Err(Error::new(self.offset, what));
        }
        self.offset += got;
        Ok(())
    }
}

/// Unlike `read_exact` it gives how much there was.
fn read(reader: &mut impl Read, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
    let mut got = 0;
    while got < into.len() {
        match reader.read(&mut into[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(offset + got as u64, &error)),
        }
    }
    Ok(got)
}

fn unreadable(offset: u64, error: &io::Error) -> Error {
    Error::new(offset, format!("cannot be read: {error}"))
}

/// The byte order of a capture's own fields: that of the machine which wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Least significant byte first.
    Little,
    /// Most significant byte first, as on most MIPS routers.
    Big,
}

impl Order {
    /// The two bytes at `at`; 0 beyond the end.
    pub fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let field = field(bytes, at);
        if self == Order::Big { u16::from_be_bytes(field) } else { u16::from_le_bytes(field) }
    }

    /// The four bytes at `at`; 0 beyond the end.
    pub fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let field = field(bytes, at);
        if self == Order::Big { u32::from_be_bytes(field) } else { u32::from_le_bytes(field) }
    }

    /// The eight bytes at `at`; 0 beyond the end.
    pub fn i64(self, bytes: &[u8], at: usize) -> i64 {
        let field = field(bytes, at);
        if self == Order::Big { i64::from_be_bytes(field) } else { i64::from_le_bytes(field) }
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).copied().unwrap_or([0; N])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_end_says_where_and_what() {
        let mut input = Input::new(&b"0123456789"[..]);
        assert_eq!(input.array(""), Ok(*b"0123"));
        input.skip(2, "").unwrap();
        assert_eq!(input.offset(), 6);
        let error = input.fill(7, "a thing").unwrap_err();
        assert_eq!(
            error.to_string(),
            "offset 6: the file ends within a thing: 7 bytes expected, 4 there"
        );
        let mut input = Input::new(&b"0123"[..]);
        assert!(input.skip(u64::MAX, "a block").unwrap_err().what.contains("4 there"));
        assert_eq!(input.array_or_end::<4>(""), Ok(None));
    }

    #[test]
    fn both_byte_orders() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!((Order::Big.u16(&bytes, 1), Order::Little.u16(&bytes, 1)), (0x0203, 0x0302));
        assert_eq!(Order::Big.u32(&bytes, 4), 0x0506_0708);
        assert_eq!(Order::Little.i64(&bytes, 0), 0x0807_0605_0403_0201);
        assert_eq!(Order::Little.u32(&bytes, 5), 0);
    }
}
