// SPDX-License-Identifier: GPL-2.0-or-later
//! The address of a station.

use std::fmt;

/// An address of 48 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Of an attribute.
    pub(crate) fn read(payload: &[u8]) -> Option<Mac> {
        Some(Mac(payload.try_into().ok()?))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
