// SPDX-License-Identifier: GPL-2.0-or-later
//! Both ends, in virtual time, in the call that the Sidekick paper measures: a packet every
//! 20 ms, a Wi-Fi hop of 1 ms that loses 3.6 % each way, and 25 ms behind the router. What
//! is judged is how long packets wait at the receiver for those before them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::time::Duration;

use pemi_quack::Interval;
use pemi_sidekick::router::{Config, Sessions, Via};
use pemi_sidekick::sender::{Options, Sender};
use pemi_sidekick_tests::Random;

const MS: u64 = 1_000;
const PACKETS: u64 = 6_000;
const PERIOD: u64 = 20 * MS;
/// With what the packet takes on the links.
const HOP: u64 = 1_030;
const BEHIND: u64 = 25 * MS + 200;
const ROUND_TRIP: u64 = 2 * (HOP + BEHIND);
const LOSS: f64 = 0.036;
const ROUTER: ([u8; 4], u16) = ([192, 168, 1, 1], 5103);
const CLIENT: ([u8; 4], u16) = ([192, 168, 1, 2], 50_000);
const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 4433);

#[derive(Debug)]
enum Event {
    Frame(u64),
    AtRouter {
        frame: u64,
        payload: [u8; 8],
    },
    AtServer(u64),
    /// The server looks again whether this one is still missing.
    Missing(u64),
    Nack(u64),
    ToRouter(Vec<u8>),
    ToSender(Vec<u8>),
    Timer,
}

struct Call {
    events: BTreeMap<(u64, u64), Event>,
    serial: u64,
    random: Random,
    /// By frame, when it came first.
    came: BTreeMap<u64, u64>,
    missing: BTreeSet<u64>,
    /// After the last one that came.
    next: u64,
    sent: BTreeMap<u64, u64>,
    by_nack: u64,
    by_quack: u64,
    quack_bytes: u64,
    jitter: u64,
    /// Packets of the call lost on the hop.
    losses: u64,
}

impl Call {
    fn new(seed: u64, jitter: u64) -> Call {
        Call {
            events: BTreeMap::new(),
            serial: 0,
            random: Random::new(seed),
            came: BTreeMap::new(),
            missing: BTreeSet::new(),
            next: 0,
            sent: BTreeMap::new(),
            by_nack: 0,
            by_quack: 0,
            quack_bytes: 0,
            jitter,
            losses: 0,
        }
    }

    fn at(&mut self, time: u64, event: Event) {
        self.serial += 1;
        self.events.insert((time, self.serial), event);
    }

    fn across_hop(&mut self, now: u64, event: Event) -> bool {
        let lost = self.random.unit() < LOSS;
        if !lost {
            let late = (self.random.unit() * self.jitter as f64) as u64;
            self.at(now + HOP + late, event);
        }
        !lost
    }

    fn send(&mut self, now: u64, frame: u64, sender: Option<&mut Sender>) {
        let payload = self.random.any().to_be_bytes();
        self.sent.insert(frame, now);
        if let Some(sender) = sender {
            sender.on_sent(Duration::from_micros(now), frame, &payload);
        }
        let across = self.across_hop(now, Event::AtRouter { frame, payload });
        self.losses += u64::from(!across);
    }

    /// Unless it is on its way already.
    fn resend(&mut self, now: u64, frame: u64, sender: Option<&mut Sender>) -> bool {
        let again = self.sent.get(&frame).is_some_and(|sent| now - sent > ROUND_TRIP * 9 / 10);
        if again {
            self.send(now, frame, sender);
        }
        again
    }

    fn waits(&self) -> Vec<u64> {
        let mut all_before = 0;
        let waits = (0..PACKETS).map(|frame| {
            let came = self.came[&frame];
            all_before = all_before.max(came);
            all_before - came
        });
        let mut waits: Vec<u64> = waits.collect();
        waits.sort_unstable();
        waits
    }

    /// By the nearest rank.
    fn percentile(&self, percent: usize) -> u64 {
        let waits = self.waits();
        waits[(waits.len() * percent).div_ceil(100) - 1]
    }

    fn mean(&self) -> u64 {
        self.waits().iter().sum::<u64>() / PACKETS
    }
}

/// Without an interval nobody asks the router.
fn call(seed: u64, interval: Option<Interval>, jitter: u64) -> Call {
    let (server, client) = (SocketAddr::from(SERVER), SocketAddr::from(CLIENT));
    let router = SocketAddr::from(ROUTER);
    let via = Via { device: 1, local: router.ip() };
    let mut sessions = Sessions::new(Config::default(), [7; 16], 1);
    let mut sender = interval.map(|interval| {
        let options = Options::new(seed ^ 0x5bd1_e995, client.port(), server);
        Sender::new(Options { interval, ..options })
    });
    let mut call = Call::new(seed, jitter);
    // Somebody has to come after the last ones that are judged.
    (0..PACKETS + 100).for_each(|frame| call.at(frame * PERIOD, Event::Frame(frame)));
    while let Some(((now, _), event)) = call.events.pop_first() {
        let time = Duration::from_micros(now);
        match event {
            Event::Frame(frame) => call.send(now, frame, sender.as_mut()),
            Event::AtRouter { frame, payload } => {
                sessions.on_packet(now, 1, client, server, &payload, 0);
                call.at(now + BEHIND, Event::AtServer(frame));
            }
            Event::AtServer(frame) => {
                call.came.entry(frame).or_insert(now);
                call.missing.remove(&frame);
                for earlier in call.next..frame {
                    call.missing.insert(earlier);
                    call.at(now, Event::Missing(earlier));
                }
                call.next = call.next.max(frame + 1);
            }
            Event::Missing(frame) if call.missing.contains(&frame) => {
                call.across_hop(now + BEHIND, Event::Nack(frame));
                call.at(now + ROUND_TRIP + MS, Event::Missing(frame));
            }
            Event::Missing(_) => {}
            Event::Nack(frame) => {
                call.by_nack += u64::from(call.resend(now, frame, sender.as_mut()));
            }
            Event::ToRouter(bytes) => sessions.on_message(now, client, via, &bytes),
            Event::ToSender(bytes) => {
                sender.iter_mut().for_each(|sender| sender.on_message(time, &bytes));
            }
            Event::Timer => {}
        }
        if sessions.next_timeout().is_some_and(|at| at <= now) {
            sessions.on_timeout(now);
        }
        while let Some(sending) = sessions.next_action() {
            call.quack_bytes += sending.bytes.len() as u64;
            let bytes = sending.bytes.to_vec();
            call.across_hop(now, Event::ToSender(bytes));
        }
        let Some(sender) = &mut sender else { continue };
        while let Some(frame) = sender.next_lost(time) {
            if !call.came.contains_key(&frame) || call.sent[&frame] + ROUND_TRIP / 2 > now {
                call.by_quack += 1;
                call.send(now, frame, Some(sender));
            }
        }
        while let Some(bytes) = sender.poll_message(time) {
            call.across_hop(now, Event::ToRouter(bytes));
        }
        let next = sender.next_timeout().map(|at| at.as_micros() as u64);
        let over = now > (PACKETS + 500) * PERIOD;
        for at in [next, sessions.next_timeout()].into_iter().flatten().filter(|_| !over) {
            let planned = call.events.range((at, 0)..=(at, u64::MAX)).next().is_some();
            if !planned {
                call.at(at.max(now + 1), Event::Timer);
            }
        }
    }
    call
}

fn packets(every: u16) -> Option<Interval> {
    Some(Interval::Packets(NonZeroU16::new(every).expect("not zero")))
}

/// By how much packets are late on the hop, at most.
const JITTERS: [u64; 3] = [0, 200, 2 * MS];

#[test]
fn without_the_router_a_loss_costs_a_round_trip() {
    for jitter in JITTERS {
        let call = call(1, None, jitter);
        assert!((ROUND_TRIP..62 * MS).contains(&call.percentile(99)), "{}", call.percentile(99));
        assert_eq!((call.percentile(50), call.quack_bytes), (0, 0));
    }
}

#[test]
fn the_more_often_it_tells_the_shorter_is_the_wait() {
    for jitter in JITTERS {
        let [two, four, eight] = [2, 4, 8].map(|every| call(2, packets(every), jitter));
        let off = call(2, None, jitter);
        assert!(two.percentile(99) <= 28 * MS, "{}", two.percentile(99));
        assert!(two.by_quack * 10 > two.losses * 8, "{}", two.by_quack);
        // The 99th percentiles of the others are all a round trip: so long after a loss the
        // server has told of it, if no quACK has.
        assert!(two.percentile(99) * 2 < four.percentile(99));
        let means = [two.mean(), four.mean(), eight.mean(), off.mean()];
        assert!(means.is_sorted_by(|a, b| a * 11 < b * 10), "{means:?}");
    }
}

#[test]
fn told_at_once_nobody_waits_and_little_is_said() {
    for jitter in JITTERS {
        let (adaptive, two) =
            (call(3, Some(Interval::Adaptive), jitter), call(3, packets(2), jitter));
        assert!(adaptive.percentile(99) <= 8 * MS, "{}", adaptive.percentile(99));
        assert!(adaptive.mean() * 4 < two.mean(), "{} {}", adaptive.mean(), two.mean());
        assert!(adaptive.quack_bytes <= two.quack_bytes * 6 / 10);
        // Hardly anything is left for the server to tell, and little is sent twice.
        assert!(adaptive.by_nack * 20 < adaptive.by_quack, "{}", adaptive.by_nack);
        assert!(adaptive.by_quack * 10 < adaptive.losses * 12, "{}", adaptive.by_quack);
    }
}
