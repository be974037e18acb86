// SPDX-License-Identifier: GPL-2.0-or-later
//! Target `engine`: packets, timers, probe replies and settings in any order. An input
//! is a header of two bytes and steps of one to three bytes, so that a hundred bytes
//! are a whole connection with losses.
//!
//! Half of the inputs keep a caller's side of the bargain (time goes forwards, timeouts
//! are kept, actions are fetched at once) and are held against every promise; the
//! others do as they like and are held against what must not depend on the caller.

mod model;
mod packets;

use pemi_engine::{Config, Direction, MS, Nanos, Protocols, SEC, US};

use crate::input::Input;
use model::Model;
use packets::{FLOWS, Flow, Long};

/// Packets of one input. More of them find nothing that fewer do not, but take longer.
const PACKETS: u32 = 300;
/// What passes before a step; the last one is until the next timeout is due.
const PACES: [Nanos; 7] = [0, 40 * US, 300 * US, 1200 * US, 6 * MS, 30 * MS, 220 * MS];
const SIZES: [usize; 8] = [1200, 1350, 300, 90, 60, 36, 38, 20];
/// Round trips over the hop.
const HOPS: [Nanos; 8] = [MS, 2 * MS, 300 * US, 5 * MS, 15 * MS, 50 * MS, 0, 2 * SEC];
const CAPS: [Nanos; 4] = [100 * MS, 20 * MS, 0, 5 * SEC];
const IDLE: [Nanos; 4] = [60 * SEC, 2 * SEC, 50 * MS, 0];
const PERCENT: [u32; 4] = [10, 40, 100, 0];
const CACHE: [usize; 4] = [64 << 10, 96 << 10, 0, 200_000];

/// Calls everything with `data`.
pub fn run(data: &[u8]) {
    drive(data);
}

fn drive(data: &[u8]) -> Model {
    let mut input = Input(data);
    let flags = input.byte();
    let config = config(flags, input.byte());
    let mut steps = Steps { model: Model::new(config, flags & 8 == 0), spin: 0 };
    while !input.is_empty() && steps.model.packets < PACKETS {
        steps.step(&mut input);
    }
    steps.model.end();
    steps.model
}

fn config(flags: u8, more: u8) -> Config {
    let choose = |shift: u8| usize::from(more >> shift & 3);
    let config = Config {
        both_directions: flags & 1 != 0,
        conceal: flags & 2 == 0,
        events: flags & 4 != 0,
        max_flows: if flags & 16 != 0 { 2 } else { 8 },
        resend_percent: PERCENT[usize::from(flags >> 5 & 3)],
        release_after: [Some(30 * SEC), Some(20 * MS)][usize::from(flags >> 7)],
        ..Config::default()
    };
    Config {
        hold_cap: CAPS[choose(0)],
        idle_timeout: IDLE[choose(2)],
        cache_bytes: CACHE[choose(4)],
        reports: more & 64 != 0,
        protocols: match more & 128 {
            0 => Protocols::Quic,
            // The same packets, and none of them is taken for QUIC.
            _ => Protocols::All { quic: Vec::new() },
        },
        counts: flags & 32 != 0,
        reports_counted: more & 64 != 0 && flags & 8 != 0,
        control_percent: if more & 192 == 192 { 50 } else { 0 },
        ..config
    }
}

struct Steps {
    model: Model,
    /// The spin bits of the flows.
    spin: u8,
}

impl Steps {
    /// A byte says what happens, to which flow and after how long.
    fn step(&mut self, input: &mut Input<'_>) {
        let what = input.byte();
        let n = usize::from(what >> 3 & 3);
        match PACES.get(usize::from(what >> 5)) {
            Some(pace) => self.model.pass(*pace),
            None => self.model.pass_until_due(),
        }
        let flow = &FLOWS[n];
        match what & 7 {
            0 => self.data(flow, input.byte()),
            1 => self.reply(flow, input.byte()),
            2 => self.long(flow, input.byte()),
            3 => self.handshake(flow),
            4 => self.stretch(flow, input.byte(), input.byte()),
            5 => self.model.probe_reply(flow.client, HOPS[usize::from(input.byte() & 7)]),
            6 => self.strange(flow, input),
            _ => self.control(flow, input),
        }
    }

    fn short(&mut self, flow: &Flow, direction: Direction, size: usize) {
        let spin = self.spin & flow.bit() != 0;
        self.model.short(flow, direction, size, spin);
    }

    /// A burst of the server's.
    fn data(&mut self, flow: &Flow, how: u8) {
        let gap = [0, 100 * US, 1200 * US, 4 * MS][usize::from(how >> 6)];
        for _ in 0..=how & 7 {
            self.short(flow, Direction::Down, SIZES[usize::from(how >> 3 & 7)]);
            self.model.pass(gap);
        }
    }

    /// Acknowledgements, or a burst of the client's.
    fn reply(&mut self, flow: &Flow, how: u8) {
        self.spin ^= flow.bit() & (how >> 3 & 8 | how >> 4 & 4 | how >> 5 & 3);
        if how < 0x80 {
            for _ in 0..=how >> 5 & 3 {
                self.short(flow, Direction::Up, 34 + usize::from(how & 31));
            }
        } else {
            for _ in 0..=how & 15 {
                self.short(flow, Direction::Up, SIZES[usize::from(how >> 4 & 7)]);
                self.model.pass(200 * US);
            }
        }
    }

    fn long(&mut self, flow: &Flow, how: u8) {
        let direction = if how & 1 == 0 { Direction::Up } else { Direction::Down };
        let kind = [Long::Initial, Long::ZeroRtt, Long::Handshake, Long::Retry];
        let version = [1, 0x6b33_43cf, 0, 0x1a2a_3a4a][usize::from(how >> 3 & 3)];
        let size = [1200, 80, 1350, 21][usize::from(how >> 5 & 3)];
        let kind = kind[usize::from(how >> 1 & 3)];
        self.model.long(flow, direction, (version, kind, how & 0x80 != 0), size);
    }

    /// As every connection begins.
    fn handshake(&mut self, flow: &Flow) {
        for (direction, kind, pause) in [
            (Direction::Up, Long::Initial, 25 * MS),
            (Direction::Down, Long::Initial, 100 * US),
            (Direction::Down, Long::Handshake, MS),
            (Direction::Up, Long::Handshake, MS),
        ] {
            self.model.long(flow, direction, (1, kind, false), 1200);
            self.model.pass(pause);
        }
        for _ in 0..2 {
            self.short(flow, Direction::Up, 40);
        }
    }

    /// Data one way and acknowledgements back, one for two packets; one packet is lost
    /// after the router, and the acknowledgements are longer until the hole is filled:
    /// by a copy, or by the sender.
    fn stretch(&mut self, flow: &Flow, how: u8, when: u8) {
        let pairs = 3 + (how & 15);
        let (lost, rtt) = (how >> 4, HOPS[usize::from(when & 7)]);
        let refill = [u8::MAX, 0, 3, 8][usize::from(when >> 3 & 3)];
        let (there, back) = match when & 32 {
            0 => (Direction::Down, Direction::Up),
            _ => (Direction::Up, Direction::Down),
        };
        let holes = if when & 64 == 0 { 1 } else { 2 };
        let mut copies = None;
        for pair in 0..pairs {
            for _ in 0..2 {
                self.short(flow, there, 400);
                self.model.pass(50 * US);
            }
            self.model.pass(rtt);
            let mut size = 36;
            if pair >= lost && pair - lost < refill {
                let before = *copies.get_or_insert(self.model.copies);
                let filled = refill == u8::MAX && self.model.copies >= before + holes;
                size += if filled { 0 } else { 2 * holes as usize };
            }
            self.short(flow, back, size);
            // The client turns the spin bit round when it comes back (RFC 9000, 17.4).
            if when & 128 != 0 {
                self.spin ^= flow.bit();
            }
            self.model.pass(MS);
        }
    }

    /// A packet with some bytes changed, or just any bytes.
    fn strange(&mut self, flow: &Flow, input: &mut Input<'_>) {
        let how = input.byte();
        let direction = if how & 1 == 0 { Direction::Up } else { Direction::Down };
        let mut packet = Vec::new();
        match how {
            0..128 => flow.short(&mut packet, direction, 60, 7, false),
            128.. => packet.extend_from_slice(input.take(usize::from(how & 0x7e))),
        }
        for _ in 0..how >> 1 & 3 {
            let (at, value) = (usize::from(input.byte()), input.byte());
            if let Some(byte) = packet.get_mut(at) {
                *byte = value;
            }
        }
        self.model.packet(direction, &packet);
    }

    fn control(&mut self, flow: &Flow, input: &mut Input<'_>) {
        let how = input.byte();
        match how & 7 {
            0 => self.model.set_config(config(input.byte(), input.byte())),
            1 => self.model.release_all(),
            2 => self.model.reset(),
            3 if how & 8 != 0 => {
                let ticket = self.model.newest_ticket.wrapping_sub(u32::from(how >> 5));
                self.model.report(ticket, how & 16 != 0);
            }
            3 => self.model.look(),
            4 => self.model.time_is(u64::from(input.u16()) << (how >> 3 & 31) << 17),
            5 => self.model.fetch(usize::from(how >> 3)),
            6 if how & 8 != 0 => self.model.station(flow.client, how >> 4),
            6 => self.model.timeout(),
            _ if how & 8 == 0 => self.spin ^= flow.bit(),
            _ => self.model.pass(1 << (20 + (how >> 4))),
        }
    }
}

/// Downloads and uploads with losses at several places; a bad caller.
pub fn seeds() -> Vec<Vec<u8>> {
    const HANDSHAKE: u8 = 3;
    const STRETCH: u8 = 4;
    let mut seeds = Vec::new();
    for flags in [4, 5, 2, 12, 13] {
        for when in [1, 3, 9, 16, 24, 65, 0xa4, 0xa5, 0xb3] {
            let mut seed = vec![flags, 0, HANDSHAKE, 0x25, 1];
            // Time for the rules to get to know the hop.
            for lost in [15, 15, 3, 5, 15, 4, 2, 15] {
                seed.extend([0x40 | STRETCH, lost << 4 | 7, when]);
            }
            seed.extend([0xe0, 0x87, 0xe7, 0, flags ^ 1, 0x10, 0x46, 3, 7, 9, 0x47, 1, 0x47, 2]);
            seed.extend([0x43 | 3 << 3, 0x44 | 3 << 3, 0x28, when, 0x47, 5, 0x41, 6]);
            // The same where losses are reported: the last eight packets, some of them lost.
            let mut reported = seed.clone();
            reported[1] = 64;
            reported.extend((0..8).flat_map(|n| [0x07, n << 5 | 3 << 3 | 3]));
            let mut other = reported.clone();
            other[1] |= 128;
            seeds.extend([reported, other]);
            seeds.push(seed);
        }
    }
    seeds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_reach_copies_and_held_packets() {
        let (mut copies, mut held) = (0, 0);
        for seed in seeds() {
            let model = drive(&seed);
            copies += model.copies;
            held += model.held_ever;
        }
        assert!(copies > 100 && held > 100, "{copies} copies, {held} held");
    }
}
