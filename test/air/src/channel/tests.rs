// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::errors::Errors;
use crate::{MS, US};

fn channel(radio: Radio, errors: Errors, seed: u64) -> (Channel<u32>, Station, Station) {
    let link = LinkSettings { errors, ..LinkSettings::default() };
    let mut channel = Channel::new(radio, link, seed);
    let ap = channel.add(Role::AccessPoint);
    let client = channel.add(Role::Client);
    (channel, ap, client)
}

fn data(number: u32, from: Station, to: Station) -> Frame<u32> {
    let kind = Kind::Data { tid: 0, sequence: (number & 0xfff) as u16 };
    Frame { handle: number, from, to: Some(to), bytes: 1_300, kind }
}

fn constant(good: f64) -> Errors {
    Errors { good, ..Errors::default() }
}

/// Sends packets at a steady pace and gives their fates and the requests.
fn stream(
    channel: &mut Channel<u32>,
    (from, to): (Station, Station),
    count: u32,
    gap: Nanos,
) -> (Vec<Fate<u32>>, Vec<Bar>) {
    for number in 0..count {
        channel.push(Nanos::from(number) * gap, data(number, from, to));
    }
    while let Some(at) = channel.next_event() {
        channel.advance(at);
    }
    let (mut fates, mut bars) = (Vec::new(), Vec::new());
    while let Some(event) = channel.pop_event() {
        match event {
            Event::Frame(fate) => fates.push(fate),
            Event::Bar(bar) => bars.push(bar),
        }
    }
    (fates, bars)
}

#[test]
fn a_lone_frame_takes_contention_and_airtime() {
    let (mut channel, ap, client) = channel(Radio::default(), constant(0.0), 1);
    let (fates, _) = stream(&mut channel, (ap, client), 1, 0);
    // 16 + 9 x (3 + 0..=15) contention, 40 preamble, 1,308 bytes at 65 Mbit/s, 48 answer.
    let least = (16 + 27 + 40 + 161 + 48 - 1) * US;
    assert!((least..least + (15 * 9 + 2) * US).contains(&fates[0].at), "{fates:?}");
    assert!(fates[0].delivered && fates[0].attempts == 1 && fates[0].heard == 2);
}

#[test]
fn every_frame_has_one_fate_and_the_counts_agree() {
    let radio = Radio { attempts: 4, ..Radio::default() };
    let (mut channel, ap, client) = channel(radio, constant(0.4), 3);
    let (fates, _) = stream(&mut channel, (ap, client), 3_000, MS);
    let mut handles: Vec<u32> = fates.iter().map(|fate| fate.frame.handle).collect();
    handles.sort_unstable();
    assert_eq!(handles, (0..3_000).collect::<Vec<_>>());
    let failed = fates.iter().filter(|fate| !fate.delivered).count() as u64;
    let counts = channel.counts(ap, client);
    assert_eq!((counts.frames, counts.failed), (3_000, failed));
    let attempts: u64 = fates.iter().map(|fate| u64::from(fate.attempts)).sum();
    assert_eq!(counts.retries, attempts - 3_000);
    assert_eq!(channel.waiting(ap, client).count(), 0);
}

#[test]
fn what_is_lost_after_retries_is_the_error_to_the_power_of_the_attempts() {
    for (attempts, error) in [(4, 0.3), (4, 0.5), (7, 0.5), (1, 0.1)] {
        let radio = Radio { attempts, ..Radio::default() };
        let (mut channel, ap, client) = channel(radio, constant(error), 5);
        let (fates, _) = stream(&mut channel, (ap, client), 20_000, MS);
        let lost = fates.iter().filter(|fate| !fate.delivered).count() as f64;
        let expected = 20_000.0 * error.powi(attempts as i32);
        assert!((lost - expected).abs() < 4.0 * expected.sqrt(), "{lost} of {expected}");
    }
}

#[test]
fn where_nobody_answers_the_backoff_begins_anew_with_each_frame() {
    // Nothing arrives, requests neither, which then would be all that is sent.
    let radio = Radio { attempts: 4, bar: false, ..Radio::default() };
    let (mut channel, ap, client) = channel(radio, constant(1.0), 2);
    let (fates, _) = stream(&mut channel, (client, ap), 200, 20 * MS);
    let waited = fates.iter().map(|fate| fate.at - fate.entered);
    // Four windows of 15 to 127 slots of 9 us are 1.0 ms in the mean, four times the airtime is as
    // much; windows that went on to grow would be 18 ms.
    assert!(fates.iter().all(|fate| !fate.delivered && fate.attempts == 4));
    let mean = waited.sum::<Nanos>() / 200;
    assert!((3 * MS / 2..3 * MS).contains(&mean), "{mean}");
}

#[test]
fn a_full_queue_goes_in_aggregates_of_64_frames_or_4_ms() {
    let (mut channel, ap, client) = channel(Radio::default(), constant(0.0), 1);
    let (fates, _) = stream(&mut channel, (ap, client), 200, 0);
    let mut sizes = Vec::new();
    for fates in fates.chunk_by(|a, b| a.at == b.at) {
        sizes.push(fates.len());
    }
    // The first frame found the air idle; 4 ms hold 24 of 161 us.
    assert_eq!(sizes[..4], [24, 24, 24, 24], "{sizes:?}");
    let rate = 200.0 * 1_300.0 * 8.0 / (fates[199].at as f64 / 1e9) / 1e6;
    assert!((55.0..65.0).contains(&rate), "{rate} Mbit/s of 65");

    let fast = LinkSettings { rate_mbit: 600.0, ..LinkSettings::default() };
    channel.set_link(ap, client, fast);
    let start = channel.now;
    for number in 200..400 {
        channel.push(start, data(number, ap, client));
    }
    channel.advance(start + 100 * MS);
    let ends: Vec<Nanos> = std::iter::from_fn(|| channel.pop_event())
        .filter_map(|event| if let Event::Frame(fate) = event { Some(fate.at) } else { None })
        .collect();
    let sizes: Vec<usize> = ends.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
    assert_eq!(sizes, [64, 64, 64, 8]);
}

#[test]
fn an_aggregate_spans_64_sequence_numbers() {
    let fast = LinkSettings { rate_mbit: 600.0, ..LinkSettings::default() };
    let mut channel = Channel::new(Radio::default(), fast, 1);
    let ap = channel.add(Role::AccessPoint);
    let client = channel.add(Role::Client);
    // Across the end of the twelve bits.
    for number in [4_090, 4_094, 4_096 + 57, 4_096 + 58] {
        channel.push(0, data(number, ap, client));
    }
    channel.advance(10 * MS);
    let ends: Vec<Nanos> = std::iter::from_fn(|| channel.pop_event())
        .filter_map(|event| if let Event::Frame(fate) = event { Some(fate.at) } else { None })
        .collect();
    assert_eq!(ends.chunk_by(|a, b| a == b).map(<[_]>::len).collect::<Vec<_>>(), [3, 1]);
}

#[test]
fn repeated_frames_go_first_and_a_request_follows_a_loss() {
    let radio = Radio { attempts: 4, ..Radio::default() };
    let (mut channel, ap, client) = channel(radio, constant(0.4), 7);
    let (fates, bars) = stream(&mut channel, (ap, client), 2_000, MS / 2);
    let losses: Vec<&Fate<u32>> = fates.iter().filter(|fate| !fate.delivered).collect();
    assert!(losses.len() > 20 && !bars.is_empty());
    for loss in losses {
        let number = loss.frame.handle;
        let bar = bars.iter().find(|bar| {
            let ahead = (u32::from(bar.start)).wrapping_sub(number + 1) & 0xfff;
            bar.at > loss.at && ahead < 64
        });
        let after = bar.expect("a request for each loss").at - loss.at;
        assert!(after < 20 * MS, "{after}");
    }
    // With the oldest first, a frame is settled at most an aggregate before an older.
    let mut settled = std::collections::BTreeSet::new();
    for fate in &fates {
        let older_left = (0..fate.frame.handle).filter(|n| !settled.contains(n)).count();
        assert!(older_left < 64);
        settled.insert(fate.frame.handle);
    }
    let silent = Radio { attempts: 4, bar: false, ..Radio::default() };
    let (mut channel, ap, client) = self::channel(silent, constant(0.4), 7);
    assert!(stream(&mut channel, (ap, client), 500, MS).1.is_empty());
}

#[test]
fn errors_in_time_have_the_share_and_the_runs_that_were_asked_for() {
    let errors = Errors { good: 0.0, bad: 1.0, good_ms: 90.0, bad_ms: 10.0, by_attempt: vec![] };
    let mut fading = Fading::new(errors, Random::new(1));
    let bad: Vec<bool> = (0..2_000_000).map(|n| fading.is_bad(n * 100 * US)).collect();
    let share = bad.iter().filter(|bad| **bad).count() as f64 / bad.len() as f64;
    assert!((share - 0.1).abs() < 0.005, "{share}");
    let runs = bad.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[_]>::len);
    let runs: Vec<usize> = runs.collect();
    let mean = runs.iter().sum::<usize>() as f64 / runs.len() as f64 / 10.0;
    assert!((mean - 10.0).abs() < 0.5, "{mean} ms");
}

#[test]
fn both_directions_share_the_air() {
    let alone = {
        let (mut channel, ap, client) = channel(Radio::default(), constant(0.0), 1);
        let (fates, _) = stream(&mut channel, (ap, client), 1_000, 0);
        fates.last().unwrap().at
    };
    let (mut channel, ap, client) = channel(Radio::default(), constant(0.0), 1);
    for number in 0..1_000 {
        channel.push(0, data(number, ap, client));
        channel.push(0, data(number, client, ap));
    }
    while let Some(at) = channel.next_event() {
        channel.advance(at);
    }
    // Twice the frames, and what collided once more; both had a fair part all along.
    let both = channel.now as f64 / alone as f64;
    assert!((1.9..2.6).contains(&both), "{both}");
    let events = std::iter::from_fn(|| channel.pop_event()).take(1_000);
    let up =
        events.filter(|event| matches!(event, Event::Frame(fate) if fate.frame.from == client));
    assert!((300..700).contains(&up.count()));
}

#[test]
fn nothing_goes_to_a_sleeping_station_and_everybody_hears_a_multicast() {
    let (mut channel, ap, client) = channel(Radio::default(), constant(0.0), 1);
    let other = channel.add(Role::Client);
    channel.set_asleep(0, client, true);
    channel.push(0, data(1, ap, client));
    channel.push(0, data(2, ap, other));
    channel.advance(50 * MS);
    let handles = |channel: &mut Channel<u32>| -> Vec<u32> {
        std::iter::from_fn(|| channel.pop_event())
            .filter_map(|event| match event {
                Event::Frame(fate) => Some(fate.frame.handle),
                Event::Bar(_) => None,
            })
            .collect()
    };
    assert_eq!(handles(&mut channel), [2]);
    channel.set_asleep(60 * MS, client, false);
    channel.advance(61 * MS);
    assert_eq!(handles(&mut channel), [1]);

    let beacon = Frame { handle: 3, from: ap, to: None, bytes: 300, kind: Kind::Plain };
    channel.push(70 * MS, beacon);
    channel.advance(71 * MS);
    assert!(matches!(channel.pop_event(), Some(Event::Frame(fate)) if fate.heard == 0b110));
}

#[test]
fn the_same_seed_gives_the_same_fates() {
    let rows = |seed| {
        let errors =
            Errors { good: 0.1, bad: 0.9, good_ms: 100.0, bad_ms: 10.0, by_attempt: vec![] };
        let (mut channel, ap, client) = channel(Radio::default(), errors, seed);
        let (fates, _) = stream(&mut channel, (ap, client), 2_000, MS / 3);
        fates.iter().map(Fate::row).collect::<Vec<_>>()
    };
    assert_eq!(rows(1), rows(1));
    assert_ne!(rows(1), rows(2));
    let columns = Fate::HEADER.split(',').count();
    assert_eq!(rows(1)[0].split(',').count(), columns);
}
