// SPDX-License-Identifier: GPL-2.0-or-later
//! Uploads over a WAN that loses packets, with both directions looked after. The
//! promises are checked by the harness (`router.rs`); here it is what is done, and
//! what is left alone.

use std::collections::{BTreeMap, BTreeSet};

use pemi_engine::{Config, Direction, EventKind, MS, Nanos, SEC, Stats, Time, US, Verdict};
use pemi_engine_tests::packets::{Flow, Long, V1, long, number, short};
use pemi_engine_tests::random::Random;
use pemi_engine_tests::router::{Done, Manners, Router};
use proptest::prelude::*;

const WIFI: Nanos = MS;
const REPLY: usize = 36;
const SPIN: u8 = 0x20;

#[derive(Clone, Debug)]
struct Scene {
    packets: u64,
    gap: Nanos,
    wan: Nanos,
    loss: f64,
    spins: bool,
    /// Every so many replies the server sends a packet of data as well.
    data: Option<u64>,
    seed: u64,
    config: Config,
}

impl Default for Scene {
    fn default() -> Self {
        Scene {
            packets: 6000,
            gap: 2 * MS,
            wan: 25 * MS,
            loss: 0.01,
            spins: true,
            data: None,
            seed: 1,
            config: Config { both_directions: true, events: true, ..Config::default() },
        }
    }
}

enum Event {
    Client(u64),
    ClientReceives(Vec<u8>),
    AtServer(Vec<u8>),
    FromServer(Vec<u8>),
}

struct Upload {
    scene: Scene,
    router: Router,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
    random: Random,
    done: Vec<Done>,
    /// The spin bit of each end, and the largest number it has seen.
    spin: [u8; 2],
    largest: [u64; 2],
    /// What the server misses, and since when.
    missing: BTreeMap<u64, Time>,
    unacknowledged: u32,
    replies: u64,
    lost: u64,
    copies: u64,
    data_held: u64,
}

impl Upload {
    fn run(scene: &Scene) -> (Upload, Stats) {
        let mut upload = Upload {
            router: Router::new(scene.config.clone(), scene.seed, Manners::Good),
            scene: scene.clone(),
            events: BTreeMap::new(),
            order: 0,
            random: Random(scene.seed),
            done: Vec::new(),
            spin: [0; 2],
            largest: [0; 2],
            missing: BTreeMap::new(),
            unacknowledged: 0,
            replies: 0,
            lost: 0,
            copies: 0,
            data_held: 0,
        };
        upload.go();
        let now = Time::ZERO + 1000 * SEC;
        let stats = upload.router.stats(now);
        upload.router.release_all(now, &mut Vec::new());
        (upload, stats)
    }

    fn at(&mut self, when: Time, event: Event) {
        self.order += 1;
        self.events.insert((when, self.order), event);
    }

    fn shown(&mut self, now: Time, direction: Direction, payload: &[u8]) {
        let packet = Flow::v4(0).datagram(direction, payload);
        let from = self.done.len();
        let verdict = self.router.packet(now, direction, &packet, &mut self.done);
        if verdict == Verdict::Hold {
            assert_eq!(direction, Direction::Down);
            self.data_held += u64::from(payload.len() > 100);
        }
        self.act(now, from);
    }

    fn go(&mut self) {
        let start = Time::ZERO + SEC;
        let rtt = 2 * self.scene.wan;
        self.shown(start, Direction::Up, &long(V1, Long::Initial, 1200));
        self.shown(start + rtt, Direction::Down, &long(V1, Long::Handshake, 900));
        self.shown(start + rtt + 2 * WIFI, Direction::Up, &long(V1, Long::Handshake, 60));
        let mut when = start + rtt + 3 * WIFI;
        for n in 1..=self.scene.packets {
            self.at(when, Event::Client(n));
            when = when + self.scene.gap + self.random.below(100_000) as Nanos;
        }
        let mut last = when;
        while let Some((at, _)) = self.events.first_key_value().map(|(key, _)| *key) {
            last = last.max(at);
            if let Some(due) = self.router.engine.next_timeout().filter(|due| *due <= at) {
                let from = self.done.len();
                self.router.timeout(due, &mut self.done);
                self.act(due, from);
            } else if let Some(((now, _), event)) = self.events.pop_first() {
                self.event(now, event);
            }
        }
        self.router.advance(last + SEC, &mut self.done);
    }

    fn event(&mut self, now: Time, event: Event) {
        match event {
            Event::Client(n) => {
                let mut payload = short(1, n, 1200);
                self.set_spin(&mut payload, 0);
                self.shown(now, Direction::Up, &payload);
            }
            Event::ClientReceives(payload) => {
                // The client turns the bit, the server follows.
                self.take_spin(&payload, 0, SPIN);
            }
            Event::AtServer(payload) => self.server(now, &payload),
            Event::FromServer(payload) => self.shown(now, Direction::Down, &payload),
        }
    }

    fn set_spin(&mut self, payload: &mut [u8], end: usize) {
        let bit = if self.scene.spins { self.spin[end] } else { self.random.below(2) as u8 * SPIN };
        payload[0] = payload[0] & !SPIN | bit;
    }

    fn take_spin(&mut self, payload: &[u8], end: usize, turn: u8) {
        if let Some(number) = number(payload).filter(|number| *number > self.largest[end]) {
            self.largest[end] = number;
            self.spin[end] = (payload[0] & SPIN) ^ turn;
        }
    }

    fn act(&mut self, now: Time, from: usize) {
        for n in from..self.done.len() {
            let (packet, copy, direction) = match &self.done[n] {
                Done::Pass(direction, packet) => (packet[28..].to_vec(), false, *direction),
                Done::Copy(direction, packet) => (packet[28..].to_vec(), true, *direction),
                Done::Probe(ip) => {
                    assert_eq!(*ip, Flow::v4(0).client.ip(), "servers are strangers");
                    continue;
                }
                Done::Event(_) => continue,
            };
            if direction == Direction::Down {
                self.at(now + WIFI, Event::ClientReceives(packet));
                continue;
            }
            self.copies += u64::from(copy && number(&packet).is_some());
            if number(&packet).is_some() && self.random.chance(self.scene.loss) {
                self.lost += u64::from(!copy);
            } else {
                self.at(now + self.scene.wan, Event::AtServer(packet));
            }
        }
    }

    fn server(&mut self, now: Time, payload: &[u8]) {
        let Some(n) = number(payload) else { return };
        let largest = self.largest[1];
        self.take_spin(payload, 1, 0);
        let in_order = n == largest + 1;
        if n > largest {
            self.missing.extend((largest + 1..n).map(|n| (n, now)));
        } else if self.missing.remove(&n).is_none() {
            return;
        }
        self.unacknowledged += 1;
        if in_order && self.unacknowledged < 2 {
            return;
        }
        self.unacknowledged = 0;
        self.replies += 1;
        // The sender's own repair makes the server forget a gap.
        let repair = 4 * self.scene.wan;
        self.missing.retain(|_, since| now.since(*since) < repair);
        let numbers: BTreeSet<u64> = self.missing.keys().copied().collect();
        let gaps = numbers.iter().filter(|n| !numbers.contains(&(*n - 1))).count();
        let data = self.scene.data.is_some_and(|every| self.replies.is_multiple_of(every));
        let size = if data { 1000 } else { REPLY + 2 * gaps };
        let mut payload = short(2, self.replies, size);
        self.set_spin(&mut payload, 1);
        self.at(now + self.scene.wan + 100 * US, Event::FromServer(payload));
    }
}

#[test]
fn losses_beyond_the_router_are_repaired_and_concealed() {
    for seed in 1..=3 {
        let (upload, stats) = Upload::run(&Scene { seed, ..Scene::default() });
        assert!(upload.lost > 30, "{}", upload.lost);
        assert!(stats.losses_repaired * 2 > upload.lost, "{} lost, {stats:?}", upload.lost);
        assert!(stats.concealed_held > 0 && stats.concealed_held == upload.router.held_ever);
        assert!(upload.copies < 6 * upload.lost, "{} for {}", upload.copies, upload.lost);
        assert_eq!(stats.packets_up, 6002, "each packet is counted once");
        assert_eq!(stats.flows_active, 1);
        let repairs = upload.done.iter().filter(|done| {
            matches!(done, Done::Event(e) if e.direction == Direction::Up
                && e.client == Flow::v4(0).client && matches!(e.kind, EventKind::Repair { .. }))
        });
        assert_eq!(repairs.count() as u64, stats.losses_repaired);
        let flow = upload.router.engine.flows(Time::ZERO).next().unwrap();
        assert_eq!((flow.repaired, flow.resent), (stats.losses_repaired, stats.resent_packets));
    }
}

#[test]
fn nothing_is_done_where_it_cannot_be_done_well() {
    let both = Scene::default();
    for (name, scene) in [
        (
            "not asked for",
            Scene { config: Config { events: true, ..Config::default() }, ..both.clone() },
        ),
        ("no spin bit", Scene { spins: false, ..both.clone() }),
        ("a short way", Scene { wan: 4 * MS, ..both.clone() }),
        ("as much down as up", Scene { data: Some(1), ..both.clone() }),
    ] {
        let (upload, stats) = Upload::run(&scene);
        assert_eq!((upload.copies, stats.concealed_held), (0, 0), "{name}: {stats:?}");
    }
}

#[test]
fn where_nothing_is_lost_hardly_anything_is_done() {
    let (upload, stats) = Upload::run(&Scene { loss: 0.0, ..Scene::default() });
    assert!(upload.copies <= 3 && stats.concealed_held == 0, "{stats:?}");
}

#[test]
fn data_for_the_client_is_never_held() {
    // Little enough for the flow to remain an upload.
    let (upload, stats) = Upload::run(&Scene { data: Some(10), ..Scene::default() });
    assert!(stats.concealed_held > 0, "{stats:?}");
    assert_eq!(upload.data_held, 0);
}

#[test]
fn switching_it_off_lets_everything_go() {
    let scene = Scene::default();
    let (mut upload, _) = Upload::run(&Scene { packets: 3000, ..scene.clone() });
    let now = Time::ZERO + 1001 * SEC;
    let limit = upload.router.stats(now).cache_limit;
    let off = Config { both_directions: false, ..scene.config.clone() };
    upload.router.set_config(now, off, &mut Vec::new());
    upload.router.advance(now, &mut Vec::new());
    assert_eq!(upload.router.held(), 0);
    let stats = upload.router.stats(now);
    assert_eq!(stats.cache_limit, limit, "the whole cache is for the way down");
    upload.router.set_config(now, scene.config, &mut Vec::new());
    assert_eq!(upload.router.stats(now).cache_limit, limit);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 2, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn promises_hold_over_any_wan(
        gap in 100i64..5000,
        wan in 1i64..120,
        loss in 0u32..200,
        (spins, data) in (any::<bool>(), proptest::option::of(1u64..40)),
        seed in any::<u64>(),
        hold_cap in 0i64..100,
        resend_percent in 0u32..40,
    ) {
        let hold_cap = hold_cap * MS;
        let config = Config {
            both_directions: true, events: true, hold_cap, resend_percent, ..Config::default()
        };
        let loss = f64::from(loss) / 1000.0;
        let scene = Scene {
            packets: 1500, gap: gap * US, wan: wan * MS, loss, spins, data, seed, config,
        };
        let (upload, stats) = Upload::run(&scene);
        prop_assert!(upload.router.longest <= 3 * hold_cap);
        prop_assert_eq!(upload.data_held, 0);
        prop_assert_eq!(stats.held_now, 0);
        prop_assert!(resend_percent > 0 || stats.resent_packets == 0);
    }
}
