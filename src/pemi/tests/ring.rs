// SPDX-License-Identifier: GPL-2.0-or-later
//! Rings beside the queue: what becomes of packets when a daemon is slow, ends or loses its
//! device, and when the queue has to do. What a daemon does with what a ring shows is in
//! `queue.rs`.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use lab::talk::{PLAIN, RING, Talk, count, hole, long, no_echo, receive, ring, short};
use lab::{Daemon, ENDS, Net, PATIENCE};
use pemi::sys::socket::set_option;
use serde_json::{Value, json};

/// More packets than a ring has room for.
const MANY: usize = 1500;
/// A client that says nothing for so long makes nobody look at its packets.
const REST: Duration = Duration::from_secs(10);
/// Tries to have a hole seen on a busy machine.
const TRIES: usize = 5;

fn net() -> Option<Net> {
    let net = Net::ruled(&ring())?;
    no_echo(&net);
    Some(net)
}

/// The server sends so many packets, and the client gets each of them once or twice, the
/// first ones in their order.
fn stream(talk: &mut Talk, packets: usize) {
    let first = talk.down.len();
    for _ in 0..packets {
        talk.say(short(200));
        // A few at a time, as the client's socket has room for.
        if talk.down.len().is_multiple_of(50) {
            let mut heard = Vec::new();
            while talk.down.iter().any(|(_, arrivals)| *arrivals == 0) {
                heard.push(talk.client_hears());
            }
            heard.retain(|number| *number >= first && talk.down[*number].1 == 1);
            assert!(heard.is_sorted(), "{heard:?}");
        }
    }
    talk.client_has_all();
}

/// Whether a packet socket on the router sees what a device sends.
fn watched(net: &Net) -> bool {
    let sockets = net.tool("r", "cat /proc/net/packet");
    // Address, references, type, protocol, device, whether it runs.
    sockets.lines().skip(1).any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[3] == "0003" && words[4] != "0" && words[5] == "1"
    })
}

fn used(status: &Value) -> &str {
    status["capture"]["used"].as_str().unwrap()
}

/// Until the queue does, for a reason with these words.
fn falls_back(daemon: &mut Daemon, reason: &str) {
    let status = daemon.until(|status| used(status) == "queue");
    assert!(status["capture"]["reason"].to_string().contains(reason), "{status}");
    assert!(status["errors"].to_string().contains(reason), "{status}");
    assert_eq!(status["queues"][0]["capture"], "queue", "{status}");
}

#[test]
fn a_daemon_that_stands_still_delays_nothing_and_takes_what_it_missed_for_no_loss() {
    let Some(net) = net() else { return };
    for ends in ENDS {
        let mut daemon = net.start(&RING);
        let mut talk = Talk::settled(&net, ends);
        daemon.signal(libc::SIGSTOP);
        stream(&mut talk, MANY);
        daemon.signal(libc::SIGCONT);
        for _ in 0..4 {
            talk.say(short(1000));
            talk.client_has_all();
            talk.reply(short(PLAIN));
            talk.server_takes();
        }
        let status = daemon.until(|status| count(status, "/queues/0/missed") > 0);
        let missed = count(&status, "/queues/0/missed");
        assert!(missed < MANY, "those that fit were seen: {status}");
        assert_eq!(used(&status), "ring", "{status}");
        assert_eq!(count(&status, "/concealed/held"), 0, "{status}");
        daemon.signal(libc::SIGTERM);
        let (ended, log) = daemon.end();
        assert!(ended.success(), "{log}");
    }
}

#[test]
fn packets_pass_a_daemon_that_is_killed() {
    let Some(net) = net() else { return };
    for ends in ENDS {
        let mut daemon = net.start(&RING);
        let mut talk = Talk::settled(&net, ends);
        stream(&mut talk, 100);
        daemon.signal(libc::SIGKILL);
        stream(&mut talk, MANY);
        assert!(!daemon.end().0.success());
        stream(&mut talk, 100);
        talk.reply(short(PLAIN));
        assert_eq!(talk.server_takes(), talk.up.len() - 1);
    }
}

#[test]
fn a_device_is_watched_while_its_clients_speak_and_found_when_it_comes_back() {
    let Some(net) = net() else { return };
    let mut daemon = net.start(&RING);
    assert!(!watched(&net), "nobody has spoken");
    let mut talk = Talk::settled(&net, ENDS[0]);
    assert!(watched(&net));
    drop(talk);
    net.ip("r", "link del lan0");
    assert!(!watched(&net));
    let host = net.at("c");
    net.ip("r", &format!("link add lan0 type veth peer name eth0 netns {host}"));
    net.ip("r", "addr add 10.77.0.1/24 dev lan0");
    net.ip("r", "link set lan0 up");
    net.ip("c", "addr add 10.77.0.2/24 dev eth0");
    net.ip("c", "link set eth0 up");
    net.ip("c", "route add default via 10.77.0.1");
    net.reach(("c", "10.77.0.2"), ("r", "10.77.0.1"));
    let down = |daemon: &mut Daemon| count(&daemon.until(|_| true), "/packets/down");
    let before = down(&mut daemon);
    talk = Talk::settled(&net, ENDS[0]);
    // It is looked for once a second.
    let start = Instant::now();
    while !watched(&net) || down(&mut daemon) == before {
        assert!(start.elapsed() < PATIENCE, "not watched again");
        talk.say(short(1000));
        talk.client_has_all();
        talk.reply(short(PLAIN));
        talk.server_takes();
        thread::sleep(Duration::from_millis(50));
    }
    drop(talk);
    let helped = (0..TRIES).any(|_| hole(&mut Talk::settled(&net, ENDS[0])));
    assert!(helped, "{}", daemon.until(|_| true));

    let silent = Instant::now();
    while watched(&net) {
        assert!(silent.elapsed() < REST + PATIENCE, "watched for ever");
        thread::sleep(Duration::from_millis(100));
    }
    let helped = (0..TRIES).any(|_| hole(&mut Talk::settled(&net, ENDS[0])));
    assert!(helped, "{}", daemon.until(|_| true));
}

#[test]
fn what_goes_another_way_makes_the_queue_do_until_the_settings_are_read_again() {
    let Some(net) = net() else { return };
    // What hardware forwards passes no ring, as what leaves by another device.
    let host = net.at("c");
    net.ip("r", &format!("link add lan1 type veth peer name eth1 netns {host}"));
    net.ip("r", "link set lan1 up");
    net.ip("c", "link set eth1 up");
    let mut daemon = net.start(&RING);
    let mut talk = Talk::settled(&net, ENDS[0]);
    net.ip("r", "route add 10.77.0.2/32 dev lan1");
    let start = Instant::now();
    while used(&daemon.until(|_| true)) == "ring" {
        assert!(start.elapsed() < PATIENCE, "nobody notices: {}", daemon.until(|_| true));
        talk.reply(short(PLAIN));
        talk.server_takes();
        thread::sleep(Duration::from_millis(20));
    }
    falls_back(&mut daemon, "hardware");
    assert!(daemon.log().contains("no rings"), "{}", daemon.log());
    // With rules for it the queue helps, in the same flow.
    net.ip("r", "route del 10.77.0.2/32 dev lan1");
    net.attach(&json!({"device": "lan0"}));
    drop(talk);
    assert!((0..TRIES).any(|_| hole(&mut Talk::settled(&net, ENDS[0]))));

    daemon.signal(libc::SIGHUP);
    let status = daemon.until(|status| used(status) == "ring");
    assert_eq!((&status["capture"]["reason"], &status["errors"]), (&Value::Null, &json!([])));
}

/// What a device throws away never leaves by it, so a ring does not show it either.
#[test]
fn a_ring_that_does_not_show_a_packet_of_our_own_makes_the_queue_do() {
    let Some(net) = net() else { return };
    let mut daemon = net.start(&RING);
    net.tool("r", "tc qdisc add dev lan0 root blackhole");
    let mut talk = Talk::new(&net, ENDS[0]);
    talk.reply(long(0, 1200));
    talk.server_hears(0);
    falls_back(&mut daemon, "for a trial");
}

/// The server sends several datagrams at once, which stay together, or come together again, where
/// the device lets them; until the queue does. All of them get to the client.
fn merged(net: &Net) {
    const UDP_SEGMENT: libc::c_int = 103;
    const EACH: u32 = 400;
    const TOGETHER: u8 = 4;
    let mut daemon = net.start(&RING);
    let talk = Talk::settled(net, ENDS[0]);
    set_option(talk.server.as_fd(), libc::SOL_UDP, UDP_SEGMENT, &[EACH]).unwrap();
    let start = Instant::now();
    while used(&daemon.until(|_| true)) == "ring" {
        assert!(start.elapsed() < PATIENCE, "nobody notices: {}", daemon.until(|_| true));
        let datagram = |number| [number; EACH as usize];
        talk.server.send((0..TOGETHER).map(datagram).collect::<Vec<_>>().as_flattened()).unwrap();
        for number in 0..TOGETHER {
            // Copies of the beginning may come in between.
            while receive(&talk.client) != datagram(number) {}
        }
    }
    falls_back(&mut daemon, "several packets in one");
    // With rules for it the queue helps.
    net.attach(&json!({"device": "lan0"}));
    drop(talk);
    assert!((0..TRIES).any(|_| hole(&mut Talk::settled(net, ENDS[0]))));
}

#[test]
fn packets_that_a_sender_leaves_together_make_the_queue_do() {
    let Some(net) = net() else { return };
    merged(&net);
}

#[test]
fn packets_that_the_router_merges_make_the_queue_do() {
    let Some(net) = net() else { return };
    // They come one by one, and are merged where they come in.
    net.tool("s", "ethtool -K eth0 tx-udp-segmentation off");
    net.tool("r", "ethtool -K wan0 gro on rx-udp-gro-forwarding on");
    merged(&net);
}

#[test]
fn other_options_may_speak_against_a_ring() {
    let Some(net) = net() else { return };
    let flags = ["--device", "lan0", "--capture", "ring"];
    for (more, reason) in
        [(&["--repair", "radio"][..], "repair"), (&["--direction", "both"], "direction")]
    {
        let mut daemon = net.start(&[&flags[..], more].concat());
        falls_back(&mut daemon, reason);
    }
    let mut daemon = net.start(&["--repair", "infer", "--capture", "ring"]);
    falls_back(&mut daemon, "no device");
}

/// Clients whose addresses end differently are those of different queues, each of which has to see
/// both directions of their flows.
#[test]
fn several_queues_share_clients_out() {
    let mut config = ring();
    config["queues"] = json!(2);
    let Some(net) = Net::ruled(&config) else { return };
    no_echo(&net);
    for other in ["10.77.0.3/24", "fd77:0::3/64 nodad"] {
        net.ip("c", &format!("addr add {other} dev eth0"));
    }
    let mut daemon = net.start(&[&RING[..], &["--queues", "2"]].concat());
    for (client, server) in ENDS {
        for (queue, end) in [(0, "2"), (1, "3")] {
            let client = format!("{}{end}", &client[..client.len() - 1]);
            let packets = |daemon: &mut Daemon| {
                let status = daemon.until(|_| true);
                [0, 1].map(|queue| count(&status, &format!("/queues/{queue}/packets")))
            };
            let before = packets(&mut daemon);
            let helped = (0..TRIES).any(|_| hole(&mut Talk::settled(&net, (&client, server))));
            assert!(helped, "{client}: {}", daemon.until(|_| true));
            let after = packets(&mut daemon);
            assert!(after[queue] > before[queue], "{client}: {before:?} {after:?}");
            assert_eq!(after[1 - queue], before[1 - queue], "{client}");
        }
    }
    let status = daemon.until(|_| true);
    assert_eq!((used(&status), &status["errors"]), ("ring", &json!([])), "{status}");
}

/// A queue's thread has one right more than for the queue, and needs no other for a ring.
#[test]
fn an_account_without_rights_has_rings_also_for_devices_that_come_later() {
    let Some(net) = net() else { return };
    let file = net.file("pemi.json");
    let mut config = ring();
    fs::write(&file, config.to_string()).unwrap();
    std::os::unix::fs::chown(file.parent().unwrap(), Some(65534), None).unwrap();
    let mut daemon = net.start(&["--config", file.to_str().unwrap(), "--user", "nobody"]);
    drop(Talk::settled(&net, ENDS[0]));
    assert!(watched(&net));
    let seen = count(&daemon.until(|_| true), "/packets/down");
    assert!(seen > 0);
    config["device"] = json!(["lan1", "lan0"]);
    fs::write(&file, config.to_string()).unwrap();
    daemon.signal(libc::SIGHUP);
    // That lan1 is not there is an error; a ring that is refused would be another.
    let error = json!(["device lan1 does not exist"]);
    daemon.until(|status| status["errors"] == error);
    drop(Talk::settled(&net, ENDS[1]));
    let status = daemon.until(|status| count(status, "/packets/down") > seen);
    assert_eq!((used(&status), &status["errors"]), ("ring", &error));
}
