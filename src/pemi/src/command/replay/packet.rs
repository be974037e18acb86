// SPDX-License-Identifier: GPL-2.0-or-later
//! A packet of a capture file, of whichever format.

use pemi_engine::Time;

use super::input::Error;

/// Longest packet taken, in bytes: the largest snap length that libpcap writes.
/// Whatever claims to be longer is no packet.
pub const MAX_PACKET: u32 = 262_144;

/// One captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When, since 1970.
    pub time: Time,
    /// Its LINKTYPE, which says what `frame` begins with.
    pub link: u16,
    /// What was captured of it, from the link header on.
    pub frame: &'a [u8],
    /// Where in the file its record begins.
    pub offset: u64,
}

/// The captured length of a packet, if it can be one.
pub fn captured(offset: u64, len: u32) -> Result<usize, Error> {
    if len > MAX_PACKET {
        let what = format!("captured length {len}; at most {MAX_PACKET} expected");
        return Err(Error::new(offset, what));
    }
    Ok(len as usize)
}
