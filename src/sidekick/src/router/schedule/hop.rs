// SPDX-License-Identifier: GPL-2.0-or-later
//! A sender, a lossy hop and the router in virtual time.

use std::collections::BTreeMap;

use core::num::NonZeroU16;

use pemi_quack::Interval;

use super::*;
use crate::router::random::Random;

const START: Micros = 10_000 * MS;

/// The hop, and a sender that sends again what a quACK shows to be lost.
struct Hop {
    random: Random,
    loss_per_mille: u64,
    delay: Micros,
    jitter: u64,
    /// Whether it does.
    resends: bool,
}

#[derive(Default, Debug)]
struct Outcome {
    packets: usize,
    quacks: usize,
    late: u32,
    /// For each packet lost: when it would have come, and when a quACK that showed it
    /// reached the sender.
    told: Vec<(Micros, Option<Micros>)>,
    /// Whether a packet next to it was lost, too.
    alone: Vec<bool>,
    /// When quACKs left.
    left: Vec<Micros>,
}

enum Event {
    /// A packet of this number; sent then.
    Arrives(Micros),
    /// A quACK that shows all that was sent before.
    Told(Micros),
}

impl Hop {
    fn new(seed: u64, loss_per_mille: u64) -> Hop {
        Hop { random: Random::new(seed), loss_per_mille, delay: MS, jitter: 0, resends: true }
    }

    /// What becomes of packets sent at these times.
    fn carry(self, sent: &[Micros]) -> Outcome {
        self.carry_with(Interval::Adaptive, sent)
    }

    fn carry_with(mut self, interval: Interval, sent: &[Micros]) -> Outcome {
        let mut schedule = Schedule::new(interval);
        let mut events: BTreeMap<(Micros, usize), Event> = BTreeMap::new();
        let mut outcome = Outcome::default();
        let mut lost: Vec<(Micros, Option<Micros>)> = Vec::new();
        let mut number = 0;
        let mut was_lost = Vec::new();
        for &at in sent {
            number += 1;
            let gone = self.random.chance(self.loss_per_mille);
            was_lost.push(gone);
            let arrives = at + self.delay + self.random.below(self.jitter + 1);
            if gone {
                lost.push((at, None));
            } else {
                events.insert((arrives, number), Event::Arrives(at));
            }
        }
        for (n, _) in was_lost.iter().enumerate().filter(|(_, gone)| **gone) {
            let near = |at: Option<usize>| at.and_then(|at| was_lost.get(at)) == Some(&true);
            outcome.alone.push(!near(n.checked_sub(1)) && !near(Some(n + 1)));
        }
        let end = sent.last().copied().unwrap_or(0) + 2_000 * MS;
        let mut last_sent = 0;
        let mut last_arrival = 0;
        loop {
            let event = events.keys().next().map_or(end, |(at, _)| *at);
            let timer = schedule.deadline().unwrap_or(Micros::MAX);
            let now = event.min(timer);
            if now >= end {
                break;
            }
            let due = if timer < event {
                schedule.on_timeout(now)
            } else {
                match events.pop_first() {
                    Some((_, Event::Arrives(at))) => {
                        outcome.packets += 1;
                        (last_sent, last_arrival) = (last_sent.max(at), now);
                        schedule.on_packet(now)
                    }
                    Some((_, Event::Told(until))) => {
                        for (at, told) in &mut lost {
                            if *at < until && told.is_none() {
                                *told = Some(now);
                                number += 1;
                                if self.resends && !self.random.chance(self.loss_per_mille) {
                                    let sent = now + 200;
                                    events
                                        .insert((sent + self.delay, number), Event::Arrives(sent));
                                }
                            }
                        }
                        Due::default()
                    }
                    None => break,
                }
            };
            outcome.late += due.late;
            if due.quack {
                outcome.quacks += 1;
                outcome.left.push(now);
                if !self.random.chance(self.loss_per_mille) {
                    // What was sent before the last one counted, or so long after it as
                    // the age says, would have come.
                    let until = last_sent + (now - last_arrival);
                    number += 1;
                    events.insert((now + self.delay, number), Event::Told(until));
                }
            }
        }
        outcome.told = lost.iter().map(|(at, told)| (at + self.delay, *told)).collect();
        outcome
    }
}

/// Packets sent every `period` for `count` times.
fn steady(start: Micros, period: Micros, count: u64) -> Vec<Micros> {
    (0..count).map(|n| start + n * period).collect()
}

impl Outcome {
    /// Of the packets lost with none next to them lost: those told within so long of
    /// when they were due, in a thousand.
    fn within(&self, limit: Micros, from: Micros) -> usize {
        let alone: Vec<_> =
            self.told.iter().zip(&self.alone).filter(|(_, alone)| **alone).collect();
        let learned: Vec<_> = alone.iter().filter(|((due, _), _)| *due > from).collect();
        let soon = learned
            .iter()
            .filter(|((due, told), _)| told.is_some_and(|told| told.saturating_sub(*due) <= limit));
        assert!(learned.len() > 20, "{} losses", learned.len());
        soon.count() * 1000 / learned.len()
    }

    fn affordable(&self) {
        assert!(self.quacks * 2 <= self.packets, "{} for {}", self.quacks, self.packets);
    }
}

#[test]
fn isolated_losses_are_told_soon_after_they_were_due() {
    for seed in 0..8 {
        let outcome = Hop::new(seed, 36).carry(&steady(START, 20 * MS, 30_000));
        outcome.affordable();
        // The late quACK leaves 1.5 ms after the packet was due. One of 28 gets lost.
        let (first, repeated) = (MS * 3, MS * 11);
        let learned = START + 500 * MS;
        assert!(outcome.within(first, learned) >= 940, "{}", outcome.within(first, learned));
        assert!(outcome.within(repeated, learned) >= 990, "{}", outcome.within(repeated, learned));
        assert!(outcome.quacks * 100 <= outcome.packets * 32, "{} quACKs", outcome.quacks);
    }
}

/// The reason for it to be what a router does unless it is told otherwise.
#[test]
fn it_tells_sooner_than_every_two_packets_and_costs_less() {
    for (period, loss) in [(20 * MS, 36), (20 * MS, 100), (10 * MS, 36), (50 * MS, 10), (MS, 36)] {
        let sent = steady(START, period, 20_000);
        let two = Interval::Packets(NonZeroU16::new(2).expect("not zero"));
        let (adaptive, plain) =
            (Hop::new(1, loss).carry(&sent), Hop::new(1, loss).carry_with(two, &sent));
        let mean = |outcome: &Outcome| {
            let took: Vec<_> =
                outcome.told.iter().filter_map(|(due, told)| Some(told.as_ref()? - due)).collect();
            took.iter().sum::<Micros>() / took.len() as Micros
        };
        let (soon, later) = (mean(&adaptive), mean(&plain));
        assert!(adaptive.quacks < plain.quacks);
        if period >= 10 * MS {
            assert!(soon * 3 < later * 2, "{soon} {later}");
        }
    }
}

/// Of the late quACKs themselves: they leave in time, whatever becomes of them.
#[test]
fn late_quacks_leave_a_margin_after_the_due_time() {
    let outcome = Hop::new(11, 36).carry(&steady(START, 20 * MS, 30_000));
    let learned = START + 500 * MS;
    let (mut all, mut soon) = (0, 0);
    for ((due, _), alone) in outcome.told.iter().zip(&outcome.alone) {
        if *alone && *due > learned {
            all += 1;
            let next = outcome.left.partition_point(|left| left < due);
            soon += usize::from(outcome.left.get(next).is_some_and(|left| left - due <= 1_700));
        }
    }
    assert!(all > 500 && soon * 100 >= all * 99, "{soon} of {all}");
}

#[test]
fn a_flow_without_losses_is_told_of_seldom() {
    let outcome = Hop::new(1, 0).carry(&steady(START, 20 * MS, 5_000));
    assert!(outcome.quacks <= 5_000 / 8 + 16, "{}", outcome.quacks);
    // At the end the sender says nothing any more.
    assert_eq!(outcome.late, 3);
}

#[test]
fn jitter_takes_a_longer_margin_and_little_else() {
    let hop = Hop { jitter: 3_000, ..Hop::new(5, 36) };
    let outcome = hop.carry(&steady(START, 20 * MS, 20_000));
    outcome.affordable();
    assert!(outcome.within(10 * MS, START + 500 * MS) >= 930);
    // Few of those that come are taken to be late.
    let lost = outcome.told.len() as u32;
    assert!(outcome.late < lost + lost / 5, "{} late, {lost} lost", outcome.late);
}

#[test]
fn bursts_of_losses_are_told_one_by_one() {
    let mut sent = steady(START, 20 * MS, 2_000);
    let hop = Hop::new(3, 0);
    // Two in a row, every hundred.
    let gone: Vec<Micros> = sent.iter().skip(99).step_by(100).copied().collect();
    sent.retain(|at| !gone.contains(at) && !gone.contains(&(at - 20 * MS)));
    let outcome = hop.carry(&sent);
    assert_eq!(outcome.late, 2 * gone.len() as u32 - 2 + 3, "the last two are the end");
    outcome.affordable();
    for at in gone.iter().take(gone.len() - 1) {
        for due in [at + MS, at + 21 * MS] {
            let next = outcome.left.partition_point(|left| *left < due);
            assert!(outcome.left.get(next).is_some_and(|left| left - due <= 1_600));
        }
    }
}

#[test]
fn pauses_cost_three_lates_each() {
    let mut sent = Vec::new();
    for spurt in 0..20 {
        sent.extend(steady(START + spurt * 5_000 * MS, 20 * MS, 100));
    }
    let outcome = Hop::new(3, 0).carry(&sent);
    assert_eq!(outcome.late, 20 * 3);
    outcome.affordable();
    assert!(outcome.quacks < 20 * (100 / 8 + 8), "{}", outcome.quacks);
}

#[test]
fn another_cadence_is_learned() {
    let mut sent = steady(START, 20 * MS, 1_000);
    sent.extend(steady(START + 20_000 * MS, 10 * MS, 10_000));
    let outcome = Hop::new(9, 36).carry(&sent);
    outcome.affordable();
    assert!(outcome.within(9 * MS, START + 20_500 * MS) >= 970);
}

#[test]
fn a_sender_that_resends_nothing_is_not_asked_to_for_ever() {
    let sent = steady(START, 20 * MS, 10_000);
    let quacks = |resends| {
        let outcome = Hop { resends, ..Hop::new(4, 36) }.carry(&sent);
        outcome.affordable();
        outcome.quacks
    };
    assert!(quacks(false) < quacks(true) + 100);
}

#[test]
fn fast_flows_are_told_every_eight_packets_and_a_tail_after_20_ms() {
    let outcome = Hop::new(1, 0).carry(&steady(START, 500, 8_000));
    assert!((1_000..=1_001).contains(&outcome.quacks), "{}", outcome.quacks);
    let outcome = Hop::new(1, 0).carry(&steady(START, 500, 8_003));
    assert_eq!(outcome.left.last(), Some(&(START + 8_000 * 500 + MS + 20 * MS)));
    assert_eq!(outcome.late, 0);
}

#[test]
fn a_fast_flow_that_stood_still_is_told_of_at_once() {
    let mut sent = steady(START, 500, 803);
    let again = START + 402 * MS + 10 * MS;
    sent.extend(steady(again, 500, 100));
    let outcome = Hop::new(1, 0).carry(&sent);
    assert!(outcome.left.contains(&(again + MS)));
}

#[test]
fn frames_of_several_packets_are_told_when_they_are_over() {
    let mut sent = Vec::new();
    for frame in 0..500 {
        sent.extend(steady(START + frame * 33_333, 100, 4));
    }
    let outcome = Hop::new(2, 20).carry(&sent);
    outcome.affordable();
    let soon = outcome
        .told
        .iter()
        .filter(|(due, told)| told.is_some_and(|told| told.saturating_sub(*due) < 5 * MS));
    assert!(soon.count() * 10 >= outcome.told.len() * 8, "{:?}", outcome.told);
}

#[test]
fn whatever_comes_costs_no_more_than_a_quack_for_two_packets() {
    for seed in 0..40 {
        let mut random = Random::new(seed);
        let mut now = START;
        let mut sent = Vec::new();
        let longest = [100, 3_000, 10_000, 40_000, 200_000][seed as usize % 5];
        for _ in 0..3_000 {
            now += if random.chance(5) { random.below(3_000_000) } else { random.below(longest) };
            sent.push(now);
        }
        Hop { jitter: 500, ..Hop::new(seed, 200) }.carry(&sent).affordable();
    }
}
