// SPDX-License-Identifier: GPL-2.0-or-later
//! The protocol of mac80211_hwsim: its radios hand every frame to whoever registered as
//! their air, and take what the air makes of it.
//!
//! The names are the kernel's, in `drivers/net/wireless/virtual/mac80211_hwsim.h`.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use anyhow::{Context, Result};
use rustix::net::RecvFlags;

use crate::genl::{Message, Received, Socket, messages};

const CMD_REGISTER: u8 = 1;
const CMD_FRAME: u8 = 2;
const CMD_TX_INFO_FRAME: u8 = 3;

const ATTR_ADDR_RECEIVER: u16 = 1;
const ATTR_ADDR_TRANSMITTER: u16 = 2;
const ATTR_FRAME: u16 = 3;
const ATTR_FLAGS: u16 = 4;
const ATTR_RX_RATE: u16 = 5;
const ATTR_SIGNAL: u16 = 6;
const ATTR_TX_INFO: u16 = 7;
const ATTR_COOKIE: u16 = 8;
const ATTR_FREQ: u16 = 19;

const TX_CTL_NO_ACK: u32 = 1 << 1;
const TX_STAT_ACK: u32 = 1 << 2;

/// How many rates the kernel proposes for a frame, each with a number of attempts.
const RATES: usize = 4;
/// The kernel's sign for a rate that is not proposed.
const NO_RATE: i8 = -1;
/// A good signal, dBm: near enough that nobody looks for another access point by itself.
const SIGNAL_DBM: i32 = -50;
/// Index of a rate of the band; what a receiver believes of it changes nothing here.
const RX_RATE: u32 = 1;

/// More than the longest frame with its attributes.
const DATAGRAM_BYTES: usize = 16 * 1024;

/// Which radio, counted from 0 as the kernel made them.
pub type Radio = usize;

/// The second of a radio's two addresses, by which hwsim and its air call it.
fn address(radio: Radio) -> [u8; 6] {
    let number = u16::try_from(radio).expect("few radios").to_be_bytes();
    [0x42, 0, 0, number[0], number[1], 0]
}

fn radio(address: &[u8]) -> Option<Radio> {
    match address {
        // The first address, which frames carry, differs from the second in one bit.
        [0x02 | 0x42, 0, 0, high, low, 0] => Some(u16::from_be_bytes([*high, *low]).into()),
        _ => None,
    }
}

/// What its sender learns of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It was acknowledged.
    Arrived,
    /// It was given up.
    Lost,
    /// It never reached the air. mac80211 counts it as neither, and whoever asked for its
    /// status learns that nobody acknowledged it, as of one that its own queue drops.
    Dropped,
}

/// A frame that a radio sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Who sends it.
    pub from: Radio,
    /// Whom it is addressed to; none: everybody.
    pub to: Option<Radio>,
    /// From the MAC header on, without the checksum.
    pub bytes: Vec<u8>,
    flags: u32,
    freq: Option<u32>,
    cookie: u64,
    rate: i8,
}

impl Frame {
    fn read(message: &Received<'_>) -> Option<Frame> {
        let (mut from, mut bytes, mut flags, mut freq) = (None, None, None, None);
        let (mut cookie, mut rate) = (None, NO_RATE);
        for (kind, value) in message.attributes() {
            match kind {
                ATTR_ADDR_TRANSMITTER => from = radio(value),
                ATTR_FRAME => bytes = Some(value.to_vec()),
                ATTR_FLAGS => flags = Some(u32::from_ne_bytes(value.try_into().ok()?)),
                ATTR_FREQ => freq = Some(u32::from_ne_bytes(value.try_into().ok()?)),
                ATTR_COOKIE => cookie = Some(u64::from_ne_bytes(value.try_into().ok()?)),
                ATTR_TX_INFO => rate = value.first()?.cast_signed(),
                _ => {}
            }
        }
        let bytes = bytes?;
        let to = bytes.get(4..10)?;
        let to = if to[0] & 1 == 1 { None } else { radio(to) };
        Some(Frame { from: from?, to, bytes, flags: flags?, freq, cookie: cookie?, rate })
    }
}

/// The radios' air, once it has registered.
pub struct Radios {
    socket: Socket,
    family: u16,
    buffer: Vec<u8>,
}

impl Radios {
    /// From now on frames go only where this process carries them.
    pub fn register() -> Result<Radios> {
        let socket = Socket::open()?;
        let family = socket.family("MAC80211_HWSIM")?;
        socket.send(Message::new(family, CMD_REGISTER, true))?;
        let mut buffer = vec![0; DATAGRAM_BYTES];
        let length = socket.receive(&mut buffer, RecvFlags::empty())?;
        for answer in messages(&buffer[..length]) {
            answer.context("registering with mac80211_hwsim")?;
        }
        Ok(Radios { socket, family, buffer })
    }

    /// The next frame that a radio sends; none if none waits.
    pub fn receive(&mut self) -> Result<Option<Frame>> {
        loop {
            let length = match self.socket.receive(&mut self.buffer, RecvFlags::DONTWAIT) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error).context("frames were lost before the air"),
            };
            // hwsim tells one frame a datagram; what else it tells is of no use here. A frame
            // handed to a radio that has just gone down is refused, and that is told, too.
            let frame = messages(&self.buffer[..length])
                .filter_map(Result::ok)
                .filter(|message| message.family == self.family && message.command == CMD_FRAME)
                .find_map(|message| Frame::read(&message));
            if frame.is_some() {
                return Ok(frame);
            }
        }
    }

    /// A radio hears these bytes, sent as this frame was.
    pub fn hear(&self, who: Radio, bytes: &[u8], like: &Frame) -> Result<()> {
        let mut message = Message::new(self.family, CMD_FRAME, false)
            .with(ATTR_ADDR_RECEIVER, &address(who))
            .with(ATTR_FRAME, bytes)
            .with_u32(ATTR_RX_RATE, RX_RATE)
            .with_u32(ATTR_SIGNAL, SIGNAL_DBM.cast_unsigned());
        if let Some(freq) = like.freq {
            message = message.with_u32(ATTR_FREQ, freq);
        }
        Ok(self.socket.send(message)?)
    }

    /// The sender learns what became of its frame, after so many attempts.
    pub fn tell(&self, frame: &Frame, told: Told, attempts: u8) -> Result<()> {
        let mut rates = [0; 2 * RATES];
        for (index, rate) in rates.chunks_exact_mut(2).enumerate() {
            let used = index == 0 && attempts > 0;
            let (which, count) = if used { (frame.rate, attempts) } else { (NO_RATE, 0) };
            rate.copy_from_slice(&[which.cast_unsigned(), count]);
        }
        let flags = frame.flags
            | match told {
                Told::Arrived => TX_STAT_ACK,
                Told::Lost => 0,
                Told::Dropped => TX_CTL_NO_ACK,
            };
        let message = Message::new(self.family, CMD_TX_INFO_FRAME, false)
            .with(ATTR_ADDR_TRANSMITTER, &address(frame.from))
            .with_u32(ATTR_FLAGS, flags)
            .with(ATTR_COOKIE, &frame.cookie.to_ne_bytes())
            .with_u32(ATTR_SIGNAL, SIGNAL_DBM.cast_unsigned())
            .with(ATTR_TX_INFO, &rates);
        Ok(self.socket.send(message)?)
    }
}

impl AsFd for Radios {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_addresses_name_the_radio() {
        assert_eq!(radio(&address(258)), Some(258));
        assert_eq!(radio(&[2, 0, 0, 1, 2, 0]), Some(258));
        assert_eq!(radio(&[0xff; 6]), None);
    }
}
