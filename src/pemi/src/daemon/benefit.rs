// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether help helps: downloads of flows that are helped against those of flows that chance has
//! left alone, for each network; and what follows where it does harm.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pemi_engine::Outcome;
use serde_json::Value;

use crate::daemon::kept::Kept;
use crate::daemon::object::{numbers, object};
use crate::sys::clock;

mod estimate;
mod file;
mod looks;
mod sample;
mod stalls;
mod words;

use estimate::{CONFIDENT, Estimate, ONE, Pair};
use looks::Looks;
use sample::{KINDS, Sample, Samples};
use words::{Known, sentence, verdict};

/// Help stays off for so long where it did harm (chosen: neighbours, channels and people are
/// others the next day).
const BACK: Duration = Duration::from_secs(24 * 3600);
/// Where it is certain that downloads are slower than this, in thousandths, help does harm (chosen:
/// a smaller difference is not worth a day without help).
const HARM: u32 = ONE - ONE / 20;
/// Networks that the engine tells apart.
const NETWORKS: usize = 8;

/// What is known of one network.
#[derive(Clone, Debug)]
struct Network {
    /// That of its device.
    name: String,
    /// By what tells of losses.
    kinds: [Samples; KINDS.len()],
    /// Whether it does harm was asked so many times.
    looks: Looks,
    /// Help did harm, and is off until then.
    back: Option<Instant>,
}

impl Network {
    fn new(name: String) -> Network {
        Network { name, kinds: Default::default(), looks: Looks::default(), back: None }
    }

    fn stand_back_for(&mut self, time: Duration) {
        self.back = Some(Instant::now() + time.min(BACK)).filter(|_| !time.is_zero());
    }

    fn back_left(&self) -> Option<Duration> {
        let left = self.back?.saturating_duration_since(Instant::now());
        Some(left).filter(|left| !left.is_zero())
    }

    fn is_worth_keeping(&self) -> bool {
        self.back_left().is_some() || self.kinds.iter().any(|samples| !samples.is_empty())
    }

    fn estimate(&self, deviations: u64) -> Option<Estimate> {
        let rates: Vec<_> = self.kinds.iter().map(Samples::rates).collect();
        let pairs: Vec<Pair<'_>> = rates.iter().map(|(a, b)| (&a[..], &b[..])).collect();
        estimate::estimate(&pairs, deviations)
    }

    /// Asks whether help does harm, if it is time to.
    fn does_harm(&mut self) -> bool {
        let between = |deviations| self.estimate(deviations)?.between;
        let Some((_, high)) = self.looks.due().and_then(between) else {
            return false; // An interval that cannot be told yet is no look either.
        };
        self.looks.taken();
        high < HARM
    }

    fn known(&self, compares: bool) -> Known {
        let count = |helped| self.kinds.iter().map(|it| it.count(helped)).sum();
        Known {
            estimate: self.estimate(CONFIDENT),
            helped: count(true),
            alone: count(false),
            back_s: self.back_left().map(|left| left.as_secs()),
            compares,
        }
    }

    fn json(&self, compares: bool) -> Value {
        let known = self.known(compares);
        let stalls = self.kinds.each_ref().map(Samples::stalls);
        let side = |downloads: usize, at: usize| {
            let stalled: u32 = stalls.iter().map(|sides| sides[at].stalled).sum();
            numbers(&[("downloads", downloads as u64), ("stalled", stalled.into())])
        };
        let ratio = |thousandths: u32| Value::from(f64::from(thousandths) / f64::from(ONE));
        let percent = |tenths: i32| Value::from(f64::from(tenths) / 10.0);
        let points = stalls::difference(&stalls);
        let between = known.estimate.and_then(|it| it.between);
        object(vec![
            ("device", self.name.clone().into()),
            ("verdict", verdict(&known).into()),
            ("sentence", sentence(&known).into()),
            ("ratio", known.estimate.map(|it| ratio(it.ratio)).into()),
            ("interval", between.map(|(low, high)| vec![ratio(low), ratio(high)]).into()),
            ("helped", side(known.helped, 0)),
            ("alone", side(known.alone, 1)),
            ("stalled_percent", points.map(|it| percent(it.points)).into()),
            ("stalled_interval", points.map(|it| it.between.map(percent).to_vec()).into()),
            ("back_s", known.back_s.into()),
        ])
    }
}

/// All networks, in the order of their devices.
#[derive(Debug)]
pub struct Benefit {
    networks: Vec<Network>,
    /// Those that are not there now, the newest first: a network may be down for a night, or come up
    /// after the daemon.
    absent: Vec<Network>,
    compares: bool,
    kept: Option<Kept>,
    /// Networks that stand back, a bit for each, as was last told.
    told: Option<u8>,
}

impl Benefit {
    /// For networks with these devices; what was known of them is in the file at `path`.
    pub fn new(devices: &[String], compares: bool, path: Option<&PathBuf>) -> Benefit {
        let parse = |text: &str| file::parse(text, clock::unix());
        let (kept, found) = path.map(|path| Kept::open(path, "comparison", parse)).unzip();
        let networks = found.flatten().unwrap_or_default();
        let mut benefit = Benefit { networks, absent: Vec::new(), compares, kept, told: None };
        benefit.configure(devices, compares);
        benefit.told = Some(0);
        benefit
    }

    /// There are other devices now. What is known of a network is kept while it is not there, so that
    /// one that does harm stands back also when it is there again.
    pub fn configure(&mut self, devices: &[String], compares: bool) {
        let mut known = std::mem::take(&mut self.networks);
        known.append(&mut self.absent);
        // Without devices all clients are of one network.
        let unnamed = [String::new()];
        let devices = if devices.is_empty() { &unnamed[..] } else { devices };
        for name in devices.iter().take(NETWORKS) {
            let at = known.iter().position(|network| network.name == *name);
            let network = at.map(|at| known.remove(at));
            self.networks.push(network.unwrap_or_else(|| Network::new(name.clone())));
        }
        known.retain(Network::is_worth_keeping);
        known.truncate(NETWORKS);
        self.absent = known;
        self.compares = compares;
        // Their numbers may be others.
        self.told = None;
        if !compares {
            // Who wants no comparison wants no consequence of it.
            let all = self.networks.iter_mut().chain(&mut self.absent);
            all.for_each(|network| network.back = None);
        }
    }

    /// Takes what came of downloads.
    pub fn take(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            let kind = KINDS.iter().position(|kind| *kind == outcome.knowledge).unwrap_or(0);
            // One that is gone tells nothing.
            let Some(network) = self.networks.get_mut(usize::from(outcome.network)) else {
                continue;
            };
            network.kinds[kind].add(Sample::new(outcome));
            if !outcome.helped {
                network.looks.count();
            }
        }
        for (at, network) in self.networks.iter_mut().enumerate() {
            let news = outcomes.iter().any(|outcome| usize::from(outcome.network) == at);
            if news && network.back.is_none() && network.does_harm() {
                network.stand_back_for(BACK);
                log::warn!("{}: {}", named(network), sentence(&network.known(true)));
            }
        }
        if let (Some(kept), false) = (&mut self.kept, outcomes.is_empty()) {
            kept.changed();
        }
    }

    /// Once in a while: keeps what is known. Gives the networks that are to stand back, a bit for each,
    /// if they are others than before.
    pub fn turn(&mut self) -> Option<u8> {
        for network in &mut self.networks {
            if network.back.is_some() && network.back_left().is_none() {
                log::info!("{}: help is tried again", named(network));
                // What was yesterday is not to decide about today.
                *network = Network::new(std::mem::take(&mut network.name));
            }
        }
        if let Some(kept) = &mut self.kept {
            kept.keep(|| file::text(&[&self.networks, &self.absent], clock::unix()));
        }
        let back = self.networks.iter().enumerate().filter(|(_, network)| network.back.is_some());
        let back = back.fold(0, |bits, (at, _)| bits | 1 << at);
        (self.told.replace(back) != Some(back)).then_some(back)
    }

    /// What the user should know.
    pub fn errors(&self) -> impl Iterator<Item = String> + '_ {
        let back = self.networks.iter().filter(|network| network.back_left().is_some());
        back.map(|network| format!("{}: {}", named(network), sentence(&network.known(true))))
    }

    /// The answer to `benefit`.
    pub fn json(&self) -> Value {
        let networks = self.networks.iter().map(|network| network.json(self.compares));
        object(vec![("networks", networks.collect())])
    }

    /// Forgets all that was compared.
    pub fn reset(&mut self) {
        for network in &mut self.networks {
            *network = Network::new(std::mem::take(&mut network.name));
        }
        self.absent.clear();
        if let Some(kept) = &mut self.kept {
            kept.changed();
        }
    }

    /// Keeps what is known, at the end.
    pub fn close(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.close(|| file::text(&[&self.networks, &self.absent], clock::unix()));
        }
    }
}

fn named(network: &Network) -> &str {
    if network.name.is_empty() { "all networks" } else { &network.name }
}

#[cfg(test)]
mod tests;
