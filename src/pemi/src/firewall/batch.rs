// SPDX-License-Identifier: GPL-2.0-or-later
//! Messages to nf_tables about our table. What is in one batch is one transaction.

use std::io::{self, Read, Write};

use pemi_radio::netlink::{Messages, Question, Role};

use super::rules::Family;

/// From the kernel's headers; not in every libc's.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u8 = 10;
const DELETE_RULES: u8 = 8;
/// The name of a table comes first, whatever of it a message is about.
const TABLE: u16 = 1;
/// Ours, as netlink writes names.
const NAME: &[u8] = b"pemi\0";

/// A message about something in our table.
pub fn about(kind: u8, family: Family) -> Question {
    let kind = u16::from(SUBSYSTEM) << 8 | u16::from(kind);
    Question::one_headed(kind, 0, &[family.number(), 0, 0, 0]).with(TABLE, NAME)
}

/// Takes the rules out of our table and leaves its chains. With a chain the kernel would drop every
/// packet that waits in any queue.
pub fn flush(socket: impl Read + Write, family: Family) -> io::Result<()> {
    carry_out(socket, &about(DELETE_RULES, family).finish())
}

/// Has the kernel do all that these messages say, or nothing of it.
pub fn carry_out(mut socket: impl Read + Write, messages: &[u8]) -> io::Result<()> {
    socket.write_all(&[&edge(BATCH_BEGIN), messages, &edge(BATCH_END)].concat())?;
    // What there is to say has been said by now; nothing if all went well.
    // A complaint for each part that it is about, and the first is worth telling.
    let (mut answer, mut said) = ([0; 4096], None);
    loop {
        match socket.read(&mut answer) {
            Ok(len) => said = said.or(complaint(&answer[..len])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    said.map_or(Ok(()), Err)
}

/// The first or the last message of a batch: it says whose it is.
fn edge(kind: u16) -> Vec<u8> {
    Question::one_headed(kind, 0, &[0, 0, 0, SUBSYSTEM]).finish()
}

/// What the first message of an answer complains of.
fn complaint(answer: &[u8]) -> Option<io::Error> {
    match Messages(answer).next()?.ok()?.role() {
        Role::Failed(number) => Some(io::Error::from_raw_os_error(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that gives these answers.
    struct Kernel {
        asked: Vec<u8>,
        answers: Vec<Vec<u8>>,
    }

    impl Write for &mut Kernel {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.asked.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Read for &mut Kernel {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let answer = self.answers.pop().ok_or(io::ErrorKind::WouldBlock)?;
            buffer[..answer.len()].copy_from_slice(&answer);
            Ok(answer.len())
        }
    }

    fn answer(error: i32) -> Vec<u8> {
        let mut answer = vec![0; 36];
        answer[..4].copy_from_slice(&36u32.to_ne_bytes());
        // NLMSG_ERROR.
        answer[4..6].copy_from_slice(&2u16.to_ne_bytes());
        answer[16..20].copy_from_slice(&(-error).to_ne_bytes());
        answer
    }

    #[test]
    fn a_batch_has_a_beginning_and_an_end() {
        let mut kernel = Kernel { asked: vec![], answers: vec![] };
        flush(&mut kernel, Family::Inet).unwrap();
        let (mut rest, mut kinds) = (&kernel.asked[..], vec![]);
        while let Some(len) = rest.first_chunk() {
            kinds.push(u16::from_ne_bytes([rest[4], rest[5]]));
            rest = &rest[u32::from_ne_bytes(*len) as usize..];
        }
        assert_eq!(kinds, [BATCH_BEGIN, 0x0a08, BATCH_END]);
        assert!(kernel.asked.windows(5).any(|name| name == NAME));
    }

    #[test]
    fn the_first_complaint_counts() {
        let answers = vec![answer(libc::EPERM), answer(libc::ENOENT), answer(0)];
        let error = flush(&mut Kernel { asked: vec![], answers }, Family::Bridge).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let whole = answer(libc::ENOENT);
        (0..whole.len()).for_each(|len| assert!(complaint(&whole[..len]).is_none()));
    }
}
