// SPDX-License-Identifier: GPL-2.0-or-later
//! Why a sender learned of a loss although a router was there to conceal it: each loss of the hop
//! of which a reply told is joined with what the engine had done about it by then.
//!
//! The simulated packets are not encrypted, so the replies that leave the router are read here as
//! the sender reads them.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use indicatif::ProgressBar;
use linkem::Nanos;
use pemi_engine::{Config, Direction, Event, EventKind};
use rayon::prelude::*;
use serde::Serialize;

use crate::client::wire::{Frame, Level, Reader, frame, packets};
use crate::run::{Assist, arrange, config};
use crate::scenario::{Scenario, ms};
use crate::session::TAG_LEN;
use crate::world::{Moment, Observation, World};

/// Acknowledged beyond one that is missing, a packet is taken for lost (RFC 9002, section 6.1.1).
const PACKET_THRESHOLD: u64 = 3;
/// A copy of a packet this near in place of the lost one shows that the wrong one was named.
const NEIGHBOURS: i64 = 8;

/// Why the sender learned of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// No sign of a gap was acted on.
    NotNoticed,
    /// A gap was seen, and no copy was sent for it.
    NoCopy,
    /// Copies of packets near it were sent, and none of this one.
    WrongPacket,
    /// Each copy of it was lost as well.
    CopyLost,
    /// It was sent again, and the reply that told was not held.
    NotHeld,
    /// It was sent again, and the reply that told was taken for the one that shows it repaired.
    TakenForRepair,
    /// It was sent again, and the reply that told was held, but let go too early.
    LetGo,
}

impl Cause {
    /// What it is called in tables.
    pub fn name(self) -> &'static str {
        match self {
            Cause::NotNoticed => "not noticed",
            Cause::NoCopy => "noticed, but no copy",
            Cause::WrongPacket => "another packet sent again",
            Cause::CopyLost => "copy lost, too",
            Cause::NotHeld => "sent again, reply not held",
            Cause::TakenForRepair => "sent again, reply taken for the repair",
            Cause::LetGo => "sent again, reply let go too early",
        }
    }
}

/// What came out over some runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Causes {
    /// Packets of all flows that were lost on the way to the clients, after the handshake.
    pub losses: u64,
    /// Those that a reply told of, by cause.
    pub told: BTreeMap<Cause, u64>,
    /// The first of them of each flow, by cause: in slow start it decides a download.
    pub first: BTreeMap<Cause, u64>,
    /// Those of them that were lost within a path's round trip of a drop before the router.
    pub beside_drops: u64,
}

/// A packet that the hop has lost.
#[derive(Clone, Copy, Debug)]
struct Loss {
    flow: usize,
    number: u32,
    /// As the sender counts.
    packet: u64,
    at: Nanos,
}

/// The reply that told of one.
#[derive(Clone, Copy, Debug)]
struct Told {
    loss: Loss,
    at: Nanos,
    held: bool,
}

#[derive(Default)]
struct Notes {
    losses: u64,
    open: Vec<Loss>,
    told: Vec<Told>,
    /// When replies came to the router.
    came: HashMap<(usize, u32), Nanos>,
    /// Copies by flow and number: when they were sent, and whether they were lost.
    copies: HashMap<(usize, u32), Vec<(Nanos, bool)>>,
    drops: Vec<(usize, Nanos)>,
}

impl Notes {
    fn take(&mut self, seen: &Observation<'_>) {
        let parcel = seen.parcel;
        let key = (parcel.flow, parcel.number);
        match (seen.direction, seen.what) {
            (Direction::Down, Moment::WanLost) => self.drops.push((parcel.flow, seen.at)),
            (Direction::Down, Moment::Sent) if parcel.copy => {
                self.copies.entry(key).or_default().push((seen.at, false));
            }
            (Direction::Down, Moment::Lost | Moment::Dropped) if parcel.copy => {
                let under_way = self.copies.get_mut(&key).and_then(|all| all.last_mut());
                under_way.expect("it was sent").1 = true;
            }
            (Direction::Down, Moment::Lost) => {
                let packets = packets(&parcel.datagram.bytes, TAG_LEN);
                if let Some(packet) = packets.iter().find(|it| it.level == Level::Data) {
                    let loss = Loss {
                        flow: parcel.flow,
                        number: parcel.number,
                        packet: packet.authentic,
                        at: seen.at,
                    };
                    self.losses += 1;
                    self.open.push(loss);
                }
            }
            (Direction::Up, Moment::AtRouter) => drop(self.came.insert(key, seen.at)),
            (Direction::Up, Moment::Sent) => self.read(seen, key),
            _ => {}
        }
    }

    /// A reply goes on to the sender.
    fn read(&mut self, seen: &Observation<'_>, key: (usize, u32)) {
        let held = self.came.remove(&key).is_some_and(|came| came < seen.at);
        for ranges in acknowledged(&seen.parcel.datagram.bytes) {
            let Some((_, largest)) = ranges.first().copied() else { continue };
            let told = &mut self.told;
            self.open.retain(|loss| {
                if loss.flow != key.0 {
                    return true;
                }
                if ranges.iter().any(|(from, to)| (*from..=*to).contains(&loss.packet)) {
                    return false;
                }
                let tells = largest >= loss.packet + PACKET_THRESHOLD;
                if tells {
                    told.push(Told { loss: *loss, at: seen.at, held });
                }
                !tells
            });
        }
    }

    fn cause(&self, told: &Told, events: &[(usize, &Event)]) -> Cause {
        let Told { loss, at, held } = *told;
        let between = |time: Nanos| (loss.at..=at).contains(&time);
        let copies = |number: i64| {
            let key = u32::try_from(number).ok().map(|number| (loss.flow, number));
            let all = key.and_then(|key| self.copies.get(&key)).map_or(&[][..], Vec::as_slice);
            all.iter().filter(move |(sent, _)| between(*sent))
        };
        let number = i64::from(loss.number);
        let mut own = copies(number).peekable();
        let during = |wanted: fn(&EventKind) -> bool| {
            events.iter().any(|(flow, event)| {
                *flow == loss.flow && between(event.at.as_nanos()) && wanted(&event.kind)
            })
        };
        if own.peek().is_some() {
            if own.all(|(_, lost)| *lost) {
                return Cause::CopyLost;
            }
            let ends = events.iter().any(|(flow, event)| {
                let ended = matches!(event.kind, EventKind::HoldEnd { .. });
                *flow == loss.flow && event.at.as_nanos() == at && ended
            });
            return match (held, ends) {
                (true, _) => Cause::LetGo,
                (false, true) => Cause::TakenForRepair,
                (false, false) => Cause::NotHeld,
            };
        }
        if (-NEIGHBOURS..=NEIGHBOURS).any(|off| copies(number + off).next().is_some()) {
            Cause::WrongPacket
        } else if during(|kind| matches!(kind, EventKind::Loss { .. })) {
            Cause::NoCopy
        } else {
            Cause::NotNoticed
        }
    }
}

/// The ranges of each acknowledgement in a datagram, largest first.
fn acknowledged(datagram: &[u8]) -> Vec<Vec<(u64, u64)>> {
    let mut all = Vec::new();
    for packet in packets(datagram, TAG_LEN).iter().filter(|it| it.level == Level::Data) {
        let mut reader = Reader(packet.frames);
        while !reader.0.is_empty() {
            match frame(&mut reader) {
                Some(Frame::Ack(ranges)) => all.push(ranges),
                Some(_) => {}
                None => break,
            }
        }
    }
    all
}

/// Runs a scenario with help and with seeds from 1 on.
pub fn run(scenario: &Scenario, seeds: u64, progress: &ProgressBar) -> anyhow::Result<Causes> {
    let runs = (1..=seeds).into_par_iter().map(|seed| {
        let causes = one(scenario, seed);
        progress.inc(1);
        causes
    });
    let mut sum = Causes::default();
    for causes in runs.collect::<anyhow::Result<Vec<Causes>>>()? {
        sum.losses += causes.losses;
        sum.beside_drops += causes.beside_drops;
        for (cause, times) in causes.told {
            *sum.told.entry(cause).or_default() += times;
        }
        for (cause, times) in causes.first {
            *sum.first.entry(cause).or_default() += times;
        }
    }
    Ok(sum)
}

fn one(scenario: &Scenario, seed: u64) -> anyhow::Result<Causes> {
    let scenario = arrange(scenario, Assist::On);
    let config = Config { events: true, ..config(&scenario)? };
    let mut world = World::new(&scenario, config, seed)?;
    let notes = Rc::new(RefCell::new(Notes::default()));
    let noted = notes.clone();
    world.observe(move |observation| noted.borrow_mut().take(&observation));
    world.run();
    let notes = notes.borrow();
    let events: Vec<_> = world
        .router()
        .events
        .iter()
        .map(|event| (crate::router::flow_of_port(event.client.port()), event))
        .collect();
    let path = ms(2.0 * (scenario.wan.delay_ms + scenario.wifi.delay_ms));
    let mut causes = Causes { losses: notes.losses, ..Causes::default() };
    let mut flows = HashSet::new();
    for told in &notes.told {
        let cause = notes.cause(told, &events);
        *causes.told.entry(cause).or_default() += 1;
        if flows.insert(told.loss.flow) {
            *causes.first.entry(cause).or_default() += 1;
        }
        let beside = |(flow, at): &(usize, Nanos)| {
            *flow == told.loss.flow && at.abs_diff(told.loss.at) <= path
        };
        causes.beside_drops += u64::from(notes.drops.iter().any(beside));
    }
    Ok(causes)
}

/// The causes for people to read, in percent of the losses.
pub fn table(causes: &Causes) -> String {
    let percent = |part: u64| 100.0 * part as f64 / causes.losses.max(1) as f64;
    let told: u64 = causes.told.values().sum();
    let mut text = format!("{} lost, told {told}, {:.1} %\n", causes.losses, percent(told));
    for (cause, times) in &causes.told {
        let (name, share) = (cause.name(), percent(*times));
        let first = causes.first.get(cause).copied().unwrap_or_default();
        text += &format!("  {name:40} {times:6}  {share:5.1} %, first of a flow {first:4}\n");
    }
    let beside = percent(causes.beside_drops);
    text + &format!(
        "  of them beside drops before the router   {:6}  {beside:5.1} %\n",
        causes.beside_drops
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix;

    fn causes(changes: &[&str]) -> Causes {
        let lossy = ["flow.bytes=2000000", "flow.wake_ms=0", "wifi.loss_down={ percent = 3.0 }"];
        let changes: Vec<String> = lossy.iter().chain(changes).map(|it| (*it).into()).collect();
        let scenario = matrix::parse(include_str!("../scenarios/train.toml"), &changes).unwrap();
        run(&scenario, 2, &ProgressBar::hidden()).unwrap()
    }

    fn told(causes: &Causes) -> u64 {
        causes.told.values().sum()
    }

    #[test]
    fn without_holding_losses_are_told_although_they_are_sent_again() {
        let helped = causes(&[]);
        assert!(helped.losses >= 40 && 3 * told(&helped) < helped.losses, "{helped:?}");
        let open = causes(&["engine.conceal=false", "wifi.delay_ms=5"]);
        assert!(told(&open) > 2 * told(&helped), "{open:?}");
        assert!(2 * open.told[&Cause::NotHeld] > told(&open), "{open:?}");
    }

    #[test]
    fn lost_acknowledgements_hide_more_without_the_rules_for_them() {
        // The rule `retries` finds some of these as well, since their gaps show late.
        let told = |without: &str| {
            let without = format!("engine.without=[\"retries\"{without}]");
            let losses = [("down", 5.0), ("up", 10.0)]
                .map(|(way, percent)| format!("wifi.loss_{way}={{ percent = {percent:?} }}"));
            let others = ["wan.queue_bdp=100".into(), without];
            let changes: Vec<String> = losses.into_iter().chain(others).collect();
            let train = include_str!("../scenarios/train.toml");
            told(
                &run(&matrix::parse(train, &changes).unwrap(), 60, &ProgressBar::hidden()).unwrap(),
            )
        };
        let with = told("");
        // In percent of what is told without the rule; few seeds scatter by more than `behind` is worth.
        for (rule, most) in [(", \"behind\"", 80), (", \"again\"", 70)] {
            let without = told(rule);
            assert!(100 * with < most * without, "{with} {rule} {without}");
        }
    }

    #[test]
    fn without_signs_nothing_is_noticed() {
        let blind = causes(&["flow.client=delayed"]);
        assert!(2 * blind.told[&Cause::NotNoticed] > blind.losses, "{blind:?}");
    }
}
