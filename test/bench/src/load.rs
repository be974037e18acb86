// SPDX-License-Identifier: GPL-2.0-or-later
//! Work for the engine: recorded calls of simulated downloads, to be made
//! again and again.

use std::collections::HashMap;
use std::net::IpAddr;

use pemi_engine::{Action, Config, Direction, Engine, Handle, Nanos, Time, US};
use pemi_engine_tests::hop::{Scene, run};
use pemi_engine_tests::packets::flow_of;
use pemi_engine_tests::router::Input;

/// IPv4 and UDP headers.
const HEADERS: usize = 28;
/// Length of a packet to a client.
const PACKET: usize = 1250;
/// Between two passes, so that the next one begins on an idle hop.
const PAUSE: Nanos = 200_000 * US;

/// The kinds of load.
pub const NAMES: [&str; 4] = ["bulk", "flows-100", "flows-1000", "lossy"];

#[derive(Clone, Copy, Debug)]
enum Call {
    Packet(Time, Direction, usize),
    Timeout(Time),
    ProbeReply(Time, IpAddr, Nanos),
}

/// A recorded load.
#[derive(Debug)]
pub struct Load {
    calls: Vec<Call>,
    /// One packet of each flow, direction and length stands for all: the
    /// engine does not look into them, and a daemon's buffers are warm too.
    packets: Vec<Vec<u8>>,
    span: Nanos,
    /// Packets in one pass, both directions.
    pub per_pass: u64,
}

impl Load {
    /// The load of that name, about `down` packets to clients long.
    pub fn new(name: &str, down: u64) -> Option<Load> {
        let config = settings();
        let base = Scene { size: PACKET - HEADERS, config, ..Scene::default() };
        let many = |flows: u32| Scene {
            flows,
            packets: (down / u64::from(flows)).max(1),
            gap: 10 * US * Nanos::from(flows),
            stagger: 10 * US,
            ..base.clone()
        };
        let scene = match name {
            "bulk" => Scene { packets: down, gap: 120 * US, ..base },
            "flows-100" => many(100),
            "flows-1000" => many(1000),
            "lossy" => Scene { packets: down, loss: 0.02, ..base },
            _ => return None,
        };
        Some(Load::record(&scene))
    }

    fn record(scene: &Scene) -> Load {
        let mut known = HashMap::new();
        let mut packets = Vec::new();
        let mut last = Time::ZERO;
        let mut calls = Vec::new();
        for input in run(scene).inputs {
            let (now, call) = match input {
                Input::Packet(now, direction, packet) => {
                    let flow = flow_of(&packet, direction);
                    let long = packet[HEADERS] & 0x80 != 0;
                    let key = (flow, direction == Direction::Up, packet.len(), long);
                    let index = *known.entry(key).or_insert_with(|| {
                        packets.push(packet);
                        packets.len() - 1
                    });
                    (now, Call::Packet(now, direction, index))
                }
                Input::Timeout(now) => (now, Call::Timeout(now)),
                Input::ProbeReply(now, client, rtt) => (now, Call::ProbeReply(now, client, rtt)),
            };
            last = last.max(now);
            calls.push(call);
        }
        let per_pass = calls.iter().filter(|call| matches!(call, Call::Packet(..))).count() as u64;
        Load { calls, packets, span: last.since(Time::ZERO) + PAUSE, per_pass }
    }

    /// Makes all calls once, `pass` spans later than recorded, and fetches all
    /// actions. Gives the bytes of all copies, so that nothing is left out.
    pub fn pass(&self, engine: &mut Engine, pass: u32) -> usize {
        let shift = self.span * Nanos::from(pass);
        let mut bytes = 0;
        for (n, call) in self.calls.iter().enumerate() {
            match *call {
                Call::Packet(now, direction, index) => {
                    let handle = Handle(n as u32);
                    let verdict =
                        engine.on_packet(now + shift, direction, &self.packets[index], handle);
                    std::hint::black_box(verdict);
                }
                Call::Timeout(now) => engine.on_timeout(now + shift),
                Call::ProbeReply(now, client, rtt) => {
                    engine.on_probe_reply(now + shift, client, rtt);
                }
            }
            while let Some(action) = engine.next_action() {
                if let Action::Inject { packet, .. } = action {
                    bytes += packet.len();
                }
            }
        }
        bytes
    }
}

/// As shipped, but no flow is let go for being clean.
pub fn settings() -> Config {
    Config { release_after: None, ..Config::default() }
}
