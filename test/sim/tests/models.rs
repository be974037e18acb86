// SPDX-License-Identifier: GPL-2.0-or-later
//! The models of clients, hosts, radio and TCP against what they stand for.

use pemi_sim::air::{Air, Recorded};
use pemi_sim::bars::cases;
use pemi_sim::matrix;
use pemi_sim::run::{Assist, Outcome, run};
use pemi_sim::scenario::Wifi;

fn outcome(text: &str, changes: &[&str], assist: Assist, seed: u64) -> Outcome {
    let changes: Vec<String> = changes.iter().map(|change| (*change).into()).collect();
    run(&matrix::parse(text, &changes).unwrap(), assist, seed).unwrap()
}

/// Bytes of the last packets may be on their way: the rate is judged, not the end.
const DOWNLOAD: &str = "[wan]\nqueue_bdp = 4.0\n[[flow]]\nbytes = 3_000_000";

#[test]
fn every_client_fills_the_path_when_nothing_is_lost() {
    for client in [
        "quinn",
        "every2",
        "every1",
        "every10",
        "delayed",
        "chromium",
        "quic_go",
        "padded",
        "random_padding",
        "tcp",
    ] {
        let result = outcome(DOWNLOAD, &[&format!("flow.client={client}")], Assist::Off, 1);
        let flow = &result.flows[0];
        assert!(flow.fct_s.is_some(), "{client} did not finish");
        assert!((7.5..9.6).contains(&flow.goodput_mbps), "{client}: {}", flow.goodput_mbps);
    }
}

#[test]
fn clients_acknowledge_as_often_as_they_are_meant_to() {
    let replies = |client: &str| {
        let result = outcome(DOWNLOAD, &[&format!("flow.client={client}")], Assist::Off, 1);
        let flow = &result.flows[0];
        flow.inference.packets as f64 / flow.up_packets as f64
    };
    // Slow start's losses before the router are answered one by one.
    assert!((0.9..1.2).contains(&replies("every1")), "{}", replies("every1"));
    assert!((1.6..2.2).contains(&replies("every2")), "{}", replies("every2"));
    assert!(replies("chromium") > 3.0, "{}", replies("chromium"));
    assert!(replies("delayed") > 8.0, "{}", replies("delayed"));
}

#[test]
fn what_is_sent_again_of_a_frame_that_has_arrived_is_no_other_frame() {
    let text = "[wan]\nrate_mbit = 2.0\ndelay_ms = 8.0\n\
                [wifi]\nrate_mbit = 6.0\ndelay_ms = 10.0\n\
                loss_down = { percent = 1.0 }\nloss_up = { percent = 1.0 }\n\
                [[flow]]\napp = \"call\"\nseconds = 6.0\nkbps = 500.0\n\
                client = \"msquic\"\ncc = \"bbr\"\nbatch_ms = 2.0";
    for seed in 1..=12 {
        let result = outcome(text, &[], Assist::On, seed);
        let missing = result.flows[0].frame_delay_ms.as_ref().map(|delays| delays.missing);
        assert_eq!(missing, Some(0), "with seed {seed} the call ended before its last frame");
    }
}

#[test]
fn tcp_and_quic_share_a_fair_hop() {
    let text = "limit_s = 20\n[wifi]\nrate_mbit = 8.0\nqdisc = \"fq_codel\"\n\
                [[flow]]\nbytes = 1_000_000_000\n\
                [[flow]]\nbytes = 1_000_000_000\nclient = \"tcp\"\nclient_id = 1";
    let result = outcome(text, &[], Assist::Off, 1);
    let rates: Vec<f64> = result.flows.iter().map(|flow| flow.goodput_mbps).collect();
    assert!(rates.iter().all(|rate| (3.0..4.5).contains(rate)), "{rates:?}");
}

#[test]
fn losses_are_those_asked_for_and_the_same_with_and_without_help() {
    for change in
        ["wifi.loss_down={ percent = 4.0 }", "wifi.loss_down={ gemodel = [1.0, 25.0, 100.0, 0.0] }"]
    {
        let lost = |assist| outcome(DOWNLOAD, &[change], assist, 3).flows[0].inference.losses;
        let (off, on) = (lost(Assist::Off), lost(Assist::On));
        assert!((50..160).contains(&off) && (50..160).contains(&on), "{off} {on}");
        assert_eq!(lost(Assist::Lossless), 0);
    }
}

#[test]
fn the_radio_delivers_in_clumps_and_out_of_order() {
    let wifi = Wifi { clump_ms: [5.0, 20.0], ..Wifi::default() };
    let mut air = Air::new(&wifi, 1);
    for n in 0..100 {
        air.push(n * 1_000_000, n);
    }
    let mut times = Vec::new();
    let mut order = Vec::new();
    while let Some(at) = air.next_deadline() {
        times.push(at);
        order.extend(std::iter::from_fn(|| air.pop_due(at)));
    }
    assert!(order.is_sorted() && order.len() == 100);
    assert!((5..=20).contains(&times.len()), "{times:?}");

    let wifi = Wifi { reorder_percent: 10.0, reorder_ms: 4.0, ..Wifi::default() };
    let mut air = Air::new(&wifi, 1);
    (0..1000).for_each(|n| air.push(n * 1_000_000, n));
    let order: Vec<u64> = std::iter::from_fn(|| air.pop_due(u64::MAX)).collect();
    let overtaken = order.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!((60..140).contains(&overtaken), "{overtaken}");
}

#[test]
fn recorded_losses_repeat_and_a_bad_file_is_named() {
    let folder = std::env::temp_dir().join(format!("pemi-sim-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("loss.txt");
    std::fs::write(&path, "0\n0\n1\n0\n").unwrap();
    let mut recorded = Recorded::read(&path, 5).unwrap();
    let lost: Vec<bool> = (0..8).map(|_| recorded.next_is_lost()).collect();
    assert_eq!(lost[..4], lost[4..]);
    assert_eq!(lost.iter().filter(|lost| **lost).count(), 2);
    std::fs::write(&path, "0\nx\n").unwrap();
    let error = format!("{:#}", Recorded::read(&path, 5).unwrap_err());
    assert!(error.contains("loss.txt, line 2: 'x'"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn rows_have_names_of_their_own() {
    let cases = cases();
    let mut names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len());
}

#[test]
fn a_rule_can_be_switched_off_by_its_name() {
    let losses = ["wifi.loss_down={ percent = 1.0 }"];
    let with = outcome(DOWNLOAD, &losses, Assist::On, 2);
    let held_without = |rule: &str| {
        let change = format!("engine.without=[\"{rule}\"]");
        outcome(DOWNLOAD, &[losses[0], &change], Assist::On, 2).held
    };
    assert!(with.held > 0);
    assert_eq!(held_without("conceal"), 0);
    let changes = ["engine.without=[\"luck\"]".to_owned()];
    let scenario = matrix::parse(DOWNLOAD, &changes).unwrap();
    let error = format!("{:#}", run(&scenario, Assist::On, 1).unwrap_err());
    assert!(error.contains("'luck' is none of size"), "{error}");
}

#[test]
fn numbers_that_a_sender_leaves_out_cost_it_nothing_and_look_like_losses() {
    let skips = |client: &str, every: u32, assist, seed| {
        let client = format!("flow.client={client}");
        outcome(DOWNLOAD, &[&client, &format!("flow.skips_every={every}")], assist, seed)
    };
    // Where all replies are of one size a hundred downloads do not differ in copies.
    for (client, shows) in [("every2", true), ("s2n", false), ("chromium", true)] {
        let goodput = |every| skips(client, every, Assist::Off, 1).flows[0].goodput_mbps;
        let (without, with) = (goodput(0), goodput(40));
        assert!(with > 0.97 * without, "{client}: {with} of {without} Mbit/s");
        // In eight downloads of Chromium's chance decides.
        let copies = |every| -> u64 {
            let copies = |seed| skips(client, every, Assist::On, seed).flows[0].inference.copies;
            (1..=64).map(copies).sum()
        };
        assert!(!shows || copies(40) > copies(0), "{client}");
    }
    let changes = ["flow.skips_every=40".to_owned()];
    let scenario = matrix::parse(DOWNLOAD, &changes).unwrap();
    let error = format!("{:#}", run(&scenario, Assist::On, 1).unwrap_err());
    assert!(error.contains("flow.skips_every") && error.contains("every2"), "{error}");
}

#[test]
fn a_radio_is_a_preset_or_its_settings_and_loses_nothing_as_a_ceiling() {
    let by_name = outcome(DOWNLOAD, &["wifi.air=poor"], Assist::Off, 1);
    let settings = "wifi.air={link={errors={good=0.01,bad=0.9,good_ms=500,bad_ms=20}}}";
    let by_settings = outcome(DOWNLOAD, &[settings], Assist::Off, 1);
    assert_eq!(by_name, by_settings);
    let lost = |run: &Outcome| run.flows[0].inference.losses;
    assert!(lost(&by_name) > 0);
    assert_eq!(lost(&outcome(DOWNLOAD, &["wifi.air=poor"], Assist::Lossless, 1)), 0);
    let wrong = matrix::parse(DOWNLOAD, &["wifi.air=perfect".to_owned()]).unwrap_err();
    assert!(format!("{wrong:#}").contains("poor-no-bar"), "{wrong:#}");
}

#[test]
fn a_radio_s_clients_share_the_air() {
    let flows = "limit_s = 5\n[wan]\nrate_mbit = 100.0\n[[flow]]\nbytes = 1_000_000_000\n";
    let alone = outcome(flows, &["wifi.air=clean"], Assist::Off, 1);
    let text = flows.to_owned() + "[[flow]]\nbytes = 1_000_000_000\nclient_id = 1";
    let shared = outcome(&text, &["wifi.air=clean"], Assist::Off, 1);
    let rates: Vec<f64> = shared.flows.iter().map(|flow| flow.goodput_mbps).collect();
    let share = rates[0] / (rates[0] + rates[1]);
    assert!((0.35..0.65).contains(&share), "{rates:?}");
    assert!(rates[0] < 0.75 * alone.flows[0].goodput_mbps, "{rates:?}");
}
