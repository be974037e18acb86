// SPDX-License-Identifier: GPL-2.0-or-later
//! Prints the access points of this machine and their stations; with a number of seconds, what
//! they lose meanwhile, too:
//!
//! ```sh
//! stations
//! stations 60
//! ```

use std::io;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use pemi_radio::counting::Counting;
use pemi_radio::event::Event;
use pemi_radio::interface::Interface;
use pemi_radio::kernel::driver;
use pemi_radio::radio::Radio;
use pemi_radio::schedule::{Ask, Schedule};
use pemi_radio::station::Station;
use pemi_radio::stations::{Sample, Stations};

/// How long an event may wait.
const PATIENCE: Duration = Duration::from_millis(100);

fn access_points(radio: &mut Radio) -> io::Result<Vec<Interface>> {
    Ok(radio.interfaces()?.into_iter().filter(Interface::has_stations).collect())
}

fn counting(access_point: &Interface) -> (String, Counting) {
    let driver = driver(&access_point.name).unwrap_or_default();
    let counting = Counting::of(&driver);
    (driver, counting)
}

fn print_station(station: &Station) {
    let counters = station.counters;
    print!("  {}  sent {}", station.mac, counters.sent);
    print!("  retries {}  failed {}", counters.retries, counters.failed);
    if let Some(signal) = station.signal_dbm {
        print!("  {signal} dBm");
    }
    if let Some(rate) = station.rate_kbit {
        print!("  {} Mbit/s", rate / 1000);
    }
    if let Some(queue) = station.queue {
        print!("  queue {} packets, {} dropped", queue.packets, queue.drops);
    }
    println!("  for {} s", station.connected_s.unwrap_or_default());
}

fn list(radio: &mut Radio) -> io::Result<()> {
    for access_point in access_points(radio)? {
        let (driver, counting) = counting(&access_point);
        let phy = access_point.radio.unwrap_or_default();
        println!("{}  phy{phy}  {driver}, failed: {counting:?}", access_point.name);
        radio.stations(access_point.index, print_station)?;
    }
    Ok(())
}

fn print_sample(station: &Station, sample: &Sample) {
    let delta = sample.delta;
    if delta.lost > 0 || sample.queue_drops > 0 || sample.moved {
        println!(
            "{:9.3} s  {}  sent {}  lost {} ({:?})  dropped {}{}",
            sample.to.as_secs_f64(),
            station.mac,
            delta.sent,
            delta.lost,
            delta.worth,
            sample.queue_drops,
            if sample.moved { "  moved" } else { "" }
        );
    }
}

fn begin(radio: &mut Radio, schedule: &mut Schedule, known: &mut Stations) -> io::Result<()> {
    let found = access_points(radio)?;
    for access_point in &found {
        known.counts(access_point.index, counting(access_point).1);
    }
    let indices: Vec<u32> = found.iter().map(|access_point| access_point.index).collect();
    schedule.interfaces(&indices);
    Ok(())
}

fn watch(radio: &mut Radio, time: Duration) -> io::Result<()> {
    let (mut schedule, mut known) = (Schedule::default(), Stations::default());
    let (mut events, start) = (radio.events()?, Instant::now());
    begin(radio, &mut schedule, &mut known)?;
    while start.elapsed() < time {
        while let Some(event) = events.hear()? {
            println!("{:9.3} s  {event:?}", start.elapsed().as_secs_f64());
            known.hear(start.elapsed(), &event);
            if !matches!(event, Event::Joined { .. } | Event::Left { .. }) {
                begin(radio, &mut schedule, &mut known)?;
            }
        }
        let from = start.elapsed();
        if let Some(ask) = schedule.next(from) {
            let mut take = |station: &Station| {
                if let Some(sample) = known.look(start.elapsed(), station) {
                    print_sample(station, &sample);
                }
            };
            match ask {
                Ask::Interface(index) => {
                    if radio.stations(index, take)? {
                        known.complete(from, index);
                    }
                }
                Ask::Station(index, mac) => radio.station(index, mac)?.iter().for_each(&mut take),
            }
            schedule.asked(ask, from, start.elapsed());
        }
        let until = schedule.deadline().unwrap_or(time);
        thread::sleep(until.saturating_sub(start.elapsed()).min(PATIENCE));
    }
    for record in known.iter() {
        let (total, lost) = (record.history().total(), record.history().lost_last_minute(time));
        println!("{}  {:?}  {total:?}  in the last minute {lost}", record.mac(), record.worth());
    }
    Ok(())
}

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).and_then(|number| number.parse().ok());
    let done = Radio::open().and_then(|mut radio| match seconds {
        None => list(&mut radio),
        Some(seconds) => watch(&mut radio, Duration::from_secs(seconds)),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stations: {error}");
            ExitCode::FAILURE
        }
    }
}
