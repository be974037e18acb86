// SPDX-License-Identifier: GPL-2.0-or-later
//! Anything in any order, at any time: nothing panics, what was held comes
//! back exactly once, and copies are copies.

use pemi_engine::{Config, Count, Direction, Fate, Radio, Station, Ticket, Time};
use pemi_engine_tests::packets::{Flow, Long, V1, V2, long, short};
use pemi_engine_tests::router::{Manners, Router};
use proptest::collection::vec;
use proptest::prelude::*;

/// In nanoseconds.
const HOUR: u64 = 3_600_000_000_000;

/// How the clock goes on.
#[derive(Clone, Debug)]
enum Clock {
    Forwards(u64),
    Backwards(u64),
    Stands,
    To(u64),
    /// To the engine's next timeout.
    Due,
}

#[derive(Clone, Debug)]
enum Body {
    Raw(Vec<u8>),
    Long { version: u32, kind: Long, body: usize },
    Short { number: u64, len: usize },
}

#[derive(Clone, Debug)]
enum Call {
    Packet {
        down: bool,
        v6: bool,
        flow: u32,
        bodies: Vec<Body>,
        changes: Vec<(usize, u8)>,
        cut: Option<usize>,
    },
    Raw {
        down: bool,
        bytes: Vec<u8>,
    },
    /// The next packet has waited.
    Waited(i64),
    Timeout,
    ProbeReply {
        flow: u32,
        v6: bool,
        rtt: i64,
    },
    /// Of one of those under way, or of none.
    Report {
        ticket: u32,
        lost: bool,
    },
    Counted {
        flow: u32,
        v6: bool,
        radio: Radio,
    },
    Station {
        flow: u32,
        v6: bool,
        station: Station,
    },
    SetConfig(Config),
    ReleaseAll,
    Reset,
    StandBack(u8),
    Renumber([u8; 8]),
    Look,
    Fetch(usize),
}

fn radio() -> impl Strategy<Value = Radio> {
    let lost_is = prop_oneof![Just(Count::Exact), Just(Count::AtMost), Just(Count::Nothing)];
    let times = (any::<u64>(), any::<u64>());
    let counts = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
    (times, counts, lost_is).prop_map(|((from, to), (sent, lost, queued, queue_drops), lost_is)| {
        let [from, to] = [from, to].map(Time::from_nanos);
        Radio { from, to, sent, lost, lost_is, queued, queue_drops }
    })
}

fn station() -> impl Strategy<Value = Station> {
    prop_oneof![Just(Station::Joined), Just(Station::Gone), Just(Station::Moved)]
}

fn clock() -> impl Strategy<Value = Clock> {
    prop_oneof![
        8 => (0u64..3_000_000).prop_map(Clock::Forwards),
        3 => Just(Clock::Stands),
        3 => Just(Clock::Due),
        1 => (0u64..2_000_000_000).prop_map(Clock::Forwards),
        1 => (0u64..50_000_000).prop_map(Clock::Backwards),
        1 => any::<u64>().prop_map(Clock::Forwards),
        1 => any::<u64>().prop_map(Clock::Backwards),
        1 => prop_oneof![
            Just(0), Just(1), Just(u64::MAX), Just(u64::MAX - 1), Just(1 << 63),
            Just((1 << 63) - 1), any::<u64>(),
        ].prop_map(Clock::To),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    let version = prop_oneof![6 => Just(V1), 2 => Just(V2), 1 => Just(0), 1 => any::<u32>()];
    let kind = prop_oneof![
        Just(Long::Initial),
        Just(Long::ZeroRtt),
        Just(Long::Handshake),
        Just(Long::Retry)
    ];
    prop_oneof![
        1 => vec(any::<u8>(), 0..1300).prop_map(Body::Raw),
        2 => (version, kind, 0usize..1300).prop_map(|(version, kind, body)| Body::Long {
            version, kind, body
        }),
        8 => (any::<u64>(), prop_oneof![33usize..45, 33usize..1400])
            .prop_map(|(number, len)| Body::Short { number, len }),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let span = || {
        prop_oneof![
            3 => 0i64..100_000_000, 1 => 0i64..100_000_000_000,
            1 => Just(0), 1 => Just(-1), 1 => Just(i64::MAX), 1 => Just(i64::MIN), 1 => any::<i64>()
        ]
    };
    let count = || prop_oneof![8 => 0usize..40, 1 => Just(usize::MAX)];
    let percent = prop_oneof![4 => 0u32..=100, 1 => any::<u32>()];
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (0usize..200_000, count(), percent, flags, proptest::option::of(span()), span(), span())
        .prop_map(
            |(
                cache_bytes,
                max_flows,
                percent,
                (conceal, events, both, reports, counts),
                release,
                idle,
                cap,
            )| {
                Config {
                    cache_bytes,
                    max_flows,
                    resend_percent: percent,
                    conceal,
                    events,
                    release_after: release,
                    idle_timeout: idle,
                    hold_cap: cap,
                    both_directions: both,
                    reports,
                    reports_counted: counts && events,
                    control_percent: if counts { 30 } else { 0 },
                    counts,
                    ..Config::default()
                }
            },
        )
}

fn call() -> impl Strategy<Value = Call> {
    let changes = prop_oneof![3 => Just(Vec::new()), 1 => vec((0usize..80, any::<u8>()), 1..4)];
    let cut = prop_oneof![5 => Just(None), 1 => (0usize..1300).prop_map(Some)];
    let packet = (any::<bool>(), any::<bool>(), 0u32..4, vec(body(), 1..3), changes, cut).prop_map(
        |(down, v6, flow, bodies, changes, cut)| Call::Packet {
            down,
            v6,
            flow,
            bodies,
            changes,
            cut,
        },
    );
    let rtt = prop_oneof![4 => 0i64..100_000_000, 1 => any::<i64>()];
    prop_oneof![
        30 => packet,
        2 => (any::<bool>(), vec(any::<u8>(), 0..200)).prop_map(|(down, bytes)| {
            Call::Raw { down, bytes }
        }),
        4 => prop_oneof![4 => 0i64..2_000_000, 1 => any::<i64>()].prop_map(Call::Waited),
        8 => Just(Call::Timeout),
        3 => (0u32..4, any::<bool>(), rtt).prop_map(|(flow, v6, rtt)| Call::ProbeReply {
            flow, v6, rtt
        }),
        6 => (prop_oneof![8 => 0u32..40, 1 => any::<u32>()], any::<bool>())
            .prop_map(|(ticket, lost)| Call::Report { ticket, lost }),
        1 => (0u32..4, any::<bool>(), radio())
            .prop_map(|(flow, v6, radio)| Call::Counted { flow, v6, radio }),
        1 => (0u32..4, any::<bool>(), station())
            .prop_map(|(flow, v6, station)| Call::Station { flow, v6, station }),
        1 => config().prop_map(Call::SetConfig),
        1 => Just(Call::ReleaseAll),
        1 => Just(Call::Reset),
        1 => (0u8..3).prop_map(Call::StandBack),
        1 => any::<[u8; 8]>().prop_map(Call::Renumber),
        1 => Just(Call::Look),
        8 => prop_oneof![Just(usize::MAX), 0usize..4].prop_map(Call::Fetch),
    ]
}

fn flow(n: u32, v6: bool) -> Flow {
    if v6 { Flow::v6(n * 100) } else { Flow::v4(n * 100) }
}

fn packet(
    flow: Flow,
    direction: Direction,
    bodies: &[Body],
    changes: &[(usize, u8)],
    cut: Option<usize>,
) -> Vec<u8> {
    let payload: Vec<u8> = bodies
        .iter()
        .flat_map(|body| match body {
            Body::Raw(bytes) => bytes.clone(),
            Body::Long { version, kind, body } => long(*version, *kind, *body),
            Body::Short { number, len } => short(1, *number, *len),
        })
        .collect();
    let mut packet = flow.datagram(direction, &payload);
    packet.truncate(cut.unwrap_or(usize::MAX));
    for (at, value) in changes {
        let len = packet.len();
        if len > 0 {
            packet[at % len] = *value;
        }
    }
    packet
}

fn towards_client(down: bool) -> Direction {
    if down { Direction::Down } else { Direction::Up }
}

fn play(config: Config, calls: Vec<(Clock, Call)>) {
    let mut router = Router::new(config, 1, Manners::Bad);
    let mut now = Time::from_nanos(5_000_000_000);
    let mut done = Vec::new();
    for (clock, call) in calls {
        let nanos = now.as_nanos();
        now = match clock {
            Clock::Forwards(by) => Time::from_nanos(nanos.saturating_add(by)),
            Clock::Backwards(by) => Time::from_nanos(nanos.saturating_sub(by)),
            Clock::Stands => now,
            Clock::To(nanos) => Time::from_nanos(nanos),
            Clock::Due => router.engine.next_timeout().unwrap_or(now),
        };
        match call {
            Call::Packet { down, v6, flow: n, bodies, changes, cut } => {
                let direction = towards_client(down);
                let bytes = packet(flow(n, v6), direction, &bodies, &changes, cut);
                router.packet(now, direction, &bytes, &mut done);
            }
            Call::Raw { down, bytes } => {
                router.packet(now, towards_client(down), &bytes, &mut done);
            }
            Call::Waited(waited) => router.engine.waited(waited),
            Call::Timeout => router.timeout(now, &mut done),
            Call::ProbeReply { flow: n, v6, rtt } => {
                router.probe_reply(now, flow(n, v6).client.ip(), rtt, &mut done);
            }
            Call::Report { ticket, lost } => {
                let fate = if lost { Fate::Lost } else { Fate::Arrived };
                router.report(now, Ticket(ticket), fate, &mut done);
            }
            Call::Counted { flow: n, v6, radio } => {
                router.engine.on_radio(flow(n, v6).client.ip(), radio);
            }
            Call::Station { flow: n, v6, station } => {
                router.engine.on_station(now, flow(n, v6).client.ip(), station);
            }
            Call::SetConfig(config) => router.set_config(now, config, &mut done),
            Call::ReleaseAll => router.release_all(now, &mut done),
            Call::Reset => router.engine.reset(),
            Call::StandBack(networks) => router.stand_back(now, networks, &mut done),
            Call::Renumber(numbers) => router.engine.renumber(&numbers),
            Call::Look => {
                router.stats(now);
                router.engine.outcomes(now).iter().for_each(|it| assert!(it.busy > 0));
                router.engine.flows(now).for_each(|flow| assert!(!flow.state.name().is_empty()));
            }
            Call::Fetch(limit) => router.drain(now, limit, &mut done),
        }
        done.clear();
    }
    router.release_all(now, &mut done);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_panics_and_nothing_is_lost(
        config in config(),
        calls in vec((clock(), call()), 1..150),
    ) {
        play(config, calls);
    }

    /// The same with the shipped settings, so that long runs get somewhere.
    #[test]
    fn nothing_panics_with_the_shipped_settings(calls in vec((clock(), call()), 50..250)) {
        let calls = calls.into_iter().filter(|(_, call)| !matches!(call, Call::SetConfig(_)));
        play(Config { events: true, ..Config::default() }, calls.collect());
    }

    /// The same again with a clock that stays within hours.
    #[test]
    fn nothing_panics_within_hours(
        config in config(),
        calls in vec((clock(), call()), 1..200),
    ) {
        let near = |clock| match clock {
            Clock::Forwards(by) => Clock::Forwards(by % HOUR),
            Clock::Backwards(by) => Clock::Backwards(by % HOUR),
            Clock::To(nanos) => Clock::To(nanos % HOUR),
            // The next timeout may lie as far away as the settings say.
            Clock::Due | Clock::Stands => Clock::Stands,
        };
        play(config, calls.into_iter().map(|(clock, call)| (near(clock), call)).collect());
    }

    #[test]
    fn any_bytes_will_do(packets in vec((any::<bool>(), vec(any::<u8>(), 0..100)), 1..20)) {
        let calls = packets
            .into_iter()
            .map(|(down, bytes)| (Clock::Forwards(1000), Call::Raw { down, bytes }));
        play(Config::default(), calls.collect());
    }
}

/// The smallest case of a span that does not fit.
#[test]
fn a_reply_centuries_later() {
    let mut router = Router::new(Config::default(), 1, Manners::Bad);
    let mut done = Vec::new();
    // The first flow keeps the second from being forgotten as idle.
    for (flow, now, direction) in [
        (0, Time::MAX, Direction::Down),
        (1, Time::ZERO, Direction::Down),
        (1, Time::MAX, Direction::Up),
    ] {
        let packet = Flow::v4(flow).datagram(direction, &long(V1, Long::Handshake, 100));
        router.packet(now, direction, &packet, &mut done);
    }
}
