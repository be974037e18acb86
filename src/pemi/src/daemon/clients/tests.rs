// SPDX-License-Identifier: GPL-2.0-or-later
//! Sentences, and what programs are told.

use std::net::SocketAddr;

use pemi_engine::{FlowInfo, FlowState};
use pemi_radio::counting::Counting;
use pemi_radio::history::SLOTS;
use pemi_radio::mac::Mac;
use pemi_radio::station::Queue;

use serde_json::json;

use super::*;

fn station() -> StationView {
    let mut curve = [Sums::default(); SLOTS];
    curve[SLOTS - 2] = Sums { sent: 30_000, lost: 7, retried: 900 };
    curve[SLOTS - 1] = Sums { sent: 10_000, lost: 14, retried: 100 };
    StationView {
        mac: Mac([2, 0, 0, 0, 2, 0]),
        addresses: vec![IpAddr::from([192, 0, 2, 9])],
        interface: 7,
        left_s: None,
        worth: Worth::Exact,
        queue: Some(Queue { packets: 3, drops: 2, ..Queue::default() }),
        signal_dbm: Some(-54),
        rate_kbit: Some(65_000),
        lost_minute: 14,
        curve,
        total: Sums { sent: 50_000, lost: 30, retried: 1200 },
        clean_s: 3 * 3600 + 5,
        clean_sent: 1_234_567,
    }
}

fn view(stations: Vec<StationView>) -> View {
    let access_point = AccessPoint {
        index: 7,
        name: "phy1-ap0".into(),
        mhz: Some(5180),
        driver: "ath10k_ahb".into(),
        counting: Counting::Losses,
    };
    let access_points = vec![access_point];
    View { condition: Condition::Works, access_points, stations, ..View::default() }
}

/// Clients with a flow that is helped.
fn helped(hosts: &[u8]) -> Helped {
    let mut helped = Helped::default();
    let flow = |host: &u8| FlowInfo {
        client: SocketAddr::from(([192, 0, 2, *host], 50_000)),
        server: SocketAddr::from(([198, 51, 100, 1], 443)),
        age: 0,
        bytes_down: 1200,
        packets_down: 1,
        local_rtt: 0,
        inferred: 13,
        repaired: 13,
        resent: 15,
        protocol: pemi_engine::Protocol::Quic,
        state: FlowState::Protected,
        knowledge: pemi_engine::Knowledge::Replies,
    };
    helped.look(1, &hosts.iter().map(flow).collect::<Vec<_>>());
    helped
}

fn sentence(station: &StationView, flows: u32, helping: bool) -> String {
    let State(_, sentence) =
        judge(station, Help { flows, repaired_minute: 13, ..Help::default() }, helping);
    sentence
}

#[test]
fn sentences() {
    let losing = station();
    assert_eq!(sentence(&losing, 2, true), "helping: 14 losses in the last minute, 13 repaired");
    assert_eq!(
        sentence(&losing, 0, true),
        "14 losses in the last minute; none of its flows is helped"
    );
    assert_eq!(sentence(&losing, 0, false), "14 losses in the last minute; help is switched off");
    let at_most = StationView { worth: Worth::AtMost, lost_minute: 1, ..losing.clone() };
    assert_eq!(
        sentence(&at_most, 1, true),
        "helping: at most 1 loss in the last minute, 13 repaired"
    );
    let clean = StationView { lost_minute: 0, ..losing.clone() };
    assert_eq!(sentence(&clean, 2, true), "no help needed for 3 h: 0 of 1.2 M packets lost");
    for (worth, said) in [
        (Worth::Nothing, "this access point does not tell"),
        (Worth::Display, "this access point counts attempts, not losses, as it seems"),
    ] {
        assert_eq!(sentence(&StationView { worth, ..losing.clone() }, 2, true), said);
    }
    let left = StationView { left_s: Some(725), ..losing };
    assert_eq!(sentence(&left, 0, true), "left 12 min ago");
}

#[test]
fn a_station_with_everything() {
    let (view, helped) = (view(vec![station()]), helped(&[9]));
    let facts = Facts {
        view: &view,
        helped: &helped,
        names: &Names::default(),
        passing: &[],
        helping: true,
    };
    let answer = clients(&facts, 10, 0);
    assert_eq!((&answer["total"], &answer["radio"]), (&json!(1), &json!("works")));
    let client = &answer["clients"][0];
    for (name, value) in [
        ("name", Value::Null),
        ("addresses", json!(["192.0.2.9"])),
        ("mac", json!("02:00:00:00:02:00")),
        ("interface", json!("phy1-ap0")),
        ("band", json!("5 GHz")),
        ("connected", json!(true)),
        ("signal_dbm", json!(-54)),
        ("counts", json!("exactly")),
        ("sent", json!(50_000)),
        ("lost", json!(30)),
        (
            "hour",
            json!({"sent": 40_000, "lost": 21, "lost_per_mille": 0.525, "retries_percent": 2.5}),
        ),
        ("lost_minute", json!(14)),
        ("queue", json!({"packets": 3, "drops": 2})),
        (
            "helped",
            json!({"flows": 1, "knowledge": "replies", "repaired": 13, "copies": 15,
                "why": "the access point does not count, or was not asked yet",
                "repaired_minute": 13}),
        ),
        ("state", json!("helping")),
    ] {
        assert_eq!(client[name], value, "{name}");
    }
    assert_eq!(client["curve"][SLOTS - 1], json!([10_000, 14]));
    let status = radio(&view);
    let listed =
        json!({"interface": "phy1-ap0", "mhz": 5180, "driver": "ath10k_ahb", "stations": 1});
    assert_eq!(status["access_points"], json!([listed]));
}

#[test]
fn whose_gate_is_closed() {
    let (view, helped) = (view(vec![station()]), helped(&[]));
    let gate = |passing: &[Member]| {
        let names = &Names::default();
        let facts = Facts { view: &view, helped: &helped, names, passing, helping: true };
        let told = clients(&facts, 10, 0)["clients"][0]["gate"].clone();
        (told, super::passing(&view, passing))
    };
    assert_eq!(gate(&[]), (json!("open"), 0));
    assert_eq!(gate(&[IpAddr::from([192, 0, 2, 8]).into()]), (json!("open"), 0));
    assert_eq!(gate(&[IpAddr::from([192, 0, 2, 9]).into()]), (json!("closed"), 1));
    // On a bridge.
    assert_eq!(gate(&[Member::station([2, 0, 0, 0, 2, 0])]), (json!("closed"), 1));
}

#[test]
fn who_is_no_station_and_pages() {
    let mut second = station();
    second.mac = Mac([2, 0, 0, 0, 1, 0]);
    second.addresses.clear();
    second.interface = 99;
    let (view, helped) = (view(vec![station(), second]), helped(&[9, 4]));
    let facts = Facts {
        view: &view,
        helped: &helped,
        names: &Names::default(),
        passing: &[],
        helping: true,
    };
    let page = |limit, skip| clients(&facts, limit, skip)["clients"].as_array().unwrap().clone();
    let all = page(10, 0);
    let macs: Vec<_> = all.iter().map(|client| client["mac"].as_str()).collect();
    assert_eq!(macs, [Some("02:00:00:00:02:00"), Some("02:00:00:00:01:00"), None]);
    assert_eq!((&all[1]["interface"], &all[1]["band"]), (&Value::Null, &Value::Null));
    assert_eq!(
        (&all[2]["state"], &all[2]["helped"]["flows"], &all[2]["addresses"]),
        (&json!("elsewhere"), &json!(1), &json!(["192.0.2.4"]))
    );
    assert_eq!([page(2, 0), page(2, 2)].concat(), all);
    assert!(page(2, 9).is_empty());
}

#[test]
fn numbers_as_people_say_them() {
    let spans = [59, 61, 7199, 172_799, 172_800].map(span);
    assert_eq!(spans, ["59 s", "1 min", "1 h", "47 h", "2 d"]);
    let counts = [9_999, 10_000, 999_999, 1_000_000, 12_345_678].map(count);
    assert_eq!(counts, ["9999", "10 k", "999 k", "1.0 M", "12.3 M"]);
    let half = Sums { sent: 3, lost: 1, retried: 0 };
    assert!((share(1, 1000, half) - 333.333).abs() < 1e-9);
    assert_eq!(share(0, 1000, Sums::default()).to_bits(), 0);
}
