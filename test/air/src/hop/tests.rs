// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;

/// What came of a probe: packets of 1,250 bytes to the client.
#[derive(Debug, Default)]
struct Probe {
    /// By number: how long it took; none: lost.
    delays: Vec<Option<Nanos>>,
    arrivals: Vec<Nanos>,
    order: Vec<u32>,
}

impl Probe {
    /// `count` packets in bursts, one burst each `gap`.
    fn run(preset: &str, seed: u64, count: u32, burst: u32, gap: Nanos) -> Probe {
        Probe::of(&Settings::preset(preset).unwrap(), seed, count, burst, gap)
    }

    fn of(settings: &Settings, seed: u64, count: u32, burst: u32, gap: Nanos) -> Probe {
        let mut hop = Hop::new(settings, 1, seed, 0);
        let mut probe = Probe { delays: vec![None; count as usize], ..Probe::default() };
        let sent = |number: u32| 200 * MS + Nanos::from(number / burst) * gap;
        for number in 0..count {
            hop.push(sent(number), 0, Way::Down, 1_250, number);
            probe.collect(&mut hop, sent);
        }
        while let Some(at) = hop.next_event() {
            hop.advance(at);
        }
        probe.collect(&mut hop, sent);
        assert!(hop.under_way().is_empty());
        probe
    }

    fn collect(&mut self, hop: &mut Hop<u32>, sent: impl Fn(u32) -> Nanos) {
        while let Some(outcome) = hop.pop_outcome() {
            if outcome.arrived {
                self.delays[outcome.item as usize] = Some(outcome.at - sent(outcome.item));
                self.arrivals.push(outcome.at);
                self.order.push(outcome.item);
            }
        }
    }

    fn lost(&self) -> usize {
        self.delays.iter().filter(|delay| delay.is_none()).count()
    }

    /// Milliseconds; percent of those that arrived.
    fn delay(&self, percent: usize) -> f64 {
        let mut delays: Vec<Nanos> = self.delays.iter().flatten().copied().collect();
        delays.sort_unstable();
        delays[(delays.len() * percent / 100).min(delays.len() - 1)] as f64 / MS as f64
    }

    fn longest_clump(&self) -> usize {
        let clumps = self.arrivals.chunk_by(|a, b| b - a < MS / 2);
        clumps.map(<[_]>::len).max().unwrap_or(0)
    }

    fn longest_loss(&self) -> usize {
        let runs = self.delays.chunk_by(|a, b| a.is_none() == b.is_none());
        runs.filter(|run| run[0].is_none()).map(<[_]>::len).max().unwrap_or(0)
    }
}

#[test]
fn nothing_ever_comes_out_of_order() {
    for preset in Settings::presets().into_keys() {
        let probe = Probe::run(&preset, 1, 8_000, 8, 10 * MS);
        assert!(probe.order.is_sorted(), "{preset}");
        assert_eq!(probe.order.len() + probe.lost(), 8_000, "{preset}");
    }
}

#[test]
fn clean_is_quick_and_loses_nothing() {
    let probe = Probe::run("clean", 1, 2_000, 1, 5 * MS);
    assert_eq!(probe.lost(), 0);
    assert!(probe.delay(50) < 0.5 && probe.delay(99) < 0.9, "{}", probe.delay(99));
}

#[test]
fn thirty_attempts_turn_losses_into_delay() {
    let (good, busy) =
        (Probe::run("good", 1, 20_000, 8, 10 * MS), Probe::run("busy", 1, 20_000, 8, 10 * MS));
    assert_eq!((good.lost(), busy.lost() < 10), (0, true), "{}", busy.lost());
    assert!((1.5..8.0).contains(&good.delay(99)), "{}", good.delay(99));
    assert!((10.0..50.0).contains(&busy.delay(99)), "{}", busy.delay(99));
    assert!(busy.longest_clump() >= 16);
}

#[test]
fn poor_loses_some_in_short_runs() {
    let lost = |seed| {
        let probe = Probe::run("poor", seed, 20_000, 8, 10 * MS);
        assert!(probe.longest_loss() <= 40, "{}", probe.longest_loss());
        probe.lost()
    };
    let lost: usize = (1..=4).map(lost).sum();
    // 0.2 to 1.2 % of 80,000.
    assert!((160..960).contains(&lost), "{lost}");
}

#[test]
fn without_a_request_a_hole_stops_everything_behind_it() {
    let mut settings = Settings::preset("clean").unwrap();
    settings.radio.attempts = 4;
    settings.link.errors.good = 0.3;
    let with = Probe::of(&settings, 1, 8_000, 1, MS);
    settings.radio.bar = false;
    let without = Probe::of(&settings, 1, 8_000, 1, MS);
    assert_eq!(with.longest_clump().min(9), with.longest_clump(), "freed within some ms");
    // At 1,000 packets a second the window of 64 ends it before the timer, unless
    // there is a second hole in it.
    let longest = without.delay(100);
    assert!((60.0..109.0).contains(&longest), "{longest} ms");
    assert!((60..=66).contains(&without.longest_clump()), "{}", without.longest_clump());
    let slow = Probe::of(&settings, 1, 2_000, 1, 6 * MS);
    assert!((104.0..109.0).contains(&slow.delay(100)), "{} ms by the timer", slow.delay(100));
}

#[test]
fn a_sleeping_client_gets_everything_at_its_beacon() {
    // Four packets a second find it asleep, 20 a second keep it awake.
    let asleep = Probe::run("sleepy", 1, 400, 1, 250 * MS);
    assert_eq!(asleep.lost(), 0);
    assert!((35.0..70.0).contains(&asleep.delay(50)), "{}", asleep.delay(50));
    assert!(asleep.delay(100) < 110.0, "{}", asleep.delay(100));
    let awake = Probe::run("sleepy", 1, 400, 1, 50 * MS);
    assert!(awake.delay(90) < 3.0);
    let bursts = Probe::run("sleepy", 1, 3_000, 30, 1_000 * MS);
    assert!(bursts.longest_clump() >= 20, "{}", bursts.longest_clump());
}

#[test]
fn a_move_loses_what_is_sent_meanwhile() {
    let probe = Probe::run("roam", 1, 24_000, 1, 1_250_000);
    // 35 ms at 800 packets a second, each 4 s of 30.
    assert!((25..45).contains(&probe.longest_loss()), "{}", probe.longest_loss());
    assert!((50..400).contains(&probe.lost()), "{}", probe.lost());
}

#[test]
fn neighbours_make_the_air_scarce() {
    let crowded = Probe::run("crowded", 1, 8_000, 8, 10 * MS);
    let mut settings = Settings::preset("crowded").unwrap();
    settings.neighbours.clear();
    let alone = Probe::of(&settings, 1, 8_000, 8, 10 * MS);
    assert!(crowded.delay(90) > 1.5 * alone.delay(90), "{} {}", crowded.delay(90), alone.delay(90));
}

#[test]
fn what_waits_below_the_queue_is_limited() {
    let mut hop: Hop<u32> = Hop::new(&Settings::preset("clean").unwrap(), 1, 1, 0);
    let mut pushed = 0;
    while hop.has_room(0, Way::Down) {
        hop.push(0, 0, Way::Down, 1_500, pushed);
        pushed += 1;
    }
    // 12 ms of 189 us each.
    assert!((60..70).contains(&pushed), "{pushed}");
    hop.advance(20 * MS);
    assert!(hop.has_room(0, Way::Down));
}

#[test]
fn the_same_seed_gives_the_same_hop_and_a_log_of_every_frame() {
    let run = |seed| {
        let mut hop = Hop::new(&Settings::preset("crowded").unwrap(), 2, seed, 0);
        hop.keep_log();
        for number in 0..2_000u32 {
            let way = if number % 3 == 0 { Way::Up } else { Way::Down };
            hop.push(Nanos::from(number) * MS, number as usize % 2, way, 1_000, number);
        }
        hop.advance(3_000 * MS);
        std::iter::from_fn(|| hop.pop_row()).collect::<Vec<String>>()
    };
    assert!(run(1).len() >= 2_000);
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
