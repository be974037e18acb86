// SPDX-License-Identifier: GPL-2.0-or-later
//! A sender on hops of every kind: it finds what was lost, and nothing else.

use std::num::NonZeroU16;
use std::time::Duration;

use pemi_quack::{Interval, Message, Width};
use pemi_sidekick::sender::{Options, Sender, State};
use pemi_sidekick_tests::Random;
use pemi_sidekick_tests::hop::{Packet, Scene, Story, play};
use proptest::prelude::*;

const MS: Duration = Duration::from_millis(1);

fn packets(every: u16) -> Interval {
    Interval::Packets(NonZeroU16::new(every).expect("not zero"))
}

fn interval() -> impl Strategy<Value = Interval> {
    prop_oneof![
        Just(Interval::Router),
        prop_oneof![Just(2), Just(4), Just(8)].prop_map(packets),
        (5..40u16).prop_map(|ms| Interval::Millis(NonZeroU16::new(ms).expect("not zero"))),
        Just(Interval::Adaptive),
    ]
}

fn width() -> impl Strategy<Value = Width> {
    prop_oneof![Just(Width::Bits16), Just(Width::Bits32), Just(Width::Bits64)]
}

fn lost(story: &Story) -> usize {
    story.packets.iter().filter(|packet| packet.lost).count()
}

fn found(story: &Story) -> usize {
    story.packets.iter().filter(|packet| packet.lost && packet.reported.is_some()).count()
}

/// Reported, though it came. After the last packet no quACK may come that clears one
/// which it overtook, so the end does not count.
fn wrong(story: &Story) -> Vec<(usize, &Packet)> {
    let wrong = |(_, packet): &(usize, &Packet)| !packet.lost && packet.reported.is_some();
    story.packets[..990].iter().enumerate().filter(wrong).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 4, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn losses_are_found_and_nothing_else(
        seed: u64,
        interval in interval(),
        loss in 0.0..0.1,
        loss_back in 0.0..0.3,
        gap_us in 200..20_000u64,
        sequence: u16,
    ) {
        let mut scene = Scene::new(seed);
        (scene.interval, scene.loss, scene.loss_back, scene.sequence) =
            (interval, loss, loss_back, sequence);
        scene.gap = Duration::from_micros(gap_us);
        // No reordering: with it, the quACK that clears a packet may be the one that is lost.
        scene.jitter = (MS / 2).min(scene.gap * 9 / 10);
        let story = play(&scene);
        prop_assert!(wrong(&story).is_empty(), "{:?}", wrong(&story));
        let stats = story.sender.stats();
        prop_assert!(stats.losses >= found(&story) as u64);
        // Those before the session runs and those after the last quACK are not found.
        let Some(running) = story.running else { return Ok(()) };
        let counts = |packet: &&Packet| packet.lost && packet.sent > running + MS * 200;
        let lost: Vec<&Packet> = story.packets[..970].iter().filter(counts).collect();
        let found = lost.iter().filter(|packet| packet.reported.is_some()).count();
        // Nor are those at a time when there were too many for the threshold.
        // One or two may fall between a quACK that was lost and a packet that counting began
        // with.
        let found = found + 2 + 20 * stats.resyncs as usize;
        prop_assert!(found * 100 >= lost.len() * 95, "{} of {}, {:?}", found, lost.len(), stats);
    }

    #[test]
    fn a_router_that_begins_anew_is_noticed(
        seed: u64,
        interval in interval(),
        width in width(),
        same_epoch: bool,
        restarts in prop::collection::vec(50..900u64, 1..4),
    ) {
        let mut scene = Scene::new(seed);
        (scene.interval, scene.width, scene.loss, scene.same_epoch) =
            (interval, width, 0.02, same_epoch);
        scene.restarts = restarts;
        let story = play(&scene);
        // What is sent until a router counts again is not accounted for, nor reported.
        prop_assert!(wrong(&story).is_empty(), "{:?}", wrong(&story));
        prop_assert!(story.router.has_session());
        let unnoticed = |number: u64| scene.restarts.iter().any(|at| (*at - 20..*at + 70).contains(&number));
        let running = story.running.expect("it runs") + MS * 600;
        let later = |number: &usize| story.packets[*number].sent > running && *number < 970 && !unnoticed(*number as u64);
        let told = |number: &usize| {
            let packet = &story.packets[*number];
            !packet.lost || packet.reported.is_some()
        };
        let untold: Vec<usize> =
            (0..1000).filter(later).filter(|number| !told(number)).collect();
        // One may share its identifier, or be lost where an ACCEPT is lost as well.
        prop_assert!(untold.len() <= 1, "{untold:?}, {:?}", story.sender.stats());
    }

    #[test]
    fn reordering_within_the_tolerance_is_no_loss(seed: u64, interval in interval(), loss in 0.0..0.05) {
        let mut scene = Scene::new(seed);
        (scene.interval, scene.loss) = (interval, loss);
        scene.gap = MS / 5;
        scene.jitter = MS * 9 / 10;
        // A quACK has to come after whatever overtook the last packet that counts, be it after eight more.
        scene.packets = 1100;
        let story = play(&scene);
        prop_assert!(wrong(&story).is_empty(), "{:?}", wrong(&story));
    }

    #[test]
    fn more_reordering_than_that_does_no_lasting_harm(seed: u64, interval in interval()) {
        let mut scene = Scene::new(seed);
        (scene.interval, scene.loss) = (interval, 0.01);
        scene.gap = MS / 2;
        scene.jitter = MS * 3;
        scene.packets = 4000;
        let story = play(&scene);
        // Something is wrong about one in three then, but it goes on.
        let late = &story.packets[3000..3900];
        let lost = late.iter().filter(|packet| packet.lost).count();
        let found = late.iter().filter(|packet| packet.lost && packet.reported.is_some()).count();
        prop_assert!(found + 4 >= lost / 4, "{} of {}, {:?}", found, lost, story.sender.stats());
    }

    #[test]
    fn other_bytes_do_nothing(bytes in prop::collection::vec(any::<u8>(), 0..120), kind in 1..8u8) {
        let server = ([192, 0, 2, 1], 4433).into();
        let mut sender = Sender::new(Options::new(7, 5000, server));
        let mut forged = vec![1, kind, 0, 0];
        forged.extend_from_slice(&8u64.to_be_bytes());
        forged.extend_from_slice(&bytes);
        for number in 0..20 {
            sender.on_sent(MS * number, number.into(), &bytes);
            sender.on_message(MS * number, &bytes);
            sender.on_message(MS * number, &forged);
        }
        prop_assert_eq!(sender.state(MS * 20), State::Asking);
        prop_assert_eq!(sender.stats(), Default::default());
    }

    #[test]
    fn messages_of_the_router_in_any_order_do_no_harm(
        seed: u64,
        messages in prop::collection::vec((0..7u8, 0..3u32, any::<u16>(), any::<u32>()), 1..100),
    ) {
        let server = ([192, 0, 2, 1], 4433).into();
        let mut sender = Sender::new(Options::new(7, 5000, server));
        let mut random = Random::new(seed);
        let mut now = Duration::ZERO;
        for (kind, epoch, short, long) in messages {
            now += Duration::from_micros(random.any() % 1_000_000);
            let token = 7;
            let threshold = Options::new(7, 1, server).threshold;
            let mut quack = pemi_quack::AnyQuack::new(Width::Bits32, threshold);
            let mut payload = random.any().to_be_bytes();
            sender.on_sent(now, random.any(), &payload);
            if short % 2 == 0 {
                payload = random.any().to_be_bytes();
            }
            (0..short % 50).for_each(|_| { quack.insert(&payload); });
            let mut body = Vec::new();
            quack.write(threshold, &mut body);
            let mut bytes = Vec::new();
            match kind {
                0 => Message::Cookie { token, cookie: long.into() },
                1 => Message::Accept { token, interval: Interval::Adaptive, threshold, lifetime_s: short, epoch },
                2 => Message::Refuse { token, reason: pemi_quack::Reason::Full },
                3 => Message::Bye { token },
                _ => Message::Quack { token, sequence: short, epoch, age_us: long, quack: &body },
            }
            .write(&mut bytes);
            sender.on_message(now, &bytes);
            while sender.next_lost(now).is_some() {}
            for _ in 0..9 {
                sender.poll_message(now);
            }
            prop_assert!(sender.poll_message(now).is_none(), "it is never done");
            prop_assert!(sender.next_timeout().is_some());
        }
    }
}

#[test]
fn an_outage_is_found_whatever_the_threshold() {
    let mut scene = Scene::new(1);
    scene.outage = Some((500, 600));
    scene.gap = MS * 2;
    let story = play(&scene);
    assert!(wrong(&story).is_empty());
    assert_eq!((lost(&story), found(&story)), (100, 100));
    assert_eq!(story.sender.stats().resyncs, 0);
}

#[test]
fn a_late_packet_is_told_of_before_the_next_one_is_sent() {
    let mut scene = Scene::new(2);
    (scene.interval, scene.loss) = (Interval::Adaptive, 0.05);
    let story = play(&scene);
    let lost = story.packets[20..900].iter().filter(|packet| packet.lost);
    let waits = lost.map(|packet| packet.reported.expect("found") - packet.sent);
    let mut waits: Vec<Duration> = waits.collect();
    waits.sort_unstable();
    // Due 20 ms after the one before, which was 20 ms before it: 5 ms later it is late.
    assert!(waits[waits.len() / 2] < MS * 8, "{waits:?}");
}

#[test]
fn a_restart_costs_less_than_a_second() {
    for same_epoch in [false, true] {
        let mut scene = Scene::new(3);
        (scene.loss, scene.same_epoch, scene.restarts) = (0.2, same_epoch, vec![500]);
        let story = play(&scene);
        let first = story.packets[505..].iter().filter_map(|packet| packet.reported).min();
        let restart = Duration::from_millis(100) + scene.gap * 500;
        assert!(first.expect("losses are found again") < restart + MS * 1000);
        assert_eq!(story.sender.stats().fallbacks, 0);
    }
}

#[test]
fn two_packets_with_the_identifier_where_counting_begins_are_no_outage() {
    let mut scene = Scene::new(8_962_445_483_634_314_856);
    // Packets 282 and 298 share theirs, and 298 is the first quACK's last after the restart.
    (scene.interval, scene.width, scene.loss) = (packets(8), Width::Bits16, 0.02);
    scene.restarts = vec![259];
    let story = play(&scene);
    assert!(wrong(&story).is_empty(), "{:?}", wrong(&story));
    let found = story.packets[320..970].iter().filter(|packet| packet.lost);
    assert!(found.clone().count() > 5 && found.clone().all(|packet| packet.reported.is_some()));
}

#[test]
fn nobody_is_asked_for_ever_and_seldom() {
    let mut scene = Scene::new(4);
    scene.loss_back = 1.0;
    let story = play(&scene);
    // After 0, 1, 3, 7, 12 and 17 s.
    assert_eq!(story.messages, 6);
    assert_eq!(story.sender.stats().quacks, 0);
}

#[test]
fn the_router_is_told_how_many_were_lost_and_that_it_ends() {
    let mut scene = Scene::new(5);
    scene.loss = 0.1;
    let mut story = play(&scene);
    let now = Duration::from_secs(60);
    let losses = story.sender.stats().losses as u16;
    assert!(losses > 50);
    let hello = story.sender.poll_message(now).expect("a HELLO is due");
    story.router.on_message(&hello);
    assert_eq!(story.router.hello().expect("a session").losses, losses);
    story.sender.close();
    let bye = story.sender.poll_message(now).expect("BYE");
    story.router.on_message(&bye);
    assert!(!story.router.has_session());
    assert_eq!(story.sender.poll_message(now), None);
    assert_eq!(story.sender.next_timeout(), None);
    assert_eq!(story.sender.state(now), State::Closed);
}
