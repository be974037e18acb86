// SPDX-License-Identifier: GPL-2.0-or-later
//! All that is known of the radios, and what is new of it: answers and events in, news out.
//! Without I/O and clock.

use std::net::IpAddr;
use std::time::Duration;

use pemi_engine::Time;
use pemi_radio::counting::Counting;
use pemi_radio::event::Event;
use pemi_radio::mac::Mac;
use pemi_radio::neighbour::Neighbour;
use pemi_radio::schedule::Ask;
use pemi_radio::station::Station;
use pemi_radio::stations::{Record, Sample, Stations};

use super::directory::Directory;
use super::gate::{self, Facts};
use super::news::{Change, Clean, News, Place, RadioSample};
use super::view::{AccessPoint, Asked, Condition, StationView, View};

/// So long a station is shown that has left: its losses are of the last hour.
const SHOWN: Duration = Duration::from_secs(3600);

/// A station that gets so many packets a second is busy: as many as a voice call has.
const BUSY_PER_S: u128 = 50;

/// All that is known.
#[derive(Debug, Default)]
pub(super) struct Book {
    condition: Condition,
    access_points: Vec<AccessPoint>,
    stations: Stations,
    directory: Directory,
    asked: Asked,
    /// Where clients are, as was told last, in the order of their addresses.
    places: Vec<(IpAddr, Place)>,
    news: Vec<News>,
}

impl Book {
    /// Where clients are, in the order of their addresses.
    pub fn places(&self) -> &[(IpAddr, Place)] {
        &self.places
    }

    /// What is new since this was asked last, once all of it was taken over.
    pub fn news(&mut self, now: Duration) -> Vec<News> {
        self.settle(now);
        std::mem::take(&mut self.news)
    }

    /// Takes the list of access points, or why there is none. Stations of those that are no
    /// longer in it have left.
    pub fn list(&mut self, now: Duration, found: Result<Vec<AccessPoint>, Condition>) {
        let (condition, found) = match found {
            Ok(found) if found.is_empty() => (Condition::NoAccessPoint, found),
            Ok(found) => (Condition::Works, found),
            Err(condition) => (condition, Vec::new()),
        };
        for gone in &self.access_points {
            if !found.iter().any(|access_point| access_point.index == gone.index) {
                self.stations.hear(now, &Event::InterfaceGone(gone.index));
            }
        }
        for access_point in &found {
            self.stations.counts(access_point.index, access_point.counting);
        }
        (self.condition, self.access_points) = (condition, found);
    }

    /// Takes what was answered between two moments. `complete` says that all stations of the
    /// interface are in it. Gives those that are busy.
    pub fn look(
        &mut self,
        (from, to): (Duration, Duration),
        ask: Ask,
        found: &[Station],
        complete: bool,
    ) -> Vec<Mac> {
        let mut busy = Vec::new();
        let took = u64::try_from((to.saturating_sub(from)).as_micros()).unwrap_or(u64::MAX);
        self.asked.times += 1;
        self.asked.last_us = took;
        self.asked.longest_us = self.asked.longest_us.max(took);
        for station in found {
            if let Some(sample) = self.stations.look(to, station) {
                self.tell(station, &sample);
                let millis = (sample.to.saturating_sub(sample.from)).as_millis();
                if u128::from(sample.delta.sent) * 1000 >= BUSY_PER_S * millis.max(1) {
                    busy.push(station.mac);
                }
            }
        }
        if let (Ask::Interface(index), true) = (ask, complete) {
            self.stations.complete(from, index);
        }
        busy
    }

    /// Takes an event. Those of interfaces are answered by a new list.
    pub fn hear(&mut self, now: Duration, event: &Event) {
        match *event {
            Event::Missed => self.asked.missed += 1,
            Event::Joined { interface, mac } if self.looks_at(interface) => {
                for client in self.directory.of(mac) {
                    // Where it is has not changed, or nobody knew it to be anywhere, and yet all is
                    // new. Of another place it comes from `settle` tells.
                    let elsewhere = find(&self.places, client)
                        .is_some_and(|it| (it.interface, it.mac) != (interface, mac));
                    if !elsewhere {
                        let change = Change::Moved;
                        self.news.push(News::Station { client, at: time(now), change });
                    }
                }
                self.stations.hear(now, event);
            }
            Event::Left { interface, .. } if self.looks_at(interface) => {
                self.stations.hear(now, event);
            }
            _ => {}
        }
    }

    /// Whom an event calls for to be asked for its address: the neighbours that a station is
    /// which has come.
    pub fn came(&self, event: &Event) -> Vec<Neighbour> {
        match *event {
            Event::Joined { interface, mac } if self.looks_at(interface) => {
                self.directory.neighbours(mac).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Takes a neighbour.
    pub fn learn(&mut self, neighbour: Neighbour) {
        let stations = &self.stations;
        let is_station = |mac| stations.iter().any(|record| record.mac() == mac);
        self.directory.learn(neighbour, is_station);
    }

    /// A copy of all of it.
    pub fn view(&self, now: Duration) -> View {
        let recent =
            |record: &&Record| record.left().is_none_or(|left| now.saturating_sub(left) < SHOWN);
        View {
            condition: self.condition.clone(),
            access_points: self.access_points.clone(),
            stations: self.stations.iter().filter(recent).map(|it| self.station(now, it)).collect(),
            asked: self.asked,
        }
    }

    /// Clients whose gate is closed, where it closes after so long without a loss.
    pub fn clean(&self, now: Duration, release: Duration) -> Vec<Clean> {
        let mut found = Vec::new();
        for record in self.stations.iter() {
            let addresses = self.directory.of(record.mac());
            if gate::is_closed(&self.facts(now, record, &addresses), release) {
                found.push(Clean { mac: record.mac(), addresses });
            }
        }
        found
    }

    fn facts(&self, now: Duration, record: &Record, addresses: &[IpAddr]) -> Facts {
        let mut its = self.access_points.iter().filter(|it| it.index == record.interface());
        let history = record.history();
        Facts {
            known_driver: its.any(|it| it.counting != Counting::AtMost),
            worth: record.worth(),
            there: record.left().is_none(),
            looked: now.saturating_sub(record.last()),
            lost: history.total().lost,
            clean_for: now.saturating_sub(history.clean_since()),
            clean_sent: history.clean_sent(),
            addresses4: addresses.iter().filter(|address| address.is_ipv4()).count(),
        }
    }

    fn looks_at(&self, interface: u32) -> bool {
        self.access_points.iter().any(|access_point| access_point.index == interface)
    }

    fn station(&self, now: Duration, record: &Record) -> StationView {
        let history = record.history();
        StationView {
            mac: record.mac(),
            addresses: self.directory.of(record.mac()),
            interface: record.interface(),
            left_s: record.left().map(|left| now.saturating_sub(left).as_secs()),
            worth: record.worth(),
            queue: record.queue(),
            signal_dbm: record.signal_dbm(),
            rate_kbit: record.rate_kbit(),
            lost_minute: history.lost_last_minute(now),
            curve: history.curve(now),
            total: history.total(),
            clean_s: now.saturating_sub(history.clean_since()).as_secs(),
            clean_sent: history.clean_sent(),
        }
    }

    fn tell(&mut self, station: &Station, sample: &Sample) {
        for client in self.directory.of(station.mac) {
            self.news.push(News::Sample(RadioSample {
                client,
                from: time(sample.from),
                to: time(sample.to),
                sent: sample.delta.sent,
                lost: sample.delta.lost,
                quality: sample.delta.worth,
                queued: sample.queued,
                drops: sample.queue_drops,
            }));
        }
    }

    /// Compares where clients are with what was told last.
    fn settle(&mut self, now: Duration) {
        let mut places: Vec<(IpAddr, Place)> = Vec::new();
        for record in self.stations.iter().filter(|record| record.left().is_none()) {
            let (interface, mac) = (record.interface(), record.mac());
            let place = Place { interface, mac, quality: record.worth() };
            for client in self.directory.of(mac) {
                // One at a time: sorting them would be 3 KB of code, and there are few.
                let at = places.partition_point(|(before, _)| *before < client);
                places.insert(at, (client, place));
            }
        }
        let mut changed = |client, change| {
            self.news.push(News::Station { client, at: time(now), change });
        };
        for (client, place) in &places {
            match find(&self.places, *client) {
                None => changed(*client, Change::Joined),
                Some(before) if (before.interface, before.mac) != (place.interface, place.mac) => {
                    changed(*client, Change::Moved);
                }
                Some(_) => {}
            }
        }
        for (client, _) in &self.places {
            if find(&places, *client).is_none() {
                changed(*client, Change::Left);
            }
        }
        self.places = places;
    }
}

/// The place of a client in a list that is in the order of their addresses.
pub(super) fn find(places: &[(IpAddr, Place)], client: IpAddr) -> Option<Place> {
    let at = places.binary_search_by_key(&client, |(address, _)| *address).ok()?;
    Some(places[at].1)
}

/// By the daemon's clock, which is what durations count from here.
fn time(since: Duration) -> Time {
    Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
