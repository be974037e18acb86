// SPDX-License-Identifier: GPL-2.0-or-later
//! What people are shown of the radios: copied while nobody changes it.

use std::net::IpAddr;

use pemi_radio::counting::Counting;
use pemi_radio::history::{SLOTS, Sums};
use pemi_radio::mac::Mac;
use pemi_radio::meter::Worth;
use pemi_radio::station::Queue;

/// Whether there is anything to be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// The thread has not looked yet, or there is none.
    #[default]
    Off,
    /// This kernel has no nl80211, or not now.
    NoRadio,
    /// It has, but no access point is a helped device, or a port of one.
    NoAccessPoint,
    /// There are access points.
    Works,
    /// Asking failed, for this reason. It is tried again.
    Fails(String),
}

impl Condition {
    /// Its name for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Condition::Off => "off",
            Condition::NoRadio => "no radio",
            Condition::NoAccessPoint => "no access point",
            Condition::Works => "works",
            Condition::Fails(_) => "fails",
        }
    }
}

/// An access point that is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessPoint {
    /// Number of its network device.
    pub index: u32,
    /// Name of that.
    pub name: String,
    /// The frequency of its channel, in MHz, once it is on the air.
    pub mhz: Option<u32>,
    /// Its driver's name; empty if nobody told.
    pub driver: String,
    /// What the driver counts.
    pub counting: Counting,
}

/// A station, and what was lost on the way to it.
#[derive(Clone, Debug)]
pub struct StationView {
    /// Its address.
    pub mac: Mac,
    /// Its addresses on the internet.
    pub addresses: Vec<IpAddr>,
    /// The number of the access point's device.
    pub interface: u32,
    /// Seconds since it left; nothing if it is there.
    pub left_s: Option<u64>,
    /// What counted losses are good for.
    pub worth: Worth,
    /// Its queue, where the kernel tells.
    pub queue: Option<Queue>,
    /// How it was heard last, in dBm.
    pub signal_dbm: Option<i8>,
    /// Rate of the last packet, in kbit/s.
    pub rate_kbit: Option<u32>,
    /// Lost in the last minute.
    pub lost_minute: u32,
    /// The last hour in parts of five minutes, the newest at the end.
    pub curve: [Sums; SLOTS],
    /// Since it was seen first.
    pub total: Sums,
    /// Seconds since the last loss, or since it was seen first.
    pub clean_s: u64,
    /// Packets sent since then.
    pub clean_sent: u64,
}

impl StationView {
    /// The last hour in one.
    pub fn hour(&self) -> Sums {
        self.curve.iter().fold(Sums::default(), |sum, slot| Sums {
            sent: sum.sent + slot.sent,
            lost: sum.lost + slot.lost,
            retried: sum.retried + slot.retried,
        })
    }
}

/// What was asked of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// How often.
    pub times: u64,
    /// Microseconds until the last answer was there.
    pub last_us: u64,
    /// The same of the slowest one.
    pub longest_us: u64,
    /// How often more happened than could be heard.
    pub missed: u64,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Whether there is anything to be seen.
    pub condition: Condition,
    /// The access points.
    pub access_points: Vec<AccessPoint>,
    /// Their stations, and those that have left within the last hour.
    pub stations: Vec<StationView>,
    /// What was asked.
    pub asked: Asked,
}
