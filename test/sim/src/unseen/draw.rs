// SPDX-License-Identifier: GPL-2.0-or-later
//! What a case consists of, drawn at random: the number is the seed.

use crate::matrix;
use crate::random::Random;
use crate::scenario::Scenario;

const CLIENTS: [&str; 19] = [
    "quinn",
    "every2",
    "every1",
    "every10",
    "delayed",
    "chromium",
    "quic_go",
    "padded",
    "random_padding",
    "ngtcp2",
    "s2n",
    "msquic",
    "irregular",
    "every4",
    "patient",
    "ack_frequency",
    "ack_frequency_third",
    "timestamps",
    "varying",
];
const CONTROLLERS: [&str; 7] = ["cubic", "cubic", "newreno", "bbr", "bbr3", "quic_go", "hystart"];

/// How many flows there may be, when one begins after the first, and which clients they are of (chosen: a
/// home on an evening; what comes ten seconds later mostly comes after the others).
const FLOWS: [u32; 4] = [2, 2, 3, 4];
const STARTS_MS: [f64; 6] = [0.0, 100.0, 500.0, 1500.0, 3000.0, 10_000.0];
const CLIENT_IDS: [u8; 4] = [0, 0, 1, 2];
/// Of a hundred flows beside the first so many are calls, and so many are downloads by TCP.
const CALLS: u64 = 20;
const BY_TCP: u64 = 15;
/// Of a hundred senders so many leave out a packet number after so many on average (quiche: half to two windows,
/// s2n-quic at 10 Mbit/s: 80), and so many have a Cubic that takes cuts back.
const LEAVE_OUT: u64 = 20;
const LEFT_OUT_AFTER: [u64; 4] = [40, 80, 160, 500];
const TAKE_BACK: u64 = 10;
/// A call lasts for so long, and takes no more than this of the way (chosen: so that several fit).
const CALL_SECONDS: f64 = 6.0;
const CALL_KBPS_PER_MBIT: f64 = 250.0;

/// A case.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// Its number.
    pub number: u64,
    /// Its options, as `sim run --set` takes them; of several flows those of each are in `flows`.
    pub options: Vec<String>,
    /// Its flows as a scenario has them, if there are several.
    pub flows: Vec<String>,
    /// The hop loses packets.
    pub lossy: bool,
}

impl Drawn {
    /// The same to be run, with some options changed.
    pub fn scenario(&self, changes: &[String]) -> anyhow::Result<Scenario> {
        let flows: String = self.flows.iter().map(|flow| format!("[[flow]]\n{flow}\n")).collect();
        let options: Vec<String> = self.options.iter().chain(changes).cloned().collect();
        matrix::parse(&flows, &options)
    }
}

/// Draws one after the other.
struct Dice(Random);

impl Dice {
    fn of<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.0.below(among.len() as u64) as usize]
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.0.below(100) < percent
    }
}

type Options = Vec<(&'static str, String)>;

/// One download; none of its packets is lost on the hop if all are to be `clean`.
pub fn one(number: u64, clean: bool) -> Drawn {
    let mut dice = Dice(Random::new(number));
    let (mut options, rate, lossy) = path(&mut dice, clean);
    let mut download = download(&mut dice, rate);
    peculiar(&mut dice, &mut download);
    options.extend(download.iter().map(|(name, value)| format!("flow.{name}={value}")));
    Drawn { number, options, flows: Vec::new(), lossy }
}

/// Several downloads and calls, by a client or more, some of them after others.
pub fn several(number: u64, clean: bool) -> Drawn {
    let mut dice = Dice(Random::new(number));
    let (options, rate, lossy) = path(&mut dice, clean);
    let count = dice.of(&FLOWS);
    let mut flows = Vec::new();
    for n in 0..count {
        let mut flow = match dice.0.below(100) {
            kind if n > 0 && kind < CALLS => call(&mut dice, rate),
            kind if n > 0 && kind < CALLS + BY_TCP => by_tcp(&mut dice),
            _ => download(&mut dice, rate),
        };
        let start = if n == 0 { 0.0 } else { dice.of(&STARTS_MS) };
        flow.push(("start_ms", format!("{start:?}")));
        flow.push(("client_id", format!("{}", dice.of(&CLIENT_IDS))));
        let lines = flow.iter().map(|(name, value)| format!("{name} = {value}"));
        flows.push(lines.collect::<Vec<_>>().join("\n"));
    }
    Drawn { number, options, flows, lossy }
}

/// The way, its rate in Mbit/s, and whether the hop loses packets.
fn path(dice: &mut Dice, clean: bool) -> (Vec<String>, f64, bool) {
    let mut options = Vec::new();
    let mut set = |name: &str, value: String| options.push(format!("{name}={value}"));
    let rate: f64 = dice.of(&[2.0, 5.0, 10.0, 10.0, 20.0, 35.0, 50.0, 75.0, 100.0, 200.0]);
    set("wan.rate_mbit", format!("{rate:?}"));
    set("wan.delay_ms", format!("{:?}", dice.of(&[3.0, 8.0, 15.0, 25.0, 50.0, 100.0, 150.0])));
    set("wan.queue_bdp", format!("{:?}", dice.of(&[0.3, 1.0, 1.0, 2.0, 4.0])));
    set("wan.qdisc", format!("{:?}", dice.of(&["droptail", "droptail", "codel", "fq_codel"])));
    let times = dice.of(&[0.7, 1.0, 1.2, 2.0, 2.0, 3.0, 5.0]);
    set("wifi.rate_mbit", format!("{:?}", rate * times));
    set("wifi.delay_ms", format!("{:?}", dice.of(&[0.5, 1.0, 2.0, 5.0, 10.0])));
    set("wifi.jitter_percent", format!("{:?}", dice.of(&[0.0, 0.0, 10.0, 30.0, 60.0])));
    let down: f64 = dice.of(&[0.0, 0.0, 0.1, 0.5, 1.0, 1.0, 2.0, 4.0, 8.0]);
    let down = if clean { 0.0 } else { down };
    let up = dice.of(&[0.0, down, down]);
    set("wifi.loss_down", format!("{{ percent = {down:?} }}"));
    set("wifi.loss_up", format!("{{ percent = {up:?} }}"));
    if dice.percent(15) {
        let clump = [dice.of(&[0.5, 2.0, 5.0]), dice.of(&[6.0, 10.0, 20.0])];
        set("wifi.clump_ms", format!("{clump:?}"));
    }
    if dice.percent(10) {
        set("wifi.reorder_percent", format!("{:?}", dice.of(&[0.2, 2.0])));
        set("wifi.reorder_ms", format!("{:?}", dice.of(&[0.5, 3.0])));
    }
    (options, rate, down > 0.0)
}

fn download(dice: &mut Dice, rate: f64) -> Options {
    let sizes: &[u64] = if rate < 35.0 { &[300, 1000, 2000, 5000] } else { &[2000, 5000, 10_000] };
    let mut flow = vec![("bytes", format!("{}", dice.of(sizes) * 1000))];
    flow.extend(ends(dice));
    flow
}

fn by_tcp(dice: &mut Dice) -> Options {
    let bytes = dice.of(&[1_000_000, 3_000_000]);
    vec![("bytes", bytes.to_string()), ("client", "\"tcp\"".into())]
}

fn call(dice: &mut Dice, rate: f64) -> Options {
    let kbps = dice.of(&[100.0_f64, 500.0, 1500.0, 3000.0]).min(rate * CALL_KBPS_PER_MBIT);
    let mut flow = vec![
        ("app", "\"call\"".into()),
        ("seconds", format!("{CALL_SECONDS:?}")),
        ("fps", format!("{:?}", dice.of(&[25.0, 30.0, 50.0]))),
        ("kbps", format!("{kbps:?}")),
    ];
    flow.extend(ends(dice));
    flow
}

/// The client, the sender, and how late the client's host is.
fn ends(dice: &mut Dice) -> Options {
    vec![
        ("client", format!("{:?}", dice.of(&CLIENTS))),
        ("cc", format!("{:?}", dice.of(&CONTROLLERS))),
        ("wake_ms", format!("{:?}", dice.of(&[0.0, 0.2, 0.5, 1.0, 3.0]))),
        ("batch_ms", format!("{:?}", dice.of(&[0.0, 0.0, 0.0, 0.3, 2.0]))),
        ("handshake_ms", format!("{:?}", dice.of(&[0.0, 1.0, 5.0]))),
    ]
}

/// What few senders do. It is drawn after all else, which stays as it was before there was this.
fn peculiar(dice: &mut Dice, flow: &mut Options) {
    let (leaves_out, after) = (dice.percent(LEAVE_OUT), dice.of(&LEFT_OUT_AFTER));
    let takes_back = dice.percent(TAKE_BACK);
    // A client that is no model takes no packets for ones with other numbers.
    let real = |(name, value): &(&str, String)| *name == "client" && value == "\"quinn\"";
    if leaves_out && !flow.iter().any(real) {
        flow.push(("skips_every", after.to_string()));
    }
    if takes_back && let Some((_, cc)) = flow.iter_mut().find(|(name, _)| *name == "cc") {
        *cc = "\"rollback\"".into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{AppKind, CongestionControl, LossModel};

    #[test]
    fn a_number_is_a_case() {
        for draw in [one, several] {
            assert_eq!(draw(7, false), draw(7, false));
            assert_ne!(draw(7, false).options, draw(8, false).options);
            for number in 0..300 {
                draw(number, false).scenario(&[]).unwrap();
            }
        }
    }

    #[test]
    fn a_clean_case_is_the_same_but_for_its_losses() {
        for draw in [one, several] {
            for number in 0..100 {
                let (lossy, clean) = (draw(number, false), draw(number, true));
                assert!(!clean.lossy);
                let without_losses = |drawn: &Drawn| -> Vec<String> {
                    let kept = drawn.options.iter().filter(|it| !it.starts_with("wifi.loss_"));
                    kept.chain(&drawn.flows).cloned().collect()
                };
                assert_eq!(without_losses(&lossy), without_losses(&clean));
                let scenario = clean.scenario(&[]).unwrap();
                let none = LossModel::Percent(0.0);
                assert_eq!((&scenario.wifi.loss_down, &scenario.wifi.loss_up), (&none, &none));
            }
        }
    }

    #[test]
    fn some_senders_are_peculiar() {
        let drawn = (0..200).map(|number| one(number, false).scenario(&[]).unwrap());
        let flows: Vec<_> = drawn.map(|scenario| scenario.flows[0].clone()).collect();
        let leave_out = flows.iter().filter(|flow| flow.skips_every > 0).count();
        let take_back = flows.iter().filter(|flow| flow.cc == CongestionControl::Rollback).count();
        assert!((20..60).contains(&leave_out) && (10..35).contains(&take_back));
    }

    #[test]
    fn several_are_calls_and_downloads_of_one_client_or_more() {
        let drawn: Vec<Scenario> =
            (0..100).map(|number| several(number, false).scenario(&[]).unwrap()).collect();
        let flows = || drawn.iter().flat_map(|scenario| &scenario.flows);
        assert!(drawn.iter().all(|scenario| (2..=4).contains(&scenario.flows.len())));
        assert!(drawn.iter().all(|scenario| scenario.flows[0].start_ms == 0.0));
        assert!(flows().any(|flow| flow.app == AppKind::Call));
        assert!(flows().any(|flow| flow.client_id == 0) && flows().any(|flow| flow.client_id == 2));
        assert!(flows().any(|flow| flow.start_ms >= 10_000.0));
    }
}
