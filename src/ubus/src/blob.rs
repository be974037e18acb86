// SPDX-License-Identifier: GPL-2.0-or-later
//! Blobs, of which ubus messages are made: a word of flag, id and length, a
//! payload, zero bytes up to a multiple of four. Everything is big endian.

use std::borrow::Cow;
use std::fmt;

/// Set on what has a name.
const EXTENDED: u32 = 1 << 31;
/// The length counts the word itself, but not the zero bytes at the end.
pub const LENGTH: u32 = 0x00ff_ffff;
/// Bytes of the word.
const WORD: usize = 4;

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed message")
    }
}

/// One blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// What it is: a matter of where it is.
    pub id: u8,
    /// Whether the payload begins with a name.
    pub extended: bool,
    /// What is in it.
    pub payload: &'a [u8],
}

/// The blobs that follow each other in these bytes; nothing after a malformed
/// one.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = Result<Attribute<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.0);
        if bytes.is_empty() {
            return None;
        }
        let Some(word) = number(bytes.get(..WORD).unwrap_or_default()) else {
            return Some(Err(Malformed));
        };
        let len = (word & LENGTH) as usize;
        let Some(payload) = bytes.get(WORD..len) else { return Some(Err(Malformed)) };
        self.0 = bytes.get(len.next_multiple_of(WORD)..).unwrap_or_default();
        let id = (word >> 24 & 0x7f) as u8;
        Some(Ok(Attribute { id, extended: word & EXTENDED != 0, payload }))
    }
}

/// A payload that is a number of 32 bits.
pub fn number(payload: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(payload.try_into().ok()?))
}

/// A payload that is a text. Its end is the first zero byte; there has to be one.
pub fn text(payload: &[u8]) -> Option<Cow<'_, str>> {
    let end = payload.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&payload[..end]))
}

/// Writes blobs, one after the other or one inside the other.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Begins with bytes that are no blob.
    pub fn after(head: &[u8]) -> Writer {
        Writer(head.to_vec())
    }

    /// What has been written.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// A text's payload.
    pub fn text(&mut self, text: &str) {
        self.0.extend(text.as_bytes());
        self.0.push(0);
    }

    /// A blob without a name, filled by `fill`.
    pub fn blob(&mut self, id: u8, fill: impl FnOnce(&mut Writer)) {
        let start = self.open(u32::from(id) << 24);
        fill(self);
        self.close(start);
    }

    /// A blob with a name, filled by `fill`.
    pub fn named(&mut self, id: u8, name: &str, fill: impl FnOnce(&mut Writer)) {
        let start = self.open(EXTENDED | u32::from(id) << 24);
        self.bytes(&(name.len() as u16).to_be_bytes());
        self.text(name);
        self.pad();
        fill(self);
        self.close(start);
    }

    fn open(&mut self, word: u32) -> usize {
        let start = self.0.len();
        self.bytes(&word.to_be_bytes());
        start
    }

    fn close(&mut self, start: usize) {
        // More than fits is refused when the message is whole.
        let len = (self.0.len() - start) as u32 & LENGTH;
        for (byte, bits) in self.0[start..start + WORD].iter_mut().zip(len.to_be_bytes()) {
            *byte |= bits;
        }
        self.pad();
    }

    fn pad(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(WORD), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_do_not_count_the_zero_bytes_at_the_end() {
        let mut writer = Writer::default();
        writer.blob(2, |w| w.text("pemi"));
        writer.named(5, "ab", |w| w.bytes(&[0, 0, 0, 7]));
        let bytes = writer.finish();
        assert_eq!(bytes[..12], *b"\x02\0\0\x09pemi\0\0\0\0");
        assert_eq!(bytes[12..], *b"\x85\0\0\x10\0\x02ab\0\0\0\0\0\0\0\x07");
        let blobs: Vec<_> = Attributes(&bytes).map(Result::unwrap).collect();
        assert_eq!(blobs[0], Attribute { id: 2, extended: false, payload: b"pemi\0" });
        assert_eq!((blobs[1].id, blobs[1].extended, blobs.len()), (5, true, 2));
        assert_eq!(text(blobs[0].payload).unwrap(), "pemi");
    }

    #[test]
    fn what_is_too_short_is_malformed_and_the_last() {
        for bytes in [&b"\x02"[..], b"\x02\0\0\x03", b"\x02\0\0\x09pemi", b"\0\0\0\0\0\0\0\x04"] {
            let blobs: Vec<_> = Attributes(bytes).collect();
            assert_eq!(blobs, [Err(Malformed)], "{bytes:?}");
        }
        assert_eq!(text(b"no end"), None);
        assert_eq!(number(b"abc"), None);
    }
}
