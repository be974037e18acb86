// SPDX-License-Identifier: GPL-2.0-or-later
//! What an access point tells of one of its stations. "Sent" is to the station.

use crate::mac::Mac;
use crate::netlink::{Attributes, Message, number8, number16, number32};
use crate::nl80211::{IFINDEX, MAC, NEW_STATION, STA_INFO};

/// Numbers of `enum nl80211_sta_info`.
mod info {
    pub const INACTIVE_TIME: u16 = 1;
    pub const SIGNAL: u16 = 7;
    pub const TX_BITRATE: u16 = 8;
    pub const RX_PACKETS: u16 = 9;
    pub const TX_PACKETS: u16 = 10;
    pub const TX_RETRIES: u16 = 11;
    pub const TX_FAILED: u16 = 12;
    pub const SIGNAL_AVG: u16 = 13;
    pub const CONNECTED_TIME: u16 = 16;
    pub const TID_STATS: u16 = 31;
}

/// In `enum nl80211_rate_info`: in 100 kbit/s, 16 bits, and 32 for what does not fit.
const BITRATE: u16 = 1;
const BITRATE32: u16 = 5;
/// In `enum nl80211_tid_stats`.
const TXQ_STATS: u16 = 6;

/// Numbers of `enum nl80211_txq_stats`.
mod txq {
    pub const BACKLOG_BYTES: u16 = 1;
    pub const BACKLOG_PACKETS: u16 = 2;
    pub const DROPS: u16 = 4;
    pub const ECN_MARKS: u16 = 5;
    pub const OVERLIMIT: u16 = 6;
}

/// The counters of a station, as the driver counts. All begin at zero with each association
/// and go on at zero after 2^32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent, also those that were lost.
    pub sent: u32,
    /// Attempts beyond the first.
    pub retries: u32,
    /// What that is depends on the driver.
    pub failed: u32,
    /// Packets from the station.
    pub received: u32,
}

/// The station's own queues in mac80211, all together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Packets waiting.
    pub packets: u32,
    /// Bytes waiting.
    pub bytes: u32,
    /// Packets dropped because they waited too long or too many did.
    pub drops: u32,
    /// Packets marked instead.
    pub marks: u32,
    /// How often the queue was full.
    pub overlimit: u32,
}

/// A station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Station {
    /// The interface with which it is associated.
    pub interface: u32,
    /// Its address.
    pub mac: Mac,
    /// Its counters; zero where the driver does not say.
    pub counters: Counters,
    /// Seconds since it associated.
    pub connected_s: Option<u32>,
    /// Milliseconds since it was heard.
    pub inactive_ms: Option<u32>,
    /// How it was heard last, in dBm.
    pub signal_dbm: Option<i8>,
    /// The mean of that.
    pub signal_mean_dbm: Option<i8>,
    /// Rate of the last packet sent, in kbit/s.
    pub rate_kbit: Option<u32>,
    /// Its queue, where the kernel tells (Linux 6.1 with hwsim does not, 6.12 does).
    pub queue: Option<Queue>,
}

impl Station {
    /// From an answer or an event.
    pub fn read(message: &Message<'_>) -> Option<Station> {
        if message.command()? != NEW_STATION {
            return None;
        }
        let (mut interface, mut mac) = (None, None);
        let mut station = Station::default();
        for (kind, payload) in message.attributes() {
            match kind {
                IFINDEX => interface = number32(payload),
                MAC => mac = Mac::read(payload),
                STA_INFO => station.know(Attributes(payload)),
                _ => {}
            }
        }
        Some(Station { interface: interface?, mac: mac?, ..station })
    }

    fn know(&mut self, attributes: Attributes<'_>) {
        for (kind, payload) in attributes {
            let number = || number32(payload);
            let dbm = || number8(payload).map(u8::cast_signed);
            match kind {
                info::INACTIVE_TIME => self.inactive_ms = number(),
                info::SIGNAL => self.signal_dbm = dbm(),
                info::SIGNAL_AVG => self.signal_mean_dbm = dbm(),
                info::TX_BITRATE => self.rate_kbit = rate(Attributes(payload)),
                info::RX_PACKETS => self.counters.received = number().unwrap_or_default(),
                info::TX_PACKETS => self.counters.sent = number().unwrap_or_default(),
                info::TX_RETRIES => self.counters.retries = number().unwrap_or_default(),
                info::TX_FAILED => self.counters.failed = number().unwrap_or_default(),
                info::CONNECTED_TIME => self.connected_s = number(),
                info::TID_STATS => self.queue = queue(Attributes(payload)),
                _ => {}
            }
        }
    }
}

fn rate(attributes: Attributes<'_>) -> Option<u32> {
    let mut found = None;
    for (kind, payload) in attributes {
        found = match kind {
            BITRATE => found.or(number16(payload).map(u32::from)),
            BITRATE32 => number32(payload).or(found),
            _ => found,
        };
    }
    Some(found?.saturating_mul(100))
}

/// There is one for each kind of traffic (TID).
fn queue(kinds: Attributes<'_>) -> Option<Queue> {
    let mut sum = None;
    for (_, kind) in kinds {
        for (_, queue) in Attributes(kind).filter(|(kind, _)| *kind == TXQ_STATS) {
            let sum = sum.get_or_insert_with(Queue::default);
            for (kind, payload) in Attributes(queue) {
                let into = match kind {
                    txq::BACKLOG_BYTES => &mut sum.bytes,
                    txq::BACKLOG_PACKETS => &mut sum.packets,
                    txq::DROPS => &mut sum.drops,
                    txq::ECN_MARKS => &mut sum.marks,
                    txq::OVERLIMIT => &mut sum.overlimit,
                    _ => continue,
                };
                // Counters go on at zero, and so does their sum.
                *into = into.wrapping_add(number32(payload).unwrap_or_default());
            }
        }
    }
    sum
}
