// SPDX-License-Identifier: GPL-2.0-or-later
//! What is told of clients: what the radio lost on the way to each, what was done about it, and
//! a sentence.

use std::net::IpAddr;

use pemi_engine::Knowledge;
use pemi_radio::history::Sums;
use pemi_radio::meter::Worth;
use serde_json::Value;

use crate::daemon::helped::{Help, Helped};
use crate::daemon::names::Names;
use crate::daemon::object::{decimal, object};
use crate::firewall::clean::Member;
use crate::radio::view::{AccessPoint, Condition, StationView, View};

/// What is known, and by what it is put into words.
pub struct Facts<'a> {
    /// Of the radios.
    pub view: &'a View,
    /// Of the flows.
    pub helped: &'a Helped,
    /// How clients are called.
    pub names: &'a Names,
    /// Who passes by the queue, because nothing is lost.
    pub passing: &'a [Member],
    /// Whether anybody is to be helped.
    pub helping: bool,
}

/// How a client is, for programs, and in words.
#[derive(Debug, PartialEq, Eq)]
struct State(&'static str, String);

/// The answer to `clients`: at most `limit` of them, without the first `skip`. Their order stays
/// the same as long as nobody comes or goes.
pub fn clients(facts: &Facts<'_>, limit: usize, skip: usize) -> Value {
    let stations = &facts.view.stations;
    let mut rows: Vec<Value> = Vec::new();
    for (at, station) in stations.iter().enumerate() {
        if (skip..skip + limit).contains(&at) {
            rows.push(of_station(facts, station));
        }
    }
    let mut total = stations.len();
    for address in facts.helped.addresses() {
        if !stations.iter().any(|station| station.addresses.contains(&address)) {
            if (skip..skip + limit).contains(&total) {
                rows.push(of_other(facts, address));
            }
            total += 1;
        }
    }
    object(vec![
        ("clients", rows.into()),
        ("total", total.into()),
        ("helping", facts.helping.into()),
        ("radio", facts.view.condition.name().into()),
    ])
}

/// The part of `status` that is about the radios.
pub fn radio(view: &View) -> Value {
    let mut access_points: Vec<Value> = Vec::new();
    for access_point in &view.access_points {
        let its = |it: &&StationView| it.interface == access_point.index && it.left_s.is_none();
        access_points.push(object(vec![
            ("interface", access_point.name.as_str().into()),
            ("mhz", access_point.mhz.into()),
            ("driver", access_point.driver.as_str().into()),
            ("stations", view.stations.iter().filter(its).count().into()),
        ]));
    }
    object(vec![
        ("state", view.condition.name().into()),
        ("access_points", access_points.into()),
        ("asked", view.asked.times.into()),
        ("last_us", view.asked.last_us.into()),
        ("longest_us", view.asked.longest_us.into()),
        ("missed", view.asked.missed.into()),
    ])
}

/// How many stations pass by the queue.
pub fn passing(view: &View, members: &[Member]) -> usize {
    view.stations.iter().filter(|station| passes(station, members)).count()
}

/// Whether what a station gets passes by the queue, at one of its addresses.
fn passes(station: &StationView, members: &[Member]) -> bool {
    members.contains(&Member::station(station.mac.0))
        || station.addresses.iter().any(|address| members.contains(&(*address).into()))
}

/// What the user should know of the radios.
pub fn error(view: &View) -> Option<String> {
    match &view.condition {
        Condition::Fails(error) => Some(format!("access points cannot be asked: {error}")),
        _ => None,
    }
}

fn of_station(facts: &Facts<'_>, station: &StationView) -> Value {
    let help = facts.helped.of(&station.addresses);
    let place = facts.view.access_points.iter().find(|it| it.index == station.interface);
    let State(state, sentence) = judge(station, help, facts.helping);
    let hour = station.hour();
    let curve = station.curve.iter().map(|slot| Value::from(vec![slot.sent, slot.lost]));
    let sums = object(vec![
        ("sent", hour.sent.into()),
        ("lost", hour.lost.into()),
        ("lost_per_mille", share(hour.lost, 1000, hour).into()),
        ("retries_percent", share(hour.retried, 100, hour).into()),
    ]);
    let queue = station.queue.map_or(Value::Null, |queue| {
        object(vec![("packets", queue.packets.into()), ("drops", queue.drops.into())])
    });
    object(vec![
        ("name", facts.names.of(Some(station.mac), &station.addresses).into()),
        ("addresses", texts(&station.addresses)),
        ("mac", station.mac.to_string().into()),
        ("interface", place.map(|place| place.name.as_str()).into()),
        ("band", place.and_then(band).into()),
        ("connected", station.left_s.is_none().into()),
        ("signal_dbm", station.signal_dbm.into()),
        ("rate_kbit", station.rate_kbit.into()),
        ("counts", worth(station.worth).into()),
        ("sent", station.total.sent.into()),
        ("lost", station.total.lost.into()),
        ("hour", sums),
        ("curve", curve.collect::<Vec<Value>>().into()),
        ("lost_minute", station.lost_minute.into()),
        ("queue", queue),
        ("helped", helped(help, Some(station.worth))),
        ("gate", if passes(station, facts.passing) { "closed" } else { "open" }.into()),
        ("state", state.into()),
        ("clean_s", station.clean_s.into()),
        ("clean_sent", station.clean_sent.into()),
        ("left_s", station.left_s.into()),
        ("sentence", sentence.into()),
    ])
}

/// A client that is helped, but is no station: it has a cable, or its access point is another box.
fn of_other(facts: &Facts<'_>, address: IpAddr) -> Value {
    let addresses = [address];
    object(vec![
        ("name", facts.names.of(None, &addresses).into()),
        ("addresses", texts(&addresses)),
        ("connected", true.into()),
        ("helped", helped(facts.helped.of(&addresses), None)),
        ("state", "elsewhere".into()),
        ("sentence", "on no radio of this router: its losses are inferred".into()),
    ])
}

fn helped(help: Help, worth: Option<Worth>) -> Value {
    object(vec![
        ("flows", help.flows.into()),
        ("knowledge", help.knowledge.map(Knowledge::name).into()),
        ("why", help.knowledge.map(|knowledge| why(knowledge, worth)).into()),
        ("repaired", help.repaired.into()),
        ("copies", help.copies.into()),
        ("repaired_minute", help.repaired_minute.into()),
    ])
}

/// Why it is not known better what is lost, on a station whose counts are worth this.
fn why(knowledge: Knowledge, worth: Option<Worth>) -> &'static str {
    match (knowledge, worth) {
        (Knowledge::Reports, _) => "the access point reports each packet",
        (Knowledge::Counts, Some(Worth::AtMost)) => "the access point does not count exactly",
        (Knowledge::Counts, _) => "packets are not reported, or option repair is infer",
        (Knowledge::Replies, None) => "on no radio of this router",
        (Knowledge::Replies, Some(_)) => "the access point does not count, or was not asked yet",
    }
}

fn texts(addresses: &[IpAddr]) -> Value {
    addresses.iter().map(|address| Value::from(address.to_string())).collect::<Vec<_>>().into()
}

/// In parts of what was sent, with three digits behind the point.
fn share(of_it: u64, whole: u64, sums: Sums) -> f64 {
    decimal(of_it.saturating_mul(whole), sums.sent.max(of_it), 1000)
}

fn worth(worth: Worth) -> &'static str {
    match worth {
        Worth::Nothing => "nothing",
        Worth::Display => "attempts",
        Worth::AtMost => "at most",
        Worth::Exact => "exactly",
    }
}

/// As 802.11 divides frequencies, and as access points name them.
fn band(access_point: &AccessPoint) -> Option<&'static str> {
    match access_point.mhz? {
        2400..2500 => Some("2.4 GHz"),
        4900..5925 => Some("5 GHz"),
        5925..7200 => Some("6 GHz"),
        57_000..71_000 => Some("60 GHz"),
        _ => None,
    }
}

fn judge(station: &StationView, help: Help, helping: bool) -> State {
    if let Some(left) = station.left_s {
        return State("left", format!("left {} ago", span(left)));
    }
    let losses = match (station.worth, station.lost_minute) {
        (Worth::Nothing, _) => {
            return State("untold", "this access point does not tell".into());
        }
        (Worth::Display, _) => {
            let sentence = "this access point counts attempts, not losses, as it seems";
            return State("unbelieved", sentence.into());
        }
        (Worth::AtMost, 1) => "at most 1 loss in the last minute".into(),
        (Worth::Exact, 1) => "1 loss in the last minute".into(),
        (Worth::AtMost, lost) => format!("at most {lost} losses in the last minute"),
        (Worth::Exact, lost) => format!("{lost} losses in the last minute"),
    };
    if station.lost_minute == 0 {
        let (for_long, sent) = (span(station.clean_s), count(station.clean_sent));
        let sentence = format!("no help needed for {for_long}: 0 of {sent} packets lost");
        return State("clean", sentence);
    }
    if help.flows > 0 {
        let repaired = help.repaired_minute;
        return State("helping", format!("helping: {losses}, {repaired} repaired"));
    }
    let why = if helping { "none of its flows is helped" } else { "help is switched off" };
    State("losing", format!("{losses}; {why}"))
}

/// A time in its largest unit.
fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A number of packets with two or three digits that matter.
fn count(packets: u64) -> String {
    match packets {
        0..10_000 => packets.to_string(),
        10_000..1_000_000 => format!("{} k", packets / 1000),
        _ => format!("{}.{} M", packets / 1_000_000, packets / 100_000 % 10),
    }
}

#[cfg(test)]
mod tests;
