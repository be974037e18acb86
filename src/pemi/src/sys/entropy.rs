// SPDX-License-Identifier: GPL-2.0-or-later
//! Numbers that nobody can guess, from the kernel.

use std::io;

/// Fills `bytes`, of which there are few.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    // SAFETY: pointer and length are those of a live, writable slice.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    // Up to 256 bytes come whole, or not at all.
    if usize::try_from(got) == Ok(bytes.len()) { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_ones_each_time() {
        let (mut first, mut second) = ([0; 20], [0; 20]);
        fill(&mut first).unwrap();
        fill(&mut second).unwrap();
        assert_ne!(first, second);
    }
}
