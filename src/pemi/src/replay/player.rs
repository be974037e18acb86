//! The engine in the time of the capture, and who does what it asks for: nobody.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};

use pemi_engine::{
    Action, Config, Direction, Engine, EventKind, Handle, Nanos, SEC, Stats, Time, Verdict,
};

use super::book::{Book, Ends};
use super::truth::Truth;
use crate::udp;

/// Flows are looked at this often: the engine forgets them when they end.
const LOOK: Nanos = SEC;

/// Plays a capture to an engine and writes down what it does.
///
/// Nothing in a capture changes. Copies never arrive, so a hole stays open until
/// the server's own repair; held packets are on their way already, so releasing
/// them means nothing. Probes are answered with a given round trip, or not at all.
#[derive(Debug)]
pub struct Player {
    engine: Engine,
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

impl Shown<'_> {
    fn ends(&self) -> Ends {
        let (source, destination) = self.source_destination;
        match self.direction {
            Direction::Up => Ends { client: source, server: destination },
            Direction::Down => Ends { client: destination, server: source },
        }
    }
}

impl Player {
    /// At the beginning of a capture.
    pub fn new(config: Config, local_rtt: Option<Nanos>, truth: Option<Truth>) -> Player {
        let seed = RandomState::new().hash_one("flow table");
        Player {
            engine: Engine::new(config, seed),
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
        let ends = shown.ends();
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
                Action::Release(_) => {}
                Action::Inject { packet, .. } => {
                    let ends = udp::find(packet).and_then(|datagram| datagram.ends(packet));
                    if let Some((server, client)) = ends {
                        self.book.copied(Ends { client, server }, packet.len());
                    }
                }
                Action::Probe { client } => {
                    self.probes += 1;
                    self.replies.extend(self.local_rtt.map(|rtt| (self.now + rtt, client)));
                }
                Action::Event(event) => {
                    let ends = Ends { client: event.client, server: event.server };
                    self.book.event(ends, event.kind);
                    match (event.kind, &mut self.truth) {
                        (EventKind::Loss { packet }, Some(truth)) => truth.named(ends, packet),
                        (EventKind::Resend { packet }, Some(truth)) => {
                            truth.copied(event.at, ends, packet);
                        }
                        _ => {}
                    }
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
