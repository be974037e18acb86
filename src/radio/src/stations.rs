// SPDX-License-Identifier: GPL-2.0-or-later
//! All stations that are known, with their histories: answers and events in, facts out.

use std::time::Duration;

use crate::counting::Counting;
use crate::event::Event;
use crate::history::History;
use crate::mac::Mac;
use crate::meter::{Delta, Meter, Worth};
use crate::station::{Queue, Station};

/// So many stations are remembered: with up to 400 bytes each, 100 KB.
pub const MOST: usize = 256;

/// What happened to a station between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The look before.
    pub from: Duration,
    /// This one.
    pub to: Duration,
    /// What was sent and lost.
    pub delta: Delta,
    /// Packets that wait in its queue now.
    pub queued: u32,
    /// Packets that its queue dropped.
    pub queue_drops: u32,
    /// Whether it was with another interface before, or has associated again.
    pub moved: bool,
}

/// A station that is, or was, there.
#[derive(Clone, Debug)]
pub struct Record {
    mac: Mac,
    interface: u32,
    left: Option<Duration>,
    meter: Meter,
    worth: Worth,
    queue: Option<Queue>,
    signal_dbm: Option<i8>,
    rate_kbit: Option<u32>,
    history: History,
}

impl Record {
    /// Its address.
    pub fn mac(&self) -> Mac {
        self.mac
    }

    /// The interface it is with, or was.
    pub fn interface(&self) -> u32 {
        self.interface
    }

    /// When it left; nothing if it is there.
    pub fn left(&self) -> Option<Duration> {
        self.left
    }

    /// What its counted losses are good for.
    pub fn worth(&self) -> Worth {
        self.worth
    }

    /// Its queue at the last look, where the kernel tells.
    pub fn queue(&self) -> Option<Queue> {
        self.queue
    }

    /// How it was heard last, in dBm.
    pub fn signal_dbm(&self) -> Option<i8> {
        self.signal_dbm
    }

    /// Rate of the last packet, in kbit/s.
    pub fn rate_kbit(&self) -> Option<u32> {
        self.rate_kbit
    }

    /// What was lost, and when.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// When it was last known to be there.
    pub fn last(&self) -> Duration {
        self.left.unwrap_or(self.meter.at())
    }
}

/// An interface, and what its driver counts.
#[derive(Clone, Copy, Debug)]
struct Counted {
    interface: u32,
    counting: Counting,
    /// It has counted a failure or a retry of anybody.
    proven: bool,
}

/// All stations.
#[derive(Clone, Debug, Default)]
pub struct Stations {
    records: Vec<Record>,
    interfaces: Vec<Counted>,
}

impl Stations {
    /// Says what the driver of an interface counts. Where nothing was said, it is
    /// [`Counting::AtMost`].
    pub fn counts(&mut self, interface: u32, counting: Counting) {
        let known = self.interfaces.iter().any(|counted| {
            // Said again: what it has shown so far still holds.
            counted.interface == interface && counted.counting == counting
        });
        if !known {
            self.interfaces.retain(|counted| counted.interface != interface);
            self.interfaces.push(Counted { interface, counting, proven: false });
        }
    }

    /// Takes what the kernel told of a station. Gives what has happened since it did so before;
    /// nothing for one that is new, or that another interface still lists though it has moved.
    pub fn look(&mut self, now: Duration, station: &Station) -> Option<Sample> {
        let counted = self.counted(station);
        let Some(record) = self.records.iter_mut().find(|record| record.mac == station.mac) else {
            let meter = Meter::new(counted.counting, now, station);
            self.insert(now, station, meter);
            return None;
        };
        let moved = record.interface != station.interface;
        if moved {
            if record.left.is_none() && is_older(station, &record.meter) {
                return None;
            }
            record.meter = Meter::new(counted.counting, now, station);
            record.interface = station.interface;
            record.queue = None;
        }
        // Whoever is listed is there, whatever an event or an incomplete answer said.
        record.left = None;
        let from = record.meter.at();
        let delta = record.meter.read(now, station, counted.proven);
        record.worth = delta.worth;
        record.history.add(now, &delta);
        let queue = station.queue.unwrap_or_default();
        // Its counter begins anew with the association, as all do.
        let before = record.queue.filter(|_| !delta.anew).map(|queue| queue.drops);
        record.queue = station.queue;
        record.signal_dbm = station.signal_dbm;
        record.rate_kbit = station.rate_kbit;
        Some(Sample {
            from,
            to: record.meter.at(),
            delta,
            queued: queue.packets,
            queue_drops: before.map_or(0, |before| forward(before, queue.drops)),
            moved: moved || delta.anew,
        })
    }

    /// Takes an event.
    pub fn hear(&mut self, now: Duration, event: &Event) {
        match *event {
            Event::Joined { interface, mac } => self.joined(now, interface, mac),
            Event::Left { interface, mac } => {
                self.leave(now, |record| record.interface == interface && record.mac == mac)
            }
            Event::InterfaceGone(gone) => {
                self.interfaces.retain(|counted| counted.interface != gone);
                self.leave(now, |record| record.interface == gone);
            }
            Event::Interface(_) | Event::Family | Event::Missed => {}
        }
    }

    /// After a complete answer for this interface: who was not in it since `began` has left.
    pub fn complete(&mut self, began: Duration, interface: u32) {
        self.leave(began, |record| record.interface == interface && record.meter.at() < began);
    }

    /// One station.
    pub fn get(&self, mac: Mac) -> Option<&Record> {
        self.records.iter().find(|record| record.mac == mac)
    }

    /// All of them, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    /// Counts from zero if it is new or comes back. If it is there already, its counters will
    /// tell whether they began anew: an event may be older than the last look.
    fn joined(&mut self, now: Duration, interface: u32, mac: Mac) {
        let counted = self.interface(interface);
        let meter = Meter::joined(counted.counting, now);
        match self.records.iter_mut().find(|record| record.mac == mac) {
            Some(record) if record.interface == interface && record.left.is_none() => {}
            Some(record) => {
                record.meter = meter;
                record.interface = interface;
                record.queue = None;
                record.left = None;
            }
            None => self.insert(now, &Station { interface, mac, ..Station::default() }, meter),
        }
    }

    fn leave(&mut self, now: Duration, which: impl Fn(&Record) -> bool) {
        for record in &mut self.records {
            if record.left.is_none() && which(record) {
                record.left = Some(now);
            }
        }
    }

    fn insert(&mut self, now: Duration, station: &Station, meter: Meter) {
        if self.records.len() >= MOST {
            self.evict();
        }
        self.records.push(Record {
            mac: station.mac,
            interface: station.interface,
            left: None,
            meter,
            worth: Worth::Exact.min(meter.worth()),
            queue: station.queue,
            signal_dbm: station.signal_dbm,
            rate_kbit: station.rate_kbit,
            history: History::new(now),
        });
    }

    /// Makes room: whoever left first, and only if nobody has left, whoever was not heard of
    /// for longest. So strangers who come and go do not displace who stays.
    fn evict(&mut self) {
        let key = |record: &Record| (record.left.is_none(), record.last());
        let first = (0..self.records.len()).min_by_key(|&index| key(&self.records[index]));
        if let Some(index) = first {
            self.records.swap_remove(index);
        }
    }

    fn interface(&self, interface: u32) -> Counted {
        let known = self.interfaces.iter().find(|counted| counted.interface == interface);
        let unknown = Counted { interface, counting: Counting::AtMost, proven: false };
        known.copied().unwrap_or(unknown)
    }

    fn counted(&mut self, station: &Station) -> Counted {
        let counts = station.counters.failed > 0 || station.counters.retries > 0;
        for counted in &mut self.interfaces {
            counted.proven |= counts && counted.interface == station.interface;
        }
        self.interface(station.interface)
    }
}

/// Whether this is the association that the station has given up: access points list it until
/// they notice.
fn is_older(station: &Station, meter: &Meter) -> bool {
    matches!((station.connected_s, meter.connected_s()), (Some(this), Some(other)) if this > other)
}

/// How far a counter went that goes on at zero after 2^32.
fn forward(from: u32, to: u32) -> u32 {
    let by = to.wrapping_sub(from);
    if by.cast_signed() < 0 { 0 } else { by }
}

#[cfg(test)]
mod tests;
