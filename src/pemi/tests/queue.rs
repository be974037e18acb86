// SPDX-License-Identifier: GPL-2.0-or-later
//! What the daemon makes of whole conversations: strangers are let go, first
//! packets come twice, a hole is filled and hidden, and an end takes nothing
//! along. How single packets fare is in `router.rs`.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use lab::talk::{
    HOP, PLAIN, TELLING, TWICE, Talk, compare, count, hole, no_echo, receive, short, ways, wire,
};
use lab::{Daemon, ENDS, Net};
use serde_json::{Value, json};

/// A machine that stands still for longer than that spoils a try.
const TRIES: usize = 5;

#[test]
fn strangers_are_counted_and_let_go() {
    for (rules, flags) in ways() {
        let Some(net) = Net::ruled(&rules) else { return };
        let mut daemon = net.start(&flags);
        let lengths = || (0..24).chain([333, 1199, 1200, 1472 - 20]);
        for (n, ends) in (1..).zip(ENDS) {
            let talk = Talk::new(&net, ends);
            for len in lengths() {
                // Long headers without sense, and no headers at all.
                let payload: Vec<u8> = (0..len).map(|at| (at * 31 + len) as u8).collect();
                talk.client.send(&payload).unwrap();
                assert!(receive(&talk.server) == payload);
                talk.server.send(&payload).unwrap();
                assert!(receive(&talk.client) == payload);
            }
            assert_eq!(talk.flow(&daemon)["state"], "bypassed");
            // The first few, which the engine has to see to judge; what let the flow go is
            // remembered for its connection, so the others did not come.
            let status = daemon.until(|_| true);
            let queued = count(&status, "/queues/0/packets");
            assert!((8 * n..lengths().count() * n).contains(&queued), "{queued}");
            assert_eq!(count(&status, "/packets/other"), queued);
            assert_eq!(count(&status, "/flows/bypassed"), n);
            assert_eq!(count(&status, "/resent/packets"), 0);
        }
    }
}

#[test]
fn first_packets_come_twice_and_probes_are_answered() {
    for (rules, flags) in ways() {
        let Some(net) = Net::ruled(&rules) else { return };
        for ends in ENDS {
            // One each: late copies of one conversation would be missed in the other.
            let mut daemon = net.start(&flags);
            let wire = wire(&net, ends.0);
            let mut talk = Talk::new(&net, ends);
            talk.greet();
            while talk.down.len() < TWICE + 4 {
                talk.say(short(20 + 77 * talk.down.len()));
                talk.client_has_all();
                talk.reply(short(PLAIN));
                talk.server_hears(talk.up.len() - 1);
            }
            while talk.down[..TWICE].iter().any(|(_, arrivals)| *arrivals < 2) {
                talk.client_hears();
            }
            let packets = talk.down.len() + talk.up.len();
            let all = |status: &Value| count(status, "/queues/0/packets") >= packets;
            let probed = |status: &Value| count(status, "/probes/answered") > 0;
            let status = daemon.until(|status| all(status) && probed(status));
            // On a slow machine there may be more of them: the handshake again.
            while talk.copies() < count(&status, "/resent/packets") {
                talk.client_hears();
            }
            // None of them came into the queue again.
            assert_eq!(count(&status, "/queues/0/packets"), packets);
            assert_eq!(count(&status, "/packets/quic"), packets);
            assert_eq!(count(&status, "/resent/errors"), 0);
            compare(&wire, &talk);
        }
    }
}

#[test]
fn a_hole_is_filled_before_the_server_hears_of_it() {
    for (rules, flags) in ways() {
        let Some(net) = Net::ruled(&rules) else { return };
        no_echo(&net);
        for ends in ENDS {
            let hidden = (0..TRIES).any(|_| {
                let mut daemon = net.start(&flags);
                let mut talk = Talk::settled(&net, ends);
                if !hole(&mut talk) {
                    return false;
                }
                let telling = talk.up.len() - 1;
                talk.reply(short(TELLING));
                // What the copy changed cannot be said before a round trip of the hop is over.
                thread::sleep(HOP);
                talk.reply(short(PLAIN));
                let order = [(); 3].map(|()| talk.server_takes() - telling);
                let mut sorted = order;
                sorted.sort_unstable();
                assert_eq!(sorted, [0, 1, 2], "all of them arrive");
                let status = daemon.until(|_| true);
                assert!(count(&status, "/losses/inferred") > 0, "{status}");
                assert!(count(&status, "/concealed/held") > 0, "{status}");
                assert_eq!(count(&status, "/concealed/now"), 0);
                if count(&status, "/concealed/late") + count(&status, "/losses/upstream") > 0 {
                    return false;
                }
                assert_eq!(order, [2, 0, 1], "the one that shows no hole goes first: {status}");
                true
            });
            assert!(hidden, "holding was given up each time");
        }
    }
}

#[test]
fn behind_a_cable_nobody_reports_and_everything_arrives_as_it_was() {
    let Some(net) = Net::ruled(&json!({"repair": "radio"})) else { return };
    for ends in ENDS {
        let mut daemon = net.start(&["--device", "lan0", "--repair", "radio"]);
        let wire = wire(&net, ends.0);
        let mut talk = Talk::settled(&net, ends);
        let status = daemon.until(|status| count(status, "/reports/missing") > 0);
        let (asked, missing) =
            (count(&status, "/reports/asked"), count(&status, "/reports/missing"));
        assert!(asked >= missing && asked < talk.down.len(), "a trial, and no more: {status}");
        assert_eq!(count(&status, "/reports/losses"), 0);
        assert_eq!(count(&status, "/reports/clients"), 0);
        assert_eq!(count(&status, "/resent/errors"), 0);
        // On a machine that stands still the trial is over before the first flight is.
        while talk.copies() < count(&status, "/resent/packets") {
            talk.client_hears();
        }
        compare(&wire, &talk);
    }
}

#[test]
fn an_end_lets_go_what_is_held_and_what_waits() {
    for (rules, flags) in ways() {
        let Some(net) = Net::ruled(&rules) else { return };
        no_echo(&net);
        for ends in ENDS {
            assert!((0..TRIES).any(|_| ends_with_some_held(&net, &flags, ends)), "none was held");
        }
    }
}

/// Ends a daemon to which replies wait. False if it held none of them, as on a machine that stood
/// still when the hole was to be seen.
fn ends_with_some_held(net: &Net, flags: &[&str], ends: (&str, &str)) -> bool {
    let mut daemon = net.start(flags);
    let mut talk = Talk::settled(net, ends);
    if !hole(&mut talk) {
        return false;
    }
    // The daemon's clock goes on, but it cannot let go of anything.
    daemon.signal(libc::SIGSTOP);
    let telling = talk.up.len() - 1;
    for _ in 0..40 {
        talk.reply(short(TELLING));
    }
    daemon.signal(libc::SIGTERM);
    daemon.signal(libc::SIGCONT);
    let mut arrived: Vec<usize> = (telling..talk.up.len()).map(|_| talk.server_takes()).collect();
    arrived.sort_unstable();
    assert!(arrived.into_iter().eq(telling..talk.up.len()));
    let (status, log) = daemon.end();
    assert_eq!(status.code(), Some(0), "{log}");
    let totals = log.lines().find(|line| line.contains("stopped: ")).unwrap();
    assert!(totals.contains("; 0 packets passed"), "{totals}");
    assert!(!daemon.control.exists());
    !totals.contains(" 0 replies")
}

/// The guard releases them; how long that may take is in `guard.rs`.
#[test]
fn a_stop_keeps_nothing_that_is_held_and_help_goes_on() {
    let Some(net) = Net::new() else { return };
    no_echo(&net);
    let mut daemon = net.start(&["--device", "lan0"]);
    let held = (0..TRIES).find_map(|_| {
        let mut talk = Talk::settled(&net, ENDS[0]);
        hole(&mut talk);
        let first = talk.up.len() - 1;
        let begin = Instant::now();
        daemon.signal(libc::SIGSTOP);
        talk.reply(short(TELLING));
        talk.reply(short(TELLING));
        let mut arrived = [(); 3].map(|()| talk.server_takes() - first);
        let took = begin.elapsed();
        daemon.signal(libc::SIGCONT);
        arrived.sort_unstable();
        assert_eq!(arrived, [0, 1, 2], "all of them arrive");
        assert!(took < Duration::from_millis(400), "{took:?}");
        let status = daemon.until(|status| count(status, "/concealed/now") == 0);
        assert_eq!(count(&status, "/queues/0/verdict_errors"), 0);
        // The first was held when the daemon stopped; it took the guard to let it go.
        (took > HOP && count(&status, "/concealed/held") > 0).then_some(talk)
    });
    let mut talk = held.expect("nothing was held when it stopped");
    // The same process helps the same flow.
    let resent = |daemon: &mut Daemon| count(&daemon.until(|_| true), "/resent/packets");
    let before = resent(&mut daemon);
    let helps = (0..20).any(|_| {
        for len in [PLAIN, PLAIN, TELLING] {
            talk.say(short(1000));
            talk.say(short(1000));
            talk.client_has_all();
            thread::sleep(HOP);
            talk.reply(short(len));
            talk.server_takes();
        }
        resent(&mut daemon) > before
    });
    assert!(helps, "{}", daemon.until(|_| true));
}

#[test]
fn a_reload_keeps_flows() {
    let Some(net) = Net::new() else { return };
    let file = net.file("pemi.json");
    fs::write(&file, r#"{"device": "lan0", "cache_kib": 128}"#).unwrap();
    let mut daemon = net.start(&["--config", file.to_str().unwrap()]);
    let mut talk = Talk::new(&net, ENDS[0]);
    talk.greet();
    let before = talk.flow(&daemon);
    assert_eq!((&before["state"], &before["packets_down"]), (&json!("handshake"), &json!(2)));

    fs::write(&file, r#"{"device": "lan0", "cache_kib": 256, "conceal": "no way"}"#).unwrap();
    daemon.signal(libc::SIGHUP);
    let status = daemon.until(|status| status["errors"] != json!([]));
    let error = status["errors"][0].as_str().unwrap();
    for part in [file.to_str().unwrap(), "'conceal'", "\"no way\""] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(count(&status, "/cache/limit"), 128 << 10);

    fs::write(&file, r#"{"device": "lan0", "cache_kib": 256}"#).unwrap();
    daemon.signal(libc::SIGHUP);
    let status = daemon.until(|status| count(status, "/cache/limit") == 256 << 10);
    assert_eq!(status["errors"], json!([]));
    talk.say(short(1000));
    talk.client_has_all();
    daemon.until(|status| count(status, "/packets/down") == 3);
    let after = talk.flow(&daemon);
    assert_eq!((&after["state"], &after["packets_down"]), (&json!("handshake"), &json!(3)));
}

#[test]
fn check_names_every_problem() {
    let file = std::env::temp_dir().join(format!("pemi-check-{}.json", std::process::id()));
    fs::write(&file, r#"{"queues": 9, "mode": "magic", "sidekick": {"threshold": 65}}"#).unwrap();
    let check = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pemi"));
        command.arg("check").arg("--config").arg(&file).args(arguments).output().unwrap()
    };
    let (text, as_json) = (check(&[]), check(&["--json"]));
    fs::write(&file, "{}").unwrap();
    let good = check(&[]);
    fs::remove_file(&file).unwrap();

    assert_eq!((text.status.code(), as_json.status.code()), (Some(1), Some(1)));
    let said = String::from_utf8(text.stderr).unwrap();
    assert_eq!(said.lines().count(), 3, "{said}");
    for part in ["'queues'", "1 to 8", "'mode'", "routed, bridged", "'sidekick.threshold'"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(said.lines().all(|line| line.contains(file.to_str().unwrap())), "{said}");
    let answer: Value = serde_json::from_slice(&as_json.stdout).unwrap();
    assert_eq!((&answer["ok"], answer["errors"].as_array().unwrap().len()), (&json!(false), 3));
    assert_eq!(good.status.code(), Some(0));
}
