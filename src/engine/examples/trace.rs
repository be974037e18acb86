// SPDX-License-Identifier: GPL-2.0-or-later
//! Shows the engine a short download that loses two packets on the last hop, and prints what
//! it asks for: to send copies, and, once one has repaired a gap, to hold the replies that show
//! the next one until a reply shows that its copy has arrived.
//!
//! ```sh
//! cargo run -p pemi-engine --example trace
//! ```

use pemi_engine::{Action, Config, Direction, Engine, Handle, MS, Nanos, Time, US, Verdict};

/// An IPv4 packet with a UDP datagram between a client and a server.
fn packet(direction: Direction, payload: &[u8]) -> Vec<u8> {
    let (client, server) = (([192, 168, 1, 2], 50_000u16), ([203, 0, 113, 7], 443u16));
    let ((from, from_port), (to, to_port)) = match direction {
        Direction::Down => (server, client),
        Direction::Up => (client, server),
    };
    let udp_len = u16::try_from(payload.len() + 8).expect("it fits a datagram");
    let mut packet = vec![0x45, 0];
    packet.extend((udp_len + 20).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend(from.into_iter().chain(to));
    // The engine does not look at checksums.
    for field in [from_port, to_port, udp_len, 0] {
        packet.extend(field.to_be_bytes());
    }
    packet.extend(payload);
    packet
}

/// The start of a connection: a padded datagram with a QUIC Initial (RFC 9000, section 17.2.2).
fn initial() -> Vec<u8> {
    let mut datagram = vec![0xc0, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0];
    datagram.extend((0x4000u16 | 1182).to_be_bytes());
    datagram.resize(1200, 0x55);
    datagram
}

/// A datagram of this size with a short header, of which the engine sees nothing but the size.
fn short(len: usize) -> Vec<u8> {
    vec![0x40; len]
}

/// A router: it shows each packet to the engine and does what the engine asks for.
struct Router {
    engine: Engine,
    shown: u32,
}

impl Router {
    fn see(&mut self, now: Time, direction: Direction, payload: &[u8]) {
        self.shown += 1;
        let handle = Handle(self.shown);
        let verdict = self.engine.on_packet(now, direction, &packet(direction, payload), handle);
        if verdict == Verdict::Hold {
            println!("{} hold packet {}, {} bytes", ms(now), self.shown, payload.len());
        }
        self.act(now);
    }

    fn act(&mut self, now: Time) {
        while let Some(action) = self.engine.next_action() {
            match action {
                Action::Release(Handle(number)) => println!("{} release packet {number}", ms(now)),
                Action::Inject { packet, .. } => {
                    println!("{} send a copy of {} bytes", ms(now), packet.len());
                }
                Action::Send { packet, .. } => {
                    println!("{} send {} bytes", ms(now), packet.len());
                }
                Action::Probe { client } => {
                    println!("{} send an echo request to {client}", ms(now))
                }
                Action::Watch { client } => {
                    println!("{} ask the access point of {client}", ms(now));
                }
                Action::Event(event) => println!("{} {:?}", ms(now), event.kind),
            }
        }
    }

    /// Lets time pass until `until`, with everything that is due before.
    fn wait(&mut self, until: Time) {
        while let Some(due) = self.engine.next_timeout().filter(|due| *due < until) {
            self.engine.on_timeout(due);
            self.act(due);
        }
    }
}

fn ms(at: Time) -> String {
    format!("{:7.2} ms", at.as_nanos() as f64 / 1e6)
}

/// The client is 2 ms away. It replies to every second packet, and at once where one is missing.
const LOCAL_RTT: Nanos = 2 * MS;
const PACKETS: i64 = 60;
const LOST: [i64; 2] = [31, 51];
/// An acknowledgement is two bytes longer while it shows a gap.
const REPLY: usize = 36;

/// When the server's packet of this number is sent on.
fn sent(number: i64) -> Time {
    Time::ZERO + 200 * MS + number * 1200 * US
}

/// The download as the router sees it: times, directions and sizes of datagrams.
fn download() -> Vec<(Time, Direction, usize)> {
    let mut seen: Vec<_> = (0..PACKETS).map(|n| (sent(n), Direction::Down, 1200)).collect();
    // From the reply to the packet after a lost one to the reply to its copy.
    let gaps = LOST.map(|lost| sent(lost + 1) + LOCAL_RTT..sent(lost + 1) + 2 * LOCAL_RTT);
    let replies = (0..PACKETS).filter(|n| {
        let every_second = n % 2 == 1 && !LOST.contains(n);
        every_second || LOST.contains(&(n - 1))
    });
    for at in replies.map(|n| sent(n) + LOCAL_RTT) {
        let longer = if gaps.iter().any(|gap| gap.contains(&at)) { 2 } else { 0 };
        seen.push((at, Direction::Up, REPLY + longer));
    }
    seen.extend(gaps.map(|gap| (gap.end, Direction::Up, REPLY)));
    seen.sort_by_key(|(at, ..)| *at);
    seen
}

fn main() {
    let config = Config { events: true, ..Config::default() };
    let mut router = Router { engine: Engine::new(config, 1), shown: 0 };
    let start = Time::ZERO + 100 * MS;
    router.see(start, Direction::Up, &initial());
    router.see(start + 50 * MS, Direction::Down, &initial());
    for reply in 0..5 {
        router.see(start + 52 * MS + reply * 10 * US, Direction::Up, &short(REPLY));
    }
    for (at, direction, len) in download() {
        router.wait(at);
        router.see(at, direction, &short(len));
    }
    let stats = router.engine.stats(sent(PACKETS));
    println!("{} gaps, {} of them repaired", stats.losses_inferred, stats.losses_repaired);
}
