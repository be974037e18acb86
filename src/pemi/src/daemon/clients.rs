// SPDX-License-Identifier: GPL-2.0-or-later
//! What is told of clients: what the radio lost on the way to each, what was done about it, and
//! a sentence.

use std::net::IpAddr;

use pemi_radio::history::Sums;
use pemi_radio::meter::Worth;
use serde_json::{Value, json};

use crate::daemon::helped::{Help, Helped};
use crate::daemon::names::Names;
use crate::radio::view::{AccessPoint, Condition, StationView, View};

/// What is known, and by what it is put into words.
pub struct Facts<'a> {
    /// Of the radios.
    pub view: &'a View,
    /// Of the flows.
    pub helped: &'a Helped,
    /// How clients are called.
    pub names: &'a Names,
    /// Whether anybody is to be helped.
    pub helping: bool,
}

/// How a client is, for programs, and in words.
#[derive(Debug, PartialEq, Eq)]
struct State(&'static str, String);

/// The answer to `clients`: at most `limit` of them, without the first `skip`. Their order stays
/// the same as long as nobody comes or goes.
pub fn clients(facts: &Facts<'_>, limit: usize, skip: usize) -> Value {
    let mut stations: Vec<&StationView> = facts.view.stations.iter().collect();
    stations.sort_unstable_by_key(|station| station.mac);
    let mut others: Vec<IpAddr> = facts
        .helped
        .addresses()
        .filter(|address| !stations.iter().any(|station| station.addresses.contains(address)))
        .collect();
    others.sort_unstable();
    let total = stations.len() + others.len();
    let rows = stations.into_iter().map(|station| of_station(facts, station));
    let rows = rows.chain(others.into_iter().map(|address| of_other(facts, address)));
    let rows: Vec<Value> = rows.skip(skip).take(limit).collect();
    json!({"clients": rows, "total": total, "helping": facts.helping,
        "radio": facts.view.condition.name()})
}

/// The part of `status` that is about the radios.
pub fn radio(view: &View) -> Value {
    let access_points: Vec<Value> = view
        .access_points
        .iter()
        .map(|access_point| {
            let its = |it: &&StationView| it.interface == access_point.index && it.left_s.is_none();
            json!({"interface": access_point.name, "mhz": access_point.mhz,
                "driver": access_point.driver,
                "stations": view.stations.iter().filter(its).count()})
        })
        .collect();
    json!({"state": view.condition.name(), "access_points": access_points,
        "asked": view.asked.times, "last_us": view.asked.last_us,
        "longest_us": view.asked.longest_us, "missed": view.asked.missed})
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
    let curve: Vec<[u64; 2]> = station.curve.iter().map(|slot| [slot.sent, slot.lost]).collect();
    json!({
        "name": facts.names.of(Some(station.mac), &station.addresses),
        "addresses": texts(&station.addresses),
        "mac": station.mac.to_string(),
        "interface": place.map(|place| &place.name),
        "mhz": place.and_then(|place| place.mhz),
        "band": place.and_then(band),
        "driver": place.map(|place| &place.driver),
        "connected": station.left_s.is_none(),
        "signal_dbm": station.signal_dbm,
        "rate_kbit": station.rate_kbit,
        "counts": worth(station.worth),
        "sent": station.total.sent,
        "lost": station.total.lost,
        "retries": station.total.retried,
        "hour": {"sent": hour.sent, "lost": hour.lost,
            "lost_per_mille": share(hour.lost, 1000.0, hour),
            "retries_percent": share(hour.retried, 100.0, hour)},
        "curve": curve,
        "lost_minute": station.lost_minute,
        "queue": station.queue.map(|queue| json!({"packets": queue.packets, "drops": queue.drops})),
        "helped": helped(help),
        "state": state,
        "clean_s": station.clean_s,
        "clean_sent": station.clean_sent,
        "left_s": station.left_s,
        "sentence": sentence,
    })
}

/// A client that is helped, but is no station: it has a cable, or its access point is another box.
fn of_other(facts: &Facts<'_>, address: IpAddr) -> Value {
    let addresses = [address];
    json!({
        "name": facts.names.of(None, &addresses),
        "addresses": texts(&addresses),
        "connected": true,
        "helped": helped(facts.helped.of(&addresses)),
        "state": "elsewhere",
        "sentence": "on no radio of this router: its losses are inferred",
    })
}

fn helped(help: Help) -> Value {
    json!({"flows": help.flows, "repaired": help.repaired, "copies": help.copies,
        "repaired_minute": help.repaired_minute})
}

fn texts(addresses: &[IpAddr]) -> Vec<String> {
    addresses.iter().map(IpAddr::to_string).collect()
}

/// In parts of what was sent, with three digits behind the point.
fn share(of_it: u64, whole: f64, sums: Sums) -> f64 {
    let packets = sums.sent.max(of_it).max(1) as f64;
    (of_it as f64 * whole / packets * 1000.0).round() / 1000.0
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
