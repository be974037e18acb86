// SPDX-License-Identifier: GPL-2.0-or-later
//! Content by which corruption, truncation and misplaced data are found.

/// A prime, so that the content does not repeat with packets or pages.
pub const PERIOD: usize = 65_521;

/// The content: byte i of the stream is byte i modulo [`PERIOD`] of this.
pub static PATTERN: [u8; PERIOD] = pattern();

const fn pattern() -> [u8; PERIOD] {
    let mut bytes = [0; PERIOD];
    let mut state: u32 = 1;
    let mut at = 0;
    while at < PERIOD {
        // Numerical Recipes' generator; its upper bits are the better ones.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes[at] = (state >> 24) as u8;
        at += 1;
    }
    bytes
}

/// The longest piece of the content from an offset on that is contiguous in memory.
pub fn piece(offset: u64) -> &'static [u8] {
    &PATTERN[(offset % PERIOD as u64) as usize..]
}

/// Is `data` the content at this offset?
pub fn matches(offset: u64, mut data: &[u8]) -> bool {
    let mut offset = offset;
    while !data.is_empty() {
        let expected = piece(offset);
        let length = expected.len().min(data.len());
        if data[..length] != expected[..length] {
            return false;
        }
        offset += length as u64;
        data = &data[length..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_shifts_and_flips() {
        let period = PERIOD as u64;
        let mut data = [piece(period - 100), &PATTERN[..50]].concat();
        assert!(matches(period - 100, &data));
        assert!(matches(5 * period - 100, &data));
        assert!(!matches(period - 99, &data));
        data[149] ^= 1;
        assert!(!matches(period - 100, &data));
    }
}
