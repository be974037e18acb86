// SPDX-License-Identifier: GPL-2.0-or-later
//! A sender, a router and the hop between them, in virtual time: packets get lost,
//! overtake each other, and the router may begin anew at any time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use pemi_quack::{Interval, Width};
use pemi_sidekick::sender::{Options, Sender};

use crate::Random;
use crate::router::Model;

/// What one run is made of.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Of everything random.
    pub seed: u64,
    /// Packets sent.
    pub packets: u64,
    /// Between two of them.
    pub gap: Duration,
    /// One way.
    pub delay: Duration,
    /// In addition, from 0 up to so much, each packet for itself: more than the gap, and
    /// packets overtake each other.
    pub jitter: Duration,
    /// Share of the packets that is lost on the way to the router.
    pub loss: f64,
    /// Of the router's messages.
    pub loss_back: f64,
    /// Packets between which nothing reaches the router.
    pub outage: Option<(u64, u64)>,
    /// When the router begins anew, before which packets.
    pub restarts: Vec<u64>,
    /// A router that begins anew counts epochs from the same number again.
    pub same_epoch: bool,
    /// What the sender asks for.
    pub interval: Interval,
    /// Bits of identifiers.
    pub width: Width,
    /// The first quACK's sequence number.
    pub sequence: u16,
}

impl Scene {
    /// 1,000 packets, 20 ms apart, 1 ms away, quACKs as the router likes.
    pub fn new(seed: u64) -> Scene {
        Scene {
            seed,
            packets: 1000,
            gap: Duration::from_millis(20),
            delay: Duration::from_millis(1),
            jitter: Duration::ZERO,
            loss: 0.0,
            loss_back: 0.0,
            outage: None,
            restarts: Vec::new(),
            same_epoch: false,
            interval: Interval::Router,
            width: Width::Bits32,
            sequence: 0,
        }
    }
}

/// One packet's fate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    /// When it was sent.
    pub sent: Duration,
    /// It did not reach the router.
    pub lost: bool,
    /// When the sender was told that it is lost.
    pub reported: Option<Duration>,
}

/// What came of it.
pub struct Story {
    /// By number.
    pub packets: Vec<Packet>,
    /// As it is in the end.
    pub sender: Sender,
    /// As it is in the end.
    pub router: Model,
    /// Messages that the sender sent.
    pub messages: u64,
    /// When its session ran for the first time.
    pub running: Option<Duration>,
}

enum Event {
    Packet(Vec<u8>),
    ToRouter(Vec<u8>),
    ToSender(Vec<u8>),
    Send(u64),
    Timer,
}

struct World {
    scene: Scene,
    random: Random,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    events: BTreeMap<u64, Event>,
    serial: u64,
    /// The timer that counts: later ones are not looked at.
    timer: Option<Duration>,
    outage: bool,
}

impl World {
    fn at(&mut self, when: Duration, event: Event) {
        self.serial += 1;
        self.queue.push(Reverse((when, self.serial)));
        self.events.insert(self.serial, event);
    }

    /// Whether it gets across.
    fn cross(&mut self, now: Duration, share: f64, event: Event) -> bool {
        if self.random.unit() < share || self.outage {
            return false;
        }
        let jitter = self.scene.jitter.mul_f64(self.random.unit());
        self.at(now + self.scene.delay + jitter, event);
        true
    }
}

/// Plays it.
///
/// # Panics
///
/// If a packet is reported twice, or one that has not been sent.
pub fn play(scene: &Scene) -> Story {
    let mut random = Random::new(scene.seed);
    let server = ([192, 0, 2, 1], 4433).into();
    let mut sender = Sender::new(Options {
        interval: scene.interval,
        width: scene.width,
        offset: 3,
        ..Options::new(random.any(), 5000, server)
    });
    let mut router = Model::new(random.any(), 0, scene.sequence);
    let mut packets = vec![Packet::default(); scene.packets as usize];
    let (queue, events) = (BinaryHeap::new(), BTreeMap::new());
    let mut world = World {
        scene: scene.clone(),
        random,
        queue,
        events,
        serial: 0,
        timer: None,
        outage: false,
    };
    world.at(Duration::ZERO, Event::Timer);
    for number in 0..scene.packets {
        // Not before there was time to ask.
        let when = Duration::from_millis(100) + scene.gap * number as u32;
        world.at(when, Event::Send(number));
    }
    let end = Duration::from_secs(1) + scene.gap * scene.packets as u32;
    let (mut messages, mut running) = (0, None);
    while let Some(Reverse((now, serial))) = world.queue.pop() {
        if now > end {
            break;
        }
        let event = world.events.remove(&serial).expect("it is in both");
        let answer = match event {
            Event::Packet(payload) => router.on_packet(now, &payload),
            Event::ToRouter(message) => router.on_message(&message),
            Event::ToSender(message) => {
                sender.on_message(now, &message);
                None
            }
            Event::Send(number) => {
                if scene.restarts.contains(&number) {
                    let epoch = if scene.same_epoch { 0 } else { world.random.any() as u32 };
                    router = Model::new(world.random.any(), epoch, 0);
                }
                world.outage = scene.outage.is_some_and(|(from, to)| (from..to).contains(&number));
                let mut payload = vec![0; 3];
                payload.extend_from_slice(&world.random.any().to_be_bytes());
                let packet = &mut packets[number as usize];
                packet.sent = now;
                sender.on_sent(now, number, &payload);
                packet.lost = !world.cross(now, scene.loss, Event::Packet(payload));
                None
            }
            Event::Timer => {
                world.timer.take_if(|at| *at <= now);
                router.on_timeout(now)
            }
        };
        for answer in answer.into_iter().chain(router.on_timeout(now)) {
            world.cross(now, scene.loss_back, Event::ToSender(answer));
        }
        while let Some(number) = sender.next_lost(now) {
            let packet = &mut packets[number as usize];
            assert!(packet.sent <= now && packet.reported.is_none(), "packet {number} twice");
            packet.reported = Some(now);
        }
        while let Some(message) = sender.poll_message(now) {
            messages += 1;
            world.cross(now, scene.loss, Event::ToRouter(message));
        }
        if running.is_none() && sender.is_running(now) {
            running = Some(now);
        }
        let timers = [sender.next_timeout(), router.next_timeout()];
        if let Some(timer) = timers.into_iter().flatten().min() {
            let timer = timer.max(now + Duration::from_micros(10));
            if world.timer.is_none_or(|at| at > timer) {
                world.timer = Some(timer);
                world.at(timer, Event::Timer);
            }
        }
    }
    Story { packets, sender, router, messages, running }
}
