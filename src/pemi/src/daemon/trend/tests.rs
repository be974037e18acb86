// SPDX-License-Identifier: GPL-2.0-or-later
//! What is kept of days, for how long, and of which files.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use super::*;

/// A Sunday evening.
const NOW: u64 = 1_795_377_600;

fn second(t: u64) -> Sample {
    Sample {
        t,
        down_bps: 8000,
        up_bps: 800,
        inferred: 3,
        repaired: 2,
        upstream: 1,
        ..Sample::default()
    }
}

fn parts(trend: &Trend, span: Span) -> Vec<Vec<u64>> {
    serde_json::from_value(trend.json(span, PARTS, 0)["parts"].clone()).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("pemi-trend-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_day_and_a_week_are_kept_and_no_more() {
    let mut trend = Trend::new(None);
    // A second in ten, for nine days.
    (0..9 * 8640).for_each(|n| trend.add(&second(NOW + 10 * n)));
    let (day, week) = (parts(&trend, Span::Day), parts(&trend, Span::Week));
    assert_eq!((day.len(), week.len()), (144, 168));
    let end = NOW + 9 * 86400;
    assert_eq!(day[0], [end - 86400, 60, 180, 120, 60, 60_000, 6000]);
    assert_eq!(week[0], [end - 7 * 86400, 360, 1080, 720, 360, 360_000, 36_000]);
    assert!(text(&trend.rings).len() < 32 * 1024);
    let some = trend.json(Span::Week, 2, 166);
    assert_eq!(some["parts"].as_array().unwrap().len(), 2);
    assert_eq!((some["total"].as_u64(), some["part_s"].as_u64()), (Some(168), Some(3600)));
    assert_eq!(trend.json(Span::Day, 5, 144)["parts"], json!([]));
}

#[test]
fn what_was_long_ago_goes_although_nothing_came_since() {
    let mut trend = Trend::new(None);
    trend.add(&second(NOW));
    trend.add(&second(NOW + 86_400));
    assert_eq!(parts(&trend, Span::Day).len(), 1);
    assert_eq!(parts(&trend, Span::Week).len(), 2);
}

#[test]
fn a_clock_that_starts_in_the_past_takes_nothing_away() {
    let mut trend = Trend::new(None);
    trend.add(&second(NOW));
    (0..60).for_each(|n| trend.add(&second(1_700_000_000 + n)));
    trend.add(&second(NOW + 600));
    assert_eq!(parts(&trend, Span::Day).len(), 2);
    // It was ahead before, and is right now.
    (0..u64::from(DISBELIEF)).for_each(|n| trend.add(&second(NOW - 86_400 + n)));
    assert_eq!(parts(&trend, Span::Day).len(), 1);
    assert_eq!(parts(&trend, Span::Week)[0][1], 1);
}

#[test]
fn a_restart_takes_it_up() {
    let folder = folder("restart");
    let benefit = folder.join("benefit");
    let mut trend = Trend::new(Some(&benefit));
    (0..700).for_each(|n| trend.add(&second(NOW + n)));
    trend.close();
    let mut after = Trend::new(Some(&benefit));
    after.add(&second(NOW + 1000));
    assert_eq!(parts(&after, Span::Day)[1][1], 101);
    assert_eq!(parts(&after, Span::Week)[0][1], 701);
    assert!(!benefit.exists(), "that file is another's");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_router_that_nobody_uses_writes_nothing() {
    let folder = folder("idle");
    let mut trend = Trend::new(Some(&folder.join("benefit")));
    trend.add(&Sample { t: NOW, ..Sample::default() });
    trend.close();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn files_of_others_are_left_out() {
    let mut good = Trend::new(None);
    good.add(&second(NOW));
    let good = text(&good.rings);
    assert!(parse(&good).is_some());
    for text in [
        "",
        "7",
        "{}",
        "[]",
        r#"{"version":1,"day":[],"week":7}"#,
        r#"{"version":1,"day":[[600,1,1,1,1,1]],"week":[]}"#,
        r#"{"version":1,"day":[[601,1,1,1,1,1,1]],"week":[]}"#,
        r#"{"version":1,"day":[[600,-1,1,1,1,1,1]],"week":[]}"#,
        r#"{"version":1,"day":[[600,1,1,1,1,1,18446744073709551615]],"week":[]}"#,
        r#"{"version":1,"day":[[1200,1,1,1,1,1,1],[600,1,1,1,1,1,1]],"week":[]}"#,
        &good.replace("\"version\":1", "\"version\":2"),
        &good[..good.len() - 2],
    ] {
        assert!(parse(text).is_none(), "{text}");
    }
    let many = vec![[600; COLUMNS]; 145];
    assert!(parse(&json!({"version": 1, "day": many, "week": []}).to_string()).is_none());
}
