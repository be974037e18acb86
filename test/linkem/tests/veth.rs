// SPDX-License-Identifier: GPL-2.0-or-later
//! The program between two hosts in network namespaces. Needs root; says so
//! and passes otherwise.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::LazyLock;

use linkem::Direction;
use linkem::lab::{Host, Lab, Running};
use linkem::loss::{Loss, Model};
use linkem::truth::HEADER;
use serde_json::Value;

const BENCH: &str = env!("CARGO_BIN_EXE_linkem-bench");
const COUNT: usize = 400;
const SEED: u64 = 5;
const LOSS_PERCENT: f64 = 10.0;

fn linkem() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_linkem"))
}

fn lab(name: &str) -> Option<Lab> {
    // One probe at a time: they all have the same name.
    static OBSTACLE: LazyLock<Option<String>> = LazyLock::new(Lab::obstacle);
    if let Some(obstacle) = &*OBSTACLE {
        eprintln!("skipped: network namespaces need root and the ip command: {obstacle}");
        return None;
    }
    Some(Lab::new(name).unwrap())
}

fn at(address: &str) -> String {
    if address.contains(':') { format!("[{address}]:9000") } else { format!("{address}:9000") }
}

/// Sends to both addresses of `to`, one after the other, and gives what each received.
fn send(lab: &Lab, from: Host, to: Host, expected: [usize; 2]) -> [Value; 2] {
    let mut expected = expected.iter();
    to.addresses().map(|address| {
        let to_address = at(address);
        let mut receiver = lab.command(to, BENCH);
        receiver.args(["receive", &to_address, &expected.next().unwrap().to_string()]);
        let receiver = Running::start(receiver).unwrap();
        let status = lab
            .command(from, BENCH)
            .args(["send", &to_address, "1000", "2000", &COUNT.to_string()])
            .status()
            .unwrap();
        assert!(status.success());
        receiver.finish().unwrap()
    })
}

struct Row {
    entered_us: f64,
    direction: String,
    number: usize,
    fate: String,
    out_us: Option<f64>,
}

/// The rows of the test's own packets, in the order in which they entered.
fn rows(log: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(log).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(HEADER));
    let mut rows: Vec<Row> = lines
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|fields| fields[2] == "17" && fields[4] == "9000")
        .map(|fields| {
            assert_eq!((fields.len(), fields[5]), (10, "1000"));
            assert_eq!((fields[6].len(), fields[7].len()), (32, 16));
            Row {
                entered_us: fields[0].parse().unwrap(),
                direction: fields[1].to_owned(),
                number: usize::from_str_radix(&fields[6][..16], 16).unwrap(),
                fate: fields[8].to_owned(),
                out_us: fields[9].parse().ok(),
            }
        })
        .collect();
    rows.sort_by(|a, b| a.entered_us.total_cmp(&b.entered_us));
    rows
}

#[test]
fn passes_both_ways_and_loses_what_the_seed_says() {
    let Some(lab) = lab("both") else { return };
    let log: PathBuf = std::env::temp_dir().join(format!("linkem-{}.csv", std::process::id()));
    let delay_us = 3000.0;
    let running = lab
        .linkem(
            linkem(),
            &[
                "--rate=100",
                "--delay=3",
                "--jitter=1",
                "--queue=4000000",
                &format!("--loss={LOSS_PERCENT}"),
                &format!("--seed={SEED}"),
                &format!("--log={}", log.display()),
            ],
        )
        .unwrap();
    let directions = [(Direction::Ab, Host::A, Host::B), (Direction::Ba, Host::B, Host::A)];
    let mut predicted = Vec::new();
    for (direction, from, to) in directions {
        let model = Model::Bernoulli(LOSS_PERCENT / 100.0);
        let mut loss = Loss::new(model, SEED, direction, 0);
        let lost: Vec<bool> = (0..2 * COUNT).map(|_| loss.next_is_lost(0)).collect();
        let expected =
            [&lost[..COUNT], &lost[COUNT..]].map(|lost| lost.iter().filter(|lost| !**lost).count());
        for (received, expected) in send(&lab, from, to, expected).iter().zip(expected) {
            assert_eq!(received["received"], expected, "{direction:?}");
            assert_eq!(received["out_of_order"], 0, "{direction:?}");
        }
        predicted.push(lost);
    }
    let totals = running.terminate().unwrap();
    let rows = rows(&log);
    std::fs::remove_file(&log).unwrap();
    for ((direction, ..), predicted) in directions.into_iter().zip(predicted) {
        let name = direction.name();
        let rows: Vec<&Row> = rows.iter().filter(|row| row.direction == name).collect();
        let numbers: Vec<usize> = rows.iter().map(|row| row.number).collect();
        let expected: Vec<usize> = (0..COUNT).chain(0..COUNT).collect();
        assert_eq!(numbers, expected, "{name}");
        let lost: Vec<bool> = rows.iter().map(|row| row.fate == "lost").collect();
        assert_eq!(lost, predicted, "{name}");
        for row in rows {
            match row.out_us {
                // Never before the least delay: a late computer cannot spoil this.
                Some(out) => assert!(out - row.entered_us >= delay_us - 1000.0),
                None => assert_eq!(row.fate, "lost"),
            }
        }
        let count = |field: &str| totals[name][field].as_u64().unwrap();
        assert_eq!(count("packets") - count("exempt"), 2 * COUNT as u64);
        assert_eq!(count("lost"), predicted.iter().filter(|lost| **lost).count() as u64);
        assert_eq!(count("packets"), count("delivered") + count("lost") + count("in_flight"));
        for field in ["queue_dropped", "send_errors", "socket_dropped", "log_dropped"] {
            assert_eq!(count(field), 0, "{name} {field}");
        }
    }
}

#[test]
fn a_vanished_interface_is_an_error() {
    for host in [Host::A, Host::B] {
        let Some(lab) = lab("gone") else { return };
        let mut command = lab.command(Host::Link, linkem().to_str().unwrap());
        command.args(["--ready", Host::A.interface(), Host::B.interface()]).stderr(Stdio::piped());
        let mut running = Running::start(command).unwrap();
        lab.delete_interface(host).unwrap();
        let mut error = String::new();
        let mut stderr = running.child.stderr.take().unwrap();
        stderr.read_to_string(&mut error).unwrap();
        assert!(!running.child.wait().unwrap().success());
        assert!(error.contains("has vanished"), "{error}");
    }
}

#[test]
fn an_unknown_interface_is_an_error() {
    let output =
        std::process::Command::new(linkem()).args(["no-such-if0", "no-such-if1"]).output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("no-such-if0"));
}
