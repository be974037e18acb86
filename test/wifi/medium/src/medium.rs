// SPDX-License-Identifier: GPL-2.0-or-later
//! Between hwsim's radios and the channel of `pemi-air`: frames go in, fates come out.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use pemi_air::Nanos;
use pemi_air::channel::{self, Bar, Channel, Event, Kind, Role, Station};
use pemi_air::settings::Settings;

use crate::frame80211;
use crate::hwsim::{Frame, Radios};
use crate::log::Log;

/// How many radios there are of each kind; access points come first.
#[derive(Clone, Copy, Debug)]
pub struct Population {
    /// Access points.
    pub access_points: usize,
    /// Stations.
    pub stations: usize,
}

/// The air with its log.
pub struct Medium {
    radios: Radios,
    population: Population,
    channel: Channel<Frame>,
    stations: Vec<Station>,
    /// The channel's time began here, so that its fades are those of its seed.
    origin: Nanos,
    log: Option<(PathBuf, Log)>,
    /// The frame that was lost last between two: a request not to wait has its addresses.
    lost: BTreeMap<(Station, Station), Frame>,
}

impl Medium {
    /// An air without errors, until told otherwise.
    pub fn new(radios: Radios, population: Population, now: Nanos) -> Medium {
        let (channel, stations) = channel(&Settings::default(), population, 0);
        let lost = BTreeMap::new();
        Medium { radios, population, channel, stations, origin: now, log: None, lost }
    }

    /// Where frames come from; wait for it.
    pub fn radios(&self) -> &Radios {
        &self.radios
    }

    /// When to call [`Medium::carry`] next.
    pub fn next_event(&self) -> Option<Nanos> {
        Some(self.channel.next_event()? + self.origin)
    }

    /// Takes what the radios send.
    pub fn take(&mut self, now: Nanos) -> Result<()> {
        while let Some(frame) = self.radios.receive()? {
            self.push(now - self.origin, frame);
        }
        Ok(())
    }

    fn push(&mut self, at: Nanos, frame: Frame) {
        let (Some(from), to) = (self.station(frame.from), frame.to) else { return };
        let to = to.and_then(|to| self.station(to));
        let kind = match (frame80211::tid(&frame.bytes), to) {
            (Some(tid), Some(_)) => {
                Kind::Data { tid, sequence: frame80211::sequence(&frame.bytes) }
            }
            _ => Kind::Plain,
        };
        let bytes = u32::try_from(frame.bytes.len()).expect("frames are short");
        self.channel.push(at, channel::Frame { handle: frame, from, to, bytes, kind });
    }

    fn station(&self, radio: usize) -> Option<Station> {
        self.stations.get(radio).copied()
    }

    /// Lets everything happen that happens until now.
    pub fn carry(&mut self, now: Nanos) -> Result<()> {
        self.channel.advance(now - self.origin);
        while let Some(event) = self.channel.pop_event() {
            match event {
                Event::Frame(fate) => self.settle(fate)?,
                Event::Bar(bar) => self.request(bar)?,
            }
        }
        Ok(())
    }

    fn settle(&mut self, mut fate: channel::Fate<Frame>) -> Result<()> {
        let frame = &fate.frame.handle;
        // The receiver first: its answer is on the way before the sender knows.
        for station in &self.stations {
            if fate.heard >> station.index() & 1 == 1 {
                self.radios.hear(station.index(), &frame.bytes, frame)?;
            }
        }
        let attempts = u8::try_from(fate.attempts).unwrap_or(u8::MAX);
        self.radios.tell(frame, fate.delivered, attempts)?;
        if let (false, Some(to)) = (fate.delivered, fate.frame.to) {
            self.lost.insert((fate.frame.from, to), frame.clone());
        }
        fate.entered += self.origin;
        fate.at += self.origin;
        if let Some((_, log)) = &mut self.log {
            log.note(fate);
        }
        Ok(())
    }

    /// A block ack request arrives, which hwsim's radios do not send by themselves.
    fn request(&mut self, bar: Bar) -> Result<()> {
        let Some(lost) = self.lost.get(&(bar.from, bar.to)) else { return Ok(()) };
        let request = frame80211::block_ack_request(&lost.bytes, bar.tid, bar.start);
        self.radios.hear(bar.to.index(), &request, lost)
    }

    /// What the guest's script says: `begin SETTINGS SEED LOG`, with a file or the name of a
    /// preset, and `end`. A file beside the log tells when it is done.
    pub fn obey(&mut self, line: &str, now: Nanos) -> Result<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["begin", settings, seed, log] => {
                self.begin(settings, seed.parse()?, now)?;
                self.log = Some((log.into(), Log::new(self.population.access_points)));
                File::create(format!("{log}.begun"))?;
            }
            ["end"] => {
                let (path, log) = self.log.take().context("end without begin")?;
                log.write(&path)?;
                File::create(format!("{}.ended", path.display()))?;
            }
            _ => bail!("no such command: {line}"),
        }
        Ok(())
    }

    fn begin(&mut self, settings: &str, seed: u64, now: Nanos) -> Result<()> {
        let settings = read(settings)?;
        let (next, stations) = channel(&settings, self.population, seed);
        let mut before = std::mem::replace(&mut self.channel, next);
        self.stations = stations;
        self.origin = now;
        // A beacon, hardly more: nothing runs yet.
        for frame in before.drain() {
            self.push(0, frame);
        }
        Ok(())
    }
}

fn read(settings: &str) -> Result<Settings> {
    let read = if settings.contains('/') {
        Settings::parse(&fs::read_to_string(settings).with_context(|| settings.to_owned())?)
    } else {
        Settings::preset(settings)
    };
    read.map_err(anyhow::Error::msg).with_context(|| settings.to_owned())
}

/// A channel with these radios on it, the neighbours at their own distances.
fn channel(
    settings: &Settings,
    population: Population,
    seed: u64,
) -> (Channel<Frame>, Vec<Station>) {
    let mut channel = Channel::new(settings.radio.clone(), settings.link.clone(), seed);
    let mut add = |role, count| -> Vec<Station> { (0..count).map(|_| channel.add(role)).collect() };
    let access_points = add(Role::AccessPoint, population.access_points);
    let clients = add(Role::Client, population.stations);
    // The first client is the one that is measured.
    for (neighbour, client) in settings.neighbours.iter().zip(clients.iter().skip(1)) {
        for access_point in &access_points {
            channel.set_link(*access_point, *client, neighbour.link.clone());
        }
    }
    (channel, [access_points, clients].concat())
}
