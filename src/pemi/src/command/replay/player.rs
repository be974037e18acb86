// SPDX-License-Identifier: GPL-2.0-or-later
//! The daemon's engines in the time of the capture. What they ask for is written down, and
//! nobody does it.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

use pemi_engine::packet::find;
use pemi_engine::{
    Action, Config, Direction, Engines, Event, EventKind, Handle, Nanos, SEC, Stats, Time, Verdict,
};

use super::book::{Book, Ends};
use super::truth::Truth;

/// Flows are looked at this often: the engine forgets them when they end.
const LOOK: Nanos = SEC;

/// Plays a capture to an engine and writes down what it does.
///
/// Nothing in a capture changes. Copies never arrive, so a hole stays open until
/// the server's own repair; held packets are on their way already, so releasing
/// them means nothing. Probes are answered with a given round trip, or not at all.
#[derive(Debug)]
pub struct Player {
    engine: Engines,
    now: Time,
    looked: Time,
    handle: u32,
    local_rtt: Option<Nanos>,
    /// On their way back, the earliest first.
    replies: VecDeque<(Time, IpAddr)>,
    /// Probes that the engine has asked for.
    pub probes: u64,
    /// Every flow.
    pub book: Book,
    /// What really happened, if known.
    pub truth: Option<Truth>,
}

/// A packet of the capture that the daemon would have seen.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Which way.
    pub direction: Direction,
    /// From where to where.
    pub source_destination: (SocketAddr, SocketAddr),
    /// The IP packet.
    pub packet: &'a [u8],
    /// In it, what UDP carries.
    pub payload: &'a [u8],
}

/// The ends of the flow of a packet that goes this way, from `source` to `destination`.
fn ends(direction: Direction, (source, destination): (SocketAddr, SocketAddr)) -> Ends {
    match direction {
        Direction::Up => Ends { client: source, server: destination },
        Direction::Down => Ends { client: destination, server: source },
    }
}

impl Player {
    /// At the beginning of a capture.
    pub fn new(config: Config, local_rtt: Option<Nanos>, truth: Option<Truth>) -> Player {
        let seed = RandomState::new().hash_one("flow table");
        Player {
            engine: Engines::new(config, seed),
            now: Time::ZERO,
            looked: Time::ZERO,
            handle: 0,
            local_rtt,
            replies: VecDeque::new(),
            probes: 0,
            book: Book::default(),
            truth,
        }
    }

    /// A packet arrives. Captures of several interfaces may be out of order by a
    /// little; the engine's time never goes back.
    pub fn packet(&mut self, time: Time, shown: &Shown<'_>) {
        self.advance(time.max(self.now));
        let ends = ends(shown.direction, shown.source_destination);
        let number = self.book.packet(self.now, ends, shown.direction, shown.packet.len());
        if let (Some(truth), Some(number), Direction::Down) =
            (&mut self.truth, number, shown.direction)
        {
            truth.shown(self.now, ends, number, shown.payload);
        }
        self.handle = self.handle.wrapping_add(1);
        let handle = Handle(self.handle);
        let verdict = self.engine.on_packet(self.now, shown.direction, shown.packet, handle);
        if verdict == Verdict::Hold {
            self.book.held(ends);
        }
        self.act();
    }

    /// Packets pass that nobody can look at.
    pub fn gap(&mut self, time: Time) {
        self.advance(time.max(self.now));
        self.engine.on_gap(self.now);
        self.act();
    }

    /// Does all that is due until then, in the order in which it falls due.
    fn advance(&mut self, until: Time) {
        loop {
            let reply = self.replies.front().map(|(at, _)| *at);
            let timeout = self.engine.next_timeout();
            let Some(at) = [reply, timeout].into_iter().flatten().min().filter(|at| *at <= until)
            else {
                break;
            };
            self.now = at.max(self.now);
            if reply == Some(at)
                && let (Some((_, client)), Some(rtt)) = (self.replies.pop_front(), self.local_rtt)
            {
                self.engine.on_probe_reply(self.now, client, rtt);
            } else {
                self.engine.on_timeout(self.now);
                // It would be the engine's fault, but no reason to hang.
                if self.engine.next_timeout().is_some_and(|next| next <= at) {
                    break;
                }
            }
            self.act();
        }
        self.now = until;
        if self.now.since(self.looked) >= LOOK {
            self.look();
        }
    }

    fn look(&mut self) {
        self.looked = self.now;
        self.engine.flows(self.now).for_each(|flow| self.book.flow(&flow));
    }

    fn act(&mut self) {
        while let Some(action) = self.engine.next_action() {
            match action {
                // Nobody reports anything here.
                Action::Release(_) | Action::Send { .. } | Action::Watch { .. } => {}
                Action::Inject { direction, packet } => {
                    if let Some(udp) = find(packet) {
                        self.book.copied(ends(direction, udp.ends()), packet.len());
                    }
                }
                Action::Probe { client } => {
                    self.probes += 1;
                    self.replies.extend(self.local_rtt.map(|rtt| (self.now + rtt, client)));
                }
                Action::Event(event) => {
                    let ends = Ends { client: event.client, server: event.server };
                    self.book.event(ends, &event);
                    score(&mut self.truth, ends, &event);
                }
            }
        }
    }

    /// The capture is over. What the engine would have done later is not known,
    /// so nothing more falls due.
    pub fn finish(&mut self) -> Stats {
        self.look();
        self.engine.release_all(self.now);
        self.act();
        self.engine.stats(self.now)
    }
}

/// The log is that of the hop to the client, so it says nothing of what goes up.
fn score(truth: &mut Option<Truth>, ends: Ends, event: &Event) {
    match (event.direction, event.kind, truth) {
        (Direction::Down, EventKind::Loss { packet }, Some(truth)) => truth.named(ends, packet),
        (Direction::Down, EventKind::Resend { packet }, Some(truth)) => {
            truth.copied(event.at, ends, packet);
        }
        _ => {}
    }
}
