// SPDX-License-Identifier: GPL-2.0-or-later
//! What the two sides say to each other, and how it looks on the wire: 12 random bytes,
//! which are the nonce of ChaCha20-Poly1305, and what that makes of the rest. So every
//! packet looks random from its first byte on, also when a frame is sent again. The key
//! is the same for everybody: these are test tools.

use std::mem::size_of;

use anyhow::{Result, anyhow, ensure};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

const KEY: &[u8; 32] = b"pemi-test: nobody keeps a secret";
const TAG: usize = 16;
/// Kind, session, time, echo, held.
const HEADER: usize = 1 + 4 * size_of::<u64>();
/// Frame number and cause.
const AUDIO: usize = size_of::<u32>() + 1;
/// The least that a packet of audio takes, UDP payload in bytes.
pub const MIN_BYTES: usize = NONCE_LEN + HEADER + AUDIO + TAG;
/// Frames that one packet asks for at most.
pub const MAX_NACKS: usize = 256;

/// Why a frame is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is its time.
    Due,
    /// The receiver asked for it.
    Nack,
    /// A quACK told that it was lost.
    Quack,
}

/// What is said. Times are nanoseconds of the clock of whoever says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// A random number that the sender chose.
    pub session: u64,
    /// When this was sent.
    pub time: u64,
    /// The `time` in the last packet of the other side; 0 if there was none.
    pub echo: u64,
    /// How long ago that came.
    pub held: u64,
}

/// And what about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Sender: so many frames are going to come. The answer is a report.
    Start {
        /// How many.
        frames: u32,
    },
    /// Sender: a frame.
    Audio {
        /// Its number, from 0 on.
        frame: u32,
        /// Why it is sent.
        cause: Cause,
    },
    /// Receiver: what to send again; also without, for its times.
    Report {
        /// These.
        missing: Vec<u32>,
    },
    /// Sender: all frames were sent.
    End,
    /// Receiver: nothing is missing, or no longer waited for.
    Done,
}

/// Makes packets and reads them.
pub struct Cipher {
    key: LessSafeKey,
    random: SystemRandom,
}

impl Cipher {
    /// With the key that everybody has.
    pub fn new() -> Result<Cipher> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, KEY).map_err(|_| anyhow!("the key"))?;
        Ok(Cipher { key: LessSafeKey::new(key), random: SystemRandom::new() })
    }

    /// A number to call something by that nobody guesses.
    pub fn random(&self) -> Result<u64> {
        let mut bytes = [0; size_of::<u64>()];
        self.random.fill(&mut bytes).map_err(|_| anyhow!("no random numbers"))?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// A packet of at least `bytes`.
    pub fn seal(&self, header: Header, body: &Body, bytes: usize) -> Result<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).map_err(|_| anyhow!("no random numbers"))?;
        let mut packet = Vec::with_capacity(bytes.max(MIN_BYTES));
        packet.extend_from_slice(&nonce);
        packet.push(match body {
            Body::Start { .. } => 0,
            Body::Audio { .. } => 1,
            Body::Report { .. } => 2,
            Body::End => 3,
            Body::Done => 4,
        });
        for number in [header.session, header.time, header.echo, header.held] {
            packet.extend_from_slice(&number.to_be_bytes());
        }
        match body {
            Body::Start { frames } => packet.extend_from_slice(&frames.to_be_bytes()),
            Body::Audio { frame, cause } => {
                packet.extend_from_slice(&frame.to_be_bytes());
                packet.push(*cause as u8);
                packet.resize(packet.len().max(bytes.saturating_sub(TAG)), 0);
            }
            Body::Report { missing } => {
                missing.iter().for_each(|frame| packet.extend_from_slice(&frame.to_be_bytes()));
            }
            Body::End | Body::Done => {}
        }
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::empty(), &mut packet[NONCE_LEN..])
            .map_err(|_| anyhow!("a packet is too long"))?;
        packet.extend_from_slice(tag.as_ref());
        Ok(packet)
    }

    /// What a packet says.
    pub fn open(&self, packet: &mut [u8]) -> Result<(Header, Body)> {
        ensure!(packet.len() >= NONCE_LEN + HEADER + TAG, "{} bytes", packet.len());
        let (nonce, sealed) = packet.split_at_mut(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| anyhow!("the nonce"))?;
        let plain = self.key.open_in_place(nonce, Aad::empty(), sealed);
        let plain = plain.map_err(|_| anyhow!("not of this program"))?;
        let (fields, rest) = plain.split_at(HEADER);
        let mut numbers = fields[1..].chunks_exact(size_of::<u64>());
        let mut number = || {
            let bytes = numbers.next().and_then(|bytes| bytes.first_chunk());
            u64::from_be_bytes(*bytes.unwrap_or(&[0; 8]))
        };
        let header = Header { session: number(), time: number(), echo: number(), held: number() };
        let mut shorts = rest.chunks_exact(size_of::<u32>());
        let short = |bytes: &[u8]| u32::from_be_bytes(*bytes.first_chunk().unwrap_or(&[0; 4]));
        let mut first = || shorts.next().map(short).ok_or_else(|| anyhow!("a packet is cut"));
        let body = match fields[0] {
            0 => Body::Start { frames: first()? },
            1 => {
                let causes = [Cause::Due, Cause::Nack, Cause::Quack];
                let cause = rest.get(size_of::<u32>()).and_then(|at| causes.get(*at as usize));
                let cause = *cause.ok_or_else(|| anyhow!("a cause that is none"))?;
                Body::Audio { frame: first()?, cause }
            }
            2 => Body::Report { missing: shorts.map(short).take(MAX_NACKS).collect() },
            3 => Body::End,
            4 => Body::Done,
            kind => return Err(anyhow!("a packet of kind {kind}")),
        };
        Ok((header, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_can_be_opened_and_nothing_else() {
        let cipher = Cipher::new().unwrap();
        let header = Header { session: 1, time: 2, echo: 3, held: 4 };
        for body in [
            Body::Start { frames: 7 },
            Body::Audio { frame: 8, cause: Cause::Quack },
            Body::Report { missing: vec![] },
            Body::Report { missing: vec![1, 2, u32::MAX] },
            Body::End,
            Body::Done,
        ] {
            let mut packet = cipher.seal(header, &body, 240).unwrap();
            let mut flipped = packet.clone();
            assert_eq!(cipher.open(&mut packet).unwrap(), (header, body));
            flipped[20] ^= 1;
            assert!(cipher.open(&mut flipped).is_err());
            assert!(cipher.open(&mut flipped[..30]).is_err());
        }
    }

    #[test]
    fn a_frame_that_is_sent_again_looks_like_another() {
        let cipher = Cipher::new().unwrap();
        let body = Body::Audio { frame: 8, cause: Cause::Due };
        let [one, other] = [0; 2].map(|_| cipher.seal(Header::default(), &body, 240).unwrap());
        assert_eq!((one.len(), other.len()), (240, 240));
        assert_ne!(one[..4], other[..4]);
        assert_eq!(cipher.seal(Header::default(), &body, 0).unwrap().len(), MIN_BYTES);
    }
}
