// SPDX-License-Identifier: GPL-2.0-or-later
//! Between hwsim's radios and the channel of `pemi-air`: frames go in, fates come out.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use linkem::queue::CodelTimes;
use linkem::wifi::codel_times;
use pemi_air::channel::{self, Bar, Channel, Event, Kind, Role, Station};
use pemi_air::settings::{LinkSettings, Settings};
use pemi_air::{Nanos, airtime};

use crate::frame80211;
use crate::hwsim::{Frame, Radios, Told};
use crate::log::{End, Log};
use crate::txq::{Lane, Next, Txqs};

/// How many radios there are of each kind; access points come first.
#[derive(Clone, Copy, Debug)]
pub struct Population {
    /// Access points.
    pub access_points: usize,
    /// Stations.
    pub stations: usize,
}

/// A frame on its way, as long as its sender does not know what became of it.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The frame.
    pub frame: Frame,
    /// When its sender handed it over.
    pub entered: Nanos,
    /// Where it waited, and AQL's estimate of its time on the air.
    queued: Option<(Lane, Nanos)>,
}

/// The air with its log, and the queues in front of it.
pub struct Medium {
    radios: Radios,
    population: Population,
    txqs: Txqs<Sent>,
    channel: Channel<Sent>,
    stations: Vec<Station>,
    /// Of each station that is no access point.
    links: BTreeMap<Station, LinkSettings>,
    /// The channel's time began here, so that its fades are those of its seed.
    origin: Nanos,
    log: Option<(PathBuf, Log)>,
    /// The frame that was lost last between two: a request not to wait has its addresses.
    lost: BTreeMap<(Station, Station), Frame>,
}

impl Medium {
    /// An air without errors, until told otherwise.
    pub fn new(radios: Radios, population: Population, now: Nanos) -> Medium {
        let Lab { channel, stations, links } = lab(&Settings::default(), population, 0);
        let (txqs, lost) = Default::default();
        Medium { radios, population, txqs, channel, stations, links, origin: now, log: None, lost }
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
            self.push(now, frame)?;
        }
        self.hand_down(now - self.origin)
    }

    /// A radio has a frame for the air.
    fn push(&mut self, now: Nanos, mut frame: Frame) -> Result<()> {
        let ends = self.station(frame.from).zip(frame.to.and_then(|to| self.station(to)));
        if let (Some((from, to)), Some(tid)) = (ends, frame80211::tid(&frame.bytes)) {
            let lane = (from, to, tid);
            let times = self.codel_times(lane);
            let sequence = frame80211::sequence(&frame.bytes);
            let bytes = length(&frame);
            let sent = Sent { frame, entered: now, queued: None };
            let at = now - self.origin;
            if let Some((_, sent)) = self.txqs.push(at, lane, times, sequence, sent, bytes) {
                drop_frame(&self.radios, self.log.as_mut(), sent)?;
            }
            return Ok(());
        }
        // A session begins with the numbers that its frames will have.
        if let (Some((from, to)), Some(tid)) = (ends, frame80211::session_request(&frame.bytes))
            && let Some(start) = self.txqs.next_sequence((from, to, tid))
        {
            frame80211::set_session_start(&mut frame.bytes, start);
        }
        self.send(now - self.origin, Sent { frame, entered: now, queued: None });
        Ok(())
    }

    /// Gives the air what the queues let down.
    fn hand_down(&mut self, at: Nanos) -> Result<()> {
        loop {
            let Medium { txqs, radios, log, links, .. } = self;
            let mut outcome = Ok(());
            let rate = |(from, to, _): Lane| link(links, from, to).rate_mbit();
            let next = txqs.pop(
                at,
                |lane, bytes| airtime::mpdu(bytes, rate(lane)),
                |_, sent| {
                    if outcome.is_ok() {
                        outcome = drop_frame(radios, log.as_mut(), sent);
                    }
                },
            );
            outcome?;
            let Some(Next { lane, sequence, airtime, item: mut sent }) = next else {
                return Ok(());
            };
            frame80211::set_sequence(&mut sent.frame.bytes, sequence);
            sent.queued = Some((lane, airtime));
            self.send(at, sent);
        }
    }

    /// The air takes a frame.
    fn send(&mut self, at: Nanos, sent: Sent) {
        let frame = &sent.frame;
        let (Some(from), to) = (self.station(frame.from), frame.to) else { return };
        let to = to.and_then(|to| self.station(to));
        let kind = match (frame80211::tid(&frame.bytes), to) {
            (Some(tid), Some(_)) => {
                Kind::Data { tid, sequence: frame80211::sequence(&frame.bytes) }
            }
            _ => Kind::Plain,
        };
        let bytes = length(frame);
        self.channel.push(at, channel::Frame { handle: sent, from, to, bytes, kind });
    }

    fn station(&self, radio: usize) -> Option<Station> {
        self.stations.get(radio).copied()
    }

    /// As mac80211 sets them by what its rate control expects and who else there is.
    fn codel_times(&self, (from, to, _): Lane) -> CodelTimes {
        let router = from.index() < self.population.access_points;
        let stations = if router { self.population.stations } else { 1 };
        codel_times(link(&self.links, from, to).goodput_mbit(), stations)
    }

    /// Lets everything happen that happens until now.
    pub fn carry(&mut self, now: Nanos) -> Result<()> {
        let now = now - self.origin;
        // What goes off the air makes room for more, then and not now.
        while let Some(at) = self.channel.next_event().filter(|at| *at <= now) {
            self.channel.advance(at);
            self.collect()?;
            self.hand_down(at)?;
        }
        self.channel.advance(now);
        self.collect()
    }

    fn collect(&mut self) -> Result<()> {
        while let Some(event) = self.channel.pop_event() {
            match event {
                Event::Frame(fate) => self.settle(fate)?,
                Event::Bar(bar) => self.request(bar)?,
            }
        }
        Ok(())
    }

    fn settle(&mut self, fate: channel::Fate<Sent>) -> Result<()> {
        let sent = fate.frame.handle;
        let frame = &sent.frame;
        // The receiver first: its answer is on the way before the sender knows.
        for station in &self.stations {
            if fate.heard >> station.index() & 1 == 1 {
                self.radios.hear(station.index(), &frame.bytes, frame)?;
            }
        }
        if let Some((lane, airtime)) = sent.queued {
            self.txqs.settled(lane, airtime);
        }
        let attempts = u8::try_from(fate.attempts).unwrap_or(u8::MAX);
        let told = if fate.delivered { Told::Arrived } else { Told::Lost };
        self.radios.tell(frame, told, attempts)?;
        if let (false, Some(to)) = (fate.delivered, fate.frame.to) {
            self.lost.insert((fate.frame.from, to), frame.clone());
        }
        let end = match fate.delivered {
            true => End::Arrived(fate.at + self.origin),
            false => End::Lost,
        };
        if let Some((_, log)) = &mut self.log {
            log.note(sent, end, fate.attempts);
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
        let Lab { channel, stations, links } = lab(&settings, self.population, seed);
        let mut before = std::mem::replace(&mut self.channel, channel);
        self.stations = stations;
        self.links = links;
        self.origin = now;
        // A beacon, hardly more: nothing runs yet.
        for sent in before.drain() {
            self.send(0, sent);
        }
        Ok(())
    }
}

/// A frame that the queue in front of the air had no more patience with.
fn drop_frame(radios: &Radios, log: Option<&mut (PathBuf, Log)>, sent: Sent) -> Result<()> {
    radios.tell(&sent.frame, Told::Dropped, 0)?;
    if let Some((_, log)) = log {
        log.note(sent, End::Queue, 0);
    }
    Ok(())
}

fn length(frame: &Frame) -> u32 {
    u32::try_from(frame.bytes.len()).expect("frames are short")
}

fn read(settings: &str) -> Result<Settings> {
    let read = if settings.contains('/') {
        Settings::parse(&fs::read_to_string(settings).with_context(|| settings.to_owned())?)
    } else {
        Settings::preset(settings)
    };
    read.map_err(anyhow::Error::msg).with_context(|| settings.to_owned())
}

/// Who is there.
struct Lab {
    channel: Channel<Sent>,
    stations: Vec<Station>,
    links: BTreeMap<Station, LinkSettings>,
}

/// A channel with these radios on it, the neighbours at their own distances.
fn lab(settings: &Settings, population: Population, seed: u64) -> Lab {
    let mut channel = Channel::new(settings.radio.clone(), settings.link.clone(), seed);
    let mut add = |role, count| -> Vec<Station> { (0..count).map(|_| channel.add(role)).collect() };
    let access_points = add(Role::AccessPoint, population.access_points);
    let clients = add(Role::Client, population.stations);
    let mut links: BTreeMap<Station, LinkSettings> =
        clients.iter().map(|client| (*client, settings.link.clone())).collect();
    // The first client is the one that is measured.
    for (neighbour, client) in settings.neighbours.iter().zip(clients.iter().skip(1)) {
        for access_point in &access_points {
            channel.set_link(*access_point, *client, neighbour.link.clone());
        }
        links.insert(*client, neighbour.link.clone());
    }
    Lab { channel, stations: [access_points, clients].concat(), links }
}

/// That between two stations, one of which is a client.
fn link(links: &BTreeMap<Station, LinkSettings>, from: Station, to: Station) -> &LinkSettings {
    links.get(&from).or_else(|| links.get(&to)).expect("one of the two is a client")
}
