// SPDX-License-Identifier: GPL-2.0-or-later
//! A daemon that stands still, hangs or is killed delays packets a little and loses none.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lab::packet::long;
use lab::{Daemon, ENDS, Net, PATIENCE, PORT, signal};
use pemi::daemon::control;
use serde_json::{Value, json};

/// Between two packets of a stream.
const EVERY: Duration = Duration::from_millis(2);
/// Of a stream, before and after what happens to the daemon.
const WHILE: Duration = Duration::from_millis(700);
/// What a daemon that stands still may delay packets by, beyond what the machine does.
const DELAY: Duration = Duration::from_millis(300);

/// What has become of a stream.
struct Arrived {
    lost: usize,
    delay: Duration,
}

/// Sends numbered packets from the server to the client during `events`.
fn stream(net: &Net, ends: (&str, &str), events: impl FnOnce(&AtomicU32)) -> Arrived {
    let (client, server) = (net.socket("c", ends.0, 0), net.socket("s", ends.1, PORT));
    client.connect(server.local_addr().unwrap()).unwrap();
    server.connect(client.local_addr().unwrap()).unwrap();
    // Only what a client has begun comes to the queue, and only QUIC stays there.
    client.send(&long(0, 1200)).unwrap();
    server.recv(&mut [0; 2048]).unwrap();
    let (over, count) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let (begin, mut sent) = (Instant::now(), Vec::new());
            while !over.load(Ordering::Relaxed) {
                let number = sent.len() as u32;
                sent.push(Instant::now());
                server.send(&[[0x40; 4], number.to_be_bytes()].concat().repeat(5)).unwrap();
                let due = begin + EVERY * (number + 1);
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            sent
        });
        let hearing = scope.spawn(|| hear(&client, &count, &over));
        {
            // Whatever becomes of them: the threads are waited for.
            let _over = Over(&over);
            events(&count);
        }
        let (sent, heard) = (sending.join().unwrap(), hearing.join().unwrap());
        let delay = |(number, at): &(u32, Instant)| at.duration_since(sent[*number as usize]);
        let mut numbers: Vec<u32> = heard.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let lost = sent.len() - numbers.len();
        Arrived { lost, delay: heard.iter().map(delay).max().unwrap() }
    })
}

/// Ends a stream with the value.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What arrives, and when, until nothing comes any more.
fn hear(client: &UdpSocket, count: &AtomicU32, over: &AtomicBool) -> Vec<(u32, Instant)> {
    client.set_read_timeout(Some(DELAY)).unwrap();
    let (mut heard, mut buffer) = (Vec::new(), [0; 2048]);
    loop {
        match client.recv(&mut buffer) {
            Ok(_) => {
                let number = u32::from_be_bytes(*buffer[4..].first_chunk().unwrap());
                heard.push((number, Instant::now()));
                count.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) if over.load(Ordering::Relaxed) => return heard,
            Err(_) => {}
        }
    }
}

fn packets(status: &Value) -> u64 {
    status["queues"][0]["packets"].as_u64().unwrap()
}

/// Until so many more packets have come.
fn more(count: &AtomicU32, packets: u32) {
    let (start, before) = (Instant::now(), count.load(Ordering::Relaxed));
    while count.load(Ordering::Relaxed) < before + packets {
        assert!(start.elapsed() < PATIENCE, "nothing passes");
        thread::sleep(EVERY);
    }
}

#[test]
fn a_stopped_daemon_delays_little_and_goes_on_helping() {
    let Some(net) = Net::new() else { return };
    for ends in ENDS {
        let mut daemon = net.start(&["--device", "lan0"]);
        let undisturbed = stream(&net, ends, |_| thread::sleep(2 * WHILE));
        let stopped = stream(&net, ends, |count| {
            thread::sleep(WHILE);
            daemon.signal(libc::SIGSTOP);
            thread::sleep(WHILE);
            daemon.signal(libc::SIGCONT);
            more(count, 20);
            // It takes packets again, and all that come.
            let before = packets(&daemon.until(|_| true));
            daemon.until(|status| packets(status) > before + 20);
        });
        println!("delays: {:?} undisturbed, {:?}", undisturbed.delay, stopped.delay);
        assert_eq!((undisturbed.lost, stopped.lost), (0, 0));
        assert!(stopped.delay < DELAY + undisturbed.delay, "{:?}", stopped.delay);
        let status = daemon.until(|_| true);
        assert!(status["queues"][0]["missed"].as_u64() > Some(100), "{status}");
        assert_eq!(status["queues"][0]["verdict_errors"], 0);
        daemon.signal(libc::SIGTERM);
        let (status, log) = daemon.end();
        assert!(status.success(), "{log}");
        assert_eq!(log.matches("the daemon stood still").count(), 1, "{log}");
    }
}

#[test]
fn a_daemon_that_stops_while_nothing_comes_delays_the_next_packets_little() {
    let Some(net) = Net::new() else { return };
    let daemon = net.start(&["--device", "lan0"]);
    daemon.signal(libc::SIGSTOP);
    let stopped = stream(&net, ENDS[0], |_| thread::sleep(WHILE));
    daemon.signal(libc::SIGCONT);
    assert_eq!(stopped.lost, 0);
    assert!(stopped.delay < DELAY + EVERY * 50, "{:?}", stopped.delay);
}

/// The stream has no pause, so it stays on the way that the daemon has taken it to.
#[test]
fn what_the_daemon_sends_itself_gets_lost_neither_when_it_stops_nor_when_it_is_killed() {
    let Some(net) = Net::new() else { return };
    for ends in ENDS {
        let mut daemon = net.start(&["--device", "lan0", "--repair", "radio"]);
        let stopped = stream(&net, ends, |count| {
            thread::sleep(WHILE);
            daemon.signal(libc::SIGSTOP);
            thread::sleep(WHILE);
            daemon.signal(libc::SIGCONT);
            more(count, 20);
        });
        assert_eq!(stopped.lost, 0);
        let status = daemon.until(|status| status["reports"]["missing"].as_u64() > Some(0));
        assert!(status["reports"]["asked"].as_u64() > Some(0), "{status}");
        assert_eq!(status["queues"][0]["verdict_errors"], 0);
        let killed = stream(&net, ends, |count| {
            more(count, 20);
            daemon.signal(libc::SIGKILL);
            assert!(!daemon.end().0.success());
            more(count, 100);
        });
        assert!(killed.lost <= 2, "{} lost", killed.lost);
    }
}

#[test]
fn packets_pass_a_killed_daemon_and_nothing_is_left_of_it() {
    let Some(net) = Net::new() else { return };
    for stop_first in [false, true] {
        let mut daemon = net.start(&[]);
        let guard = daemon.guard();
        let killed = stream(&net, ENDS[0], |count| {
            more(count, 20);
            if stop_first {
                // A guard that cannot do anything must not keep the queue.
                signal(guard, libc::SIGSTOP);
            }
            daemon.signal(libc::SIGKILL);
            assert!(!daemon.end().0.success());
            more(count, 100);
        });
        // None but those that came between the last verdict and the end of the guard.
        assert!(killed.lost <= if stop_first { 20 } else { 2 }, "{} lost", killed.lost);
        let start = Instant::now();
        while is_there(guard) {
            assert!(start.elapsed() < PATIENCE, "the guard is still there");
            thread::sleep(EVERY);
        }
    }
}

#[test]
fn a_guard_that_ends_is_told_of_and_missed_by_no_packet() {
    let Some(net) = Net::new() else { return };
    let mut daemon = net.start(&[]);
    let guard = daemon.guard();
    let status = fs::read_to_string(format!("/proc/{guard}/status")).unwrap();
    for line in ["Name:\tqueue-guard", "CapPrm:\t0000000000001000", "CapEff:\t0000000000001000"] {
        assert!(status.contains(line), "{status}");
    }
    let arrived = stream(&net, ENDS[0], |count| {
        more(count, 20);
        signal(guard, libc::SIGKILL);
        let told = |status: &Value| status["errors"].to_string().contains("the queue guard has");
        daemon.until(told);
        more(count, 100);
    });
    assert_eq!(arrived.lost, 0);
    daemon.signal(libc::SIGTERM);
    let (status, log) = daemon.end();
    assert!(status.success(), "{log}");
    assert_eq!(log.matches("the queue guard has ended").count(), 1, "{log}");
}

/// Stopped by a debugger, which stops one thread and not the process.
#[test]
fn a_packet_thread_that_hangs_ends_the_process() {
    let Some(net) = Net::new() else { return };
    let mut daemon = net.start(&[]);
    let hung = thread_of(&daemon, "pemi-queue-");
    let arrived = stream(&net, ENDS[0], |count| {
        more(count, 20);
        // SAFETY: no memory is pointed to.
        let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, hung, 0, 0) };
        assert_eq!(seized, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: as above.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, hung, 0, 0) }, 0);
        let start = Instant::now();
        // Its end is first told to who has stopped it.
        while control::ask(&daemon.control, &json!({"method": "status"})).is_ok() {
            assert!(start.elapsed() < PATIENCE, "it goes on");
            thread::sleep(10 * EVERY);
        }
        loop {
            let mut how = 0;
            // SAFETY: a live number to write to.
            let who = unsafe { libc::waitpid(hung, &raw mut how, libc::__WALL) };
            if who != hung || libc::WIFEXITED(how) || libc::WIFSIGNALED(how) {
                break;
            }
        }
        more(count, 100);
    });
    let (status, log) = daemon.end();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("its thread has not answered for 10 s"), "{log}");
    assert!(arrived.lost <= 2, "{} lost", arrived.lost);
    assert!(arrived.delay < 2 * DELAY, "{:?}", arrived.delay);
}

fn thread_of(daemon: &Daemon, name: &str) -> i32 {
    let threads = fs::read_dir(format!("/proc/{}/task", daemon.id())).unwrap();
    let found = threads.map(|thread| thread.unwrap().path()).find(|thread| {
        fs::read_to_string(thread.join("comm")).is_ok_and(|comm| comm.starts_with(name))
    });
    found.unwrap().file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// What nobody has waited for yet does nothing any more.
fn is_there(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z ") && stat.contains("(queue-guard)"))
}
