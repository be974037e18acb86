// SPDX-License-Identifier: GPL-2.0-or-later
//! Records one run: every moment of every parcel, and what the engine made of it.

use std::cell::RefCell;
use std::rc::Rc;

use linkem::Nanos;
use pemi_engine::{Config, Direction, EventKind};

use crate::run::{Assist, Outcome, arrange, config, run};
use crate::scenario::Scenario;
use crate::truth::Truth;
use crate::world::{Moment, World};

/// A recorded run.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What it is of, for a title.
    pub name: String,
    /// What it came to.
    pub outcome: Outcome,
    /// In order of time.
    pub entries: Vec<Entry>,
    /// The transmissions over the hop, by flow.
    pub truths: Vec<Truth>,
    /// When it was over.
    pub end: Nanos,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Nanos,
    /// To which flow.
    pub flow: usize,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// To a parcel.
    Parcel {
        /// Its way.
        direction: Direction,
        /// Its number among those of its direction, from 0.
        number: u32,
        /// Bytes of UDP payload.
        bytes: u32,
        /// Sent by the router in place of the server.
        copy: bool,
        /// What.
        moment: Moment,
    },
    /// In the engine.
    Engine {
        /// What; packets are numbered as the engine counts.
        kind: EventKind,
        /// The parcel that it is about.
        packet: Option<u32>,
    },
}

/// Runs a scenario and notes everything.
pub fn record(
    name: String,
    scenario: &Scenario,
    assist: Assist,
    seed: u64,
) -> anyhow::Result<Trace> {
    // The same seed, the same run: this one is for the figures.
    let outcome = run(scenario, assist, seed)?;
    let scenario = arrange(scenario, assist);
    let config = Config { events: true, ..config(&scenario)? };
    let mut world = World::new(&scenario, config, seed)?;
    let entries = Rc::new(RefCell::new(Vec::new()));
    let noted = entries.clone();
    world.observe(move |observation| {
        let parcel = observation.parcel;
        noted.borrow_mut().push(Entry {
            at: observation.at,
            flow: parcel.flow,
            what: What::Parcel {
                direction: observation.direction,
                number: parcel.number,
                bytes: parcel.datagram.bytes.len() as u32,
                copy: parcel.copy,
                moment: observation.what,
            },
        });
    });
    let end = world.run();
    let mut entries = entries.take();
    let shown = shown(&entries, scenario.flows.len());
    for event in &world.router().events {
        let flow = crate::router::flow_of_port(event.client.port());
        // The engine counts what it has seen, from 1.
        let packet = match event.kind {
            EventKind::Loss { packet } | EventKind::Resend { packet } => {
                packet.checked_sub(1).and_then(|index| shown[flow].get(index as usize).copied())
            }
            _ => None,
        };
        let what = What::Engine { kind: event.kind, packet };
        entries.push(Entry { at: event.at.as_nanos(), flow, what });
    }
    entries.sort_by_key(|entry| (entry.at, rank(entry)));
    let truths = world.outcomes().map(|outcome| outcome.truth.clone()).collect();
    Ok(Trace { name, outcome, entries, truths, end })
}

/// The parcels towards the client that the router has seen, by flow.
fn shown(entries: &[Entry], flows: usize) -> Vec<Vec<u32>> {
    let mut shown = vec![Vec::new(); flows];
    for entry in entries {
        if let What::Parcel { direction: Direction::Down, number, moment, .. } = entry.what
            && moment == Moment::AtRouter
        {
            shown[entry.flow].push(number);
        }
    }
    shown
}

/// Cause before effect where both have the same time.
fn rank(entry: &Entry) -> u8 {
    match entry.what {
        What::Parcel { moment: Moment::Arrived | Moment::WanLost, .. } => 0,
        What::Parcel { moment: Moment::AtRouter, .. } => 1,
        What::Engine { .. } => 2,
        What::Parcel { moment: Moment::Sent, .. } => 3,
        What::Parcel { moment: Moment::Lost | Moment::Dropped, .. } => 4,
    }
}
