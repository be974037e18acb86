// SPDX-License-Identifier: GPL-2.0-or-later
//! When help stands back, and for whom.

use pemi_engine::{GONE, Knowledge, MS};
use serde_json::json;

use super::*;

/// A download of a megabyte in so many milliseconds.
fn download(network: u8, helped: bool, ms: i64) -> Outcome {
    let knowledge = Knowledge::Replies;
    Outcome { network, helped, knowledge, bytes: 1_000_000, busy: ms * MS, stalls: 0 }
}

fn benefit() -> Benefit {
    Benefit::new(&["br-lan".into(), "br-guest".into()], true, None)
}

/// Sixty downloads, one in four left alone, with so many milliseconds each.
fn sixty(network: u8, helped_ms: i64, alone_ms: i64) -> Vec<Outcome> {
    let one = |n: i64| match n % 4 {
        0 => download(network, false, alone_ms + n % 7 * 10),
        _ => download(network, true, helped_ms + n % 5 * 10),
    };
    (0..60).map(one).collect()
}

#[test]
fn help_that_helps_goes_on_and_is_told() {
    let mut benefit = benefit();
    benefit.take(&sixty(0, 1000, 1800));
    assert_eq!(benefit.turn(), None);
    let answer = benefit.json();
    let [lan, guest] = &answer["networks"].as_array().unwrap()[..] else { panic!("{answer}") };
    assert_eq!((&lan["device"], &lan["verdict"]), (&json!("br-lan"), &json!("helps")));
    assert_eq!((&guest["device"], &guest["verdict"]), (&json!("br-guest"), &json!("unknown")));
    assert_eq!(lan["helped"]["downloads"], 45);
    let (low, high) = (lan["interval"][0].as_f64().unwrap(), lan["interval"][1].as_f64().unwrap());
    assert!(low < 1.8 && 1.8 < high && high - low < 0.1, "{low} {high}");
    assert_eq!(benefit.errors().count(), 0);
}

#[test]
fn downloads_that_stood_still_are_compared() {
    let mut benefit = benefit();
    let answer = benefit.json();
    assert_eq!(answer["networks"][0]["stalled_percent"], Value::Null, "a side is missing");
    assert_eq!(answer["networks"][0]["stalled_interval"], Value::Null);
    // All of the same speed; of those left alone every second stood still, of the others one in nine.
    let stalls = |n: usize, helped: bool| u32::from(n.is_multiple_of(if helped { 9 } else { 8 }));
    let mut downloads = sixty(0, 1000, 1000);
    for (n, download) in downloads.iter_mut().enumerate() {
        download.stalls = stalls(n, download.helped);
    }
    benefit.take(&downloads);
    let lan = &benefit.json()["networks"][0];
    assert_eq!((&lan["helped"]["stalled"], &lan["alone"]["stalled"]), (&json!(5), &json!(8)));
    assert_eq!(lan["stalled_percent"], -42.2);
    let (low, high) = (&lan["stalled_interval"][0], &lan["stalled_interval"][1]);
    assert!(low.as_f64().unwrap() > -67.0 && high.as_f64().unwrap() < -15.0, "{low} {high}");
}

#[test]
fn where_it_harms_it_stands_back_and_says_so() {
    let mut benefit = benefit();
    benefit.take(&sixty(0, 1000, 1000));
    benefit.take(&sixty(1, 1500, 1000));
    assert_eq!(benefit.turn(), Some(0b10));
    assert_eq!(benefit.turn(), None, "that is known");
    let errors: Vec<String> = benefit.errors().collect();
    let [error] = &errors[..] else { panic!("{errors:?}") };
    assert!(error.starts_with("br-guest: Help is off: with it downloads were 0.6"), "{error}");
    assert_eq!(benefit.json()["networks"][1]["verdict"], "stands back");
}

#[test]
fn it_stands_back_before_sixty_downloads_are_over() {
    let mut benefit = benefit();
    let after = sixty(0, 1500, 1000).iter().position(|outcome| {
        benefit.take(std::slice::from_ref(outcome));
        benefit.turn().is_some()
    });
    assert!(after.is_some_and(|after| after < 40), "{after:?}");
}

#[test]
fn what_differs_a_little_is_no_harm() {
    let mut benefit = benefit();
    for _ in 0..10 {
        benefit.take(&sixty(0, 1030, 1000));
    }
    assert_eq!(benefit.turn(), None);
}

#[test]
fn the_next_day_it_begins_anew() {
    let mut benefit = benefit();
    benefit.take(&sixty(1, 1500, 1000));
    assert_eq!(benefit.turn(), Some(0b10));
    benefit.networks[1].back = Some(Instant::now());
    assert_eq!(benefit.turn(), Some(0));
    assert_eq!(benefit.json()["networks"][1]["helped"]["downloads"], 0);
}

#[test]
fn other_devices_take_along_what_is_known_of_them() {
    let mut benefit = benefit();
    benefit.take(&sixty(1, 1000, 1800));
    benefit.configure(&["br-guest".into()], false);
    assert_eq!(benefit.json()["networks"].as_array().unwrap().len(), 1);
    assert_eq!(benefit.json()["networks"][0]["verdict"], "helps");
    assert_eq!(benefit.turn(), Some(0), "numbers may be others");
    benefit.configure(&[], false);
    let answer = benefit.json();
    assert!(answer["networks"][0]["sentence"].as_str().unwrap().contains("control_percent"));
    benefit.take(&[download(0, true, 1), download(GONE, true, 1)]);
    assert_eq!(
        benefit.json()["networks"][0]["helped"]["downloads"],
        1,
        "nothing of a network that is gone"
    );
}

#[test]
fn a_network_that_was_down_for_a_night_is_known_and_stands_back_as_before() {
    let mut benefit = benefit();
    benefit.take(&sixty(0, 1000, 1800));
    benefit.take(&sixty(1, 1500, 1000));
    assert_eq!(benefit.turn(), Some(0b10));
    benefit.configure(&["br-lan".into()], true);
    assert_eq!((benefit.turn(), benefit.errors().count()), (Some(0), 0));
    assert_eq!(benefit.json()["networks"].as_array().unwrap().len(), 1);
    // Its number is another, too.
    benefit.configure(&["br-guest".into(), "br-lan".into()], true);
    assert_eq!(benefit.turn(), Some(0b01));
    assert_eq!(benefit.json()["networks"][0]["verdict"], "stands back");
    assert_eq!(benefit.json()["networks"][1]["verdict"], "helps");
    benefit.configure(&["br-lan".into()], true);
    benefit.reset();
    benefit.configure(&["br-guest".into()], true);
    assert_eq!(benefit.json()["networks"][0]["verdict"], "unknown", "reset forgets all of them");
}

#[test]
fn a_network_that_comes_up_after_the_daemon_is_known_from_the_file() {
    let folder = std::env::temp_dir().join(format!("pemi-late-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("benefit");
    let devices = ["br-lan".to_string(), "br-guest".to_string()];
    let mut benefit = Benefit::new(&devices, true, Some(&path));
    benefit.take(&sixty(0, 1000, 1800));
    benefit.take(&sixty(1, 1500, 1000));
    benefit.close();
    // One that is not there now is written along.
    let mut early = Benefit::new(&devices[..1], true, Some(&path));
    early.take(&[download(0, true, 1000)]);
    early.close();
    let mut late = Benefit::new(&devices[..1], true, Some(&path));
    late.configure(&devices, true);
    assert_eq!(late.turn(), Some(0b10));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_remembered_of_strange_networks_does_not_grow() {
    let mut benefit = benefit();
    for n in 0..100 {
        benefit.configure(&[format!("wg{n}")], true);
        benefit.take(&sixty(0, 1000, 1000));
    }
    assert_eq!(benefit.absent.len(), NETWORKS);
    assert_eq!(benefit.absent[0].name, "wg98");
}

/// Downloads of one network after another, as chance makes them.
struct Chance(u64);

impl Chance {
    /// From 0 to 999.
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as u32 % 1000
    }

    /// After how many of 5,000 downloads help stands back, if it does. Rates differ by a factor of six, as those
    /// of different servers do; with help they are so many thousandths; a line has a slow evening of every
    /// 300 downloads if `evenings`.
    fn stands_back(&mut self, percent: u32, thousandths: i64, evenings: bool) -> Option<usize> {
        let mut benefit = benefit();
        (0..5000).find(|n| {
            let helped = self.next() >= 10 * percent;
            let slower = if evenings && n % 300 >= 200 { 3 } else { 1 };
            let own = if helped { thousandths } else { 1000 };
            let ms = i64::from(200 + self.next()) * slower * 1000 / own;
            benefit.take(&[download(0, helped, ms)]);
            benefit.turn().is_some()
        })
    }
}

#[test]
fn where_help_changes_nothing_it_goes_on() {
    let mut chance = Chance(1);
    for (percent, evenings) in [(5, false), (50, false), (5, true), (25, true)] {
        let wrong = (0..50).filter(|_| chance.stands_back(percent, 1000, evenings).is_some());
        // One in a hundred at most; two of fifty would be 4 %.
        let wrong = wrong.count();
        assert!(wrong <= 1, "{wrong} of 50 networks with {percent} % left alone, {evenings}");
    }
}

#[test]
fn real_harm_is_seen_in_a_day_of_downloads() {
    let mut chance = Chance(2);
    for (percent, most) in [(5, 500), (25, 150)] {
        let mut after: Vec<usize> =
            (0..60).filter_map(|_| chance.stands_back(percent, 500, true)).collect();
        after.sort_unstable();
        let half = after[after.len() / 2];
        println!("{percent} % left alone: after {half} downloads, at most {:?}", after.last());
        assert!(after.len() == 60 && half < most, "{half}");
    }
}
