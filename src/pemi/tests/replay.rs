// SPDX-License-Identifier: GPL-2.0-or-later
//! `pemi replay` on captures made here: a conversation over a hop that loses one
//! packet, written in every format, and in some that are none.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use pemi::command::replay::link;
use pemi::command::replay::pcap::Capture;
use serde_json::{Value, json};

/// The client is 10.77.0.2:50000, the server 10.77.1.2:443.
const CLIENT: ([u8; 4], u16) = ([10, 77, 0, 2], 50_000);
const SERVER: ([u8; 4], u16) = ([10, 77, 1, 2], 443);
const START_US: u64 = 1_700_000_000_000_000;
const HOP_US: u64 = 20_000;
/// Where the hop is most of the path nothing is held before something was repaired.
const WAN_US: u64 = 8 * HOP_US;
/// Client packets: an acknowledgement, and one that names a hole.
const PLAIN: usize = 36;
const TELLING: usize = 38;
const MICROSECONDS: u32 = 0xa1b2_c3d4;
const ABSURD: &str = "captured length 4294967295; at most 262144 expected";

/// What passes the router.
struct Talk {
    /// Times in microseconds and IP packets.
    packets: Vec<(u64, Vec<u8>)>,
    now: u64,
    /// Lines of linkem's log.
    log: String,
}

impl Talk {
    /// Greetings, twenty rounds, one in which the first of two packets is lost, and
    /// the server's own repair.
    fn new() -> Talk {
        let log = "us,dir,proto,sport,dport,len,head,hash,fate,out_us\n".to_string();
        let mut talk = Talk { packets: Vec::new(), now: START_US, log };
        talk.up(long(0, 1200));
        talk.now += WAN_US;
        talk.down(long(0, 1200), "ok");
        talk.down(long(2, 700), "ok");
        talk.now += HOP_US;
        talk.up(long(2, 100));
        for round in 0..24 {
            let lossy = round == 20;
            talk.down(short(round * 2, 1000), if lossy { "lost" } else { "ok" });
            talk.down(short(round * 2 + 1, 1000), "ok");
            talk.now += HOP_US;
            talk.up(short(round, if lossy { TELLING } else { PLAIN }));
        }
        talk
    }

    fn down(&mut self, payload: Vec<u8>, fate: &str) {
        self.now += 100;
        let head: String = payload[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let (time, len) = (self.now, payload.len());
        self.log += &format!("{time}.0,ab,17,443,50000,{len},{head},0,{fate},\n");
        self.packets.push((self.now, ipv4(SERVER, CLIENT, &payload)));
    }

    fn up(&mut self, payload: Vec<u8>) {
        self.now += 100;
        self.packets.push((self.now, ipv4(CLIENT, SERVER, &payload)));
    }

    /// A classic file; `frame` makes a frame of each packet.
    fn pcap(&self, big: bool, link: u32, frame: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let version = if big { 2 << 16 | 4 } else { 4 << 16 | 2 };
        let mut file = put(big, &[MICROSECONDS, version, 0, 0, 65_535, link]);
        for (time, packet) in &self.packets {
            let frame = frame(packet);
            let (seconds, micros) = ((time / 1_000_000) as u32, (time % 1_000_000) as u32);
            let len = frame.len() as u32;
            file.extend(put(big, &[seconds, micros, len, len]));
            file.extend(frame);
        }
        file
    }

    /// A file of the newer format, link type raw IP, nanoseconds.
    fn pcapng(&self) -> Vec<u8> {
        let block = |kind: u32, mut body: Vec<u8>| {
            body.resize(body.len().next_multiple_of(4), 0);
            let len = body.len() as u32 + 12;
            [put(false, &[kind, len]), body, put(false, &[len])].concat()
        };
        let mut file = block(0x0a0d_0d0a, put(false, &[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
        file.extend(block(1, put(false, &[101, 0, 1 << 16 | 9, 9, 0])));
        for (time, packet) in &self.packets {
            let (nanos, len) = (time * 1000, packet.len() as u32);
            let header = [0, (nanos >> 32) as u32, nanos as u32, len, len];
            file.extend(block(6, [put(false, &header), packet.clone()].concat()));
        }
        file
    }
}

fn put(big: bool, fields: &[u32]) -> Vec<u8> {
    let bytes = |field: &u32| if big { field.to_be_bytes() } else { field.to_le_bytes() };
    fields.iter().flat_map(bytes).collect()
}

fn ethernet(packet: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &[8, 0], packet].concat()
}

fn ipv4(from: ([u8; 4], u16), to: ([u8; 4], u16), payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u16 + 8;
    let mut packet = vec![0x45, 0];
    packet.extend((len + 20).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    packet.extend(from.0);
    packet.extend(to.0);
    for field in [from.1, to.1, len, 0] {
        packet.extend(field.to_be_bytes());
    }
    packet.extend(payload);
    packet
}

/// A datagram of QUIC version 1 with a long header: 0 Initial, 2 Handshake.
fn long(kind: u8, len: usize) -> Vec<u8> {
    let mut datagram = vec![0xc0 | kind << 4, 0, 0, 0, 1];
    datagram.extend([4, 1, 2, 3, 4, 4, 9, 9, 9, 9]);
    if kind == 0 {
        // No token.
        datagram.push(0);
    }
    let body = len - datagram.len() - 2;
    datagram.extend((0x4000 | body as u16).to_be_bytes());
    datagram.resize(len, 0x55);
    datagram
}

/// One with a short header; where its number would be encrypted it is plain.
fn short(number: u32, len: usize) -> Vec<u8> {
    let mut datagram = vec![0x41, 9, 9, 9, 9];
    datagram.extend(number.to_be_bytes());
    datagram.resize(len, 0x55);
    datagram
}

/// A file that goes with the value.
struct File(PathBuf);

impl File {
    fn new(name: &str, content: &[u8]) -> File {
        let path = std::env::temp_dir().join(format!("pemi-replay-{}-{name}", std::process::id()));
        fs::write(&path, content).unwrap();
        File(path)
    }

    fn name(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn replay(arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_pemi");
    Command::new(program).arg("replay").args(arguments).output().unwrap()
}

/// The report, and what went wrong.
fn report(arguments: &[&str]) -> (Value, String) {
    let output = replay(&[arguments, &["--json"]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(if said.is_empty() { 0 } else { 1 }), "{said}");
    (serde_json::from_slice(&output.stdout).unwrap(), said)
}

#[test]
fn every_format_gives_the_same_report() {
    let talk = Talk::new();
    let sll2 = |packet: &[u8]| [&[8, 0][..], &[0; 18], packet].concat();
    let files = [
        File::new("le", &talk.pcap(false, 1, ethernet)),
        File::new("be", &talk.pcap(true, 1, ethernet)),
        File::new("sll2", &talk.pcap(false, 276, sll2)),
        File::new("ng", &talk.pcapng()),
    ];
    let reports = files.each_ref().map(|file| {
        let (mut report, said) = report(&[file.name()]);
        assert_eq!((said.as_str(), &report["error"]), ("", &Value::Null));
        assert_eq!(report["file"].take(), file.name());
        report
    });
    let [first, rest @ ..] = &reports;
    rest.iter().for_each(|report| assert_eq!(report, first));

    assert_eq!(first["packets"]["read"], talk.packets.len());
    assert_eq!(first["packets"]["quic"], talk.packets.len());
    assert_eq!(first["packets"]["skipped"], 0);
    let flow = &first["flows"][0];
    assert_eq!(
        (&flow["client"], &flow["server"]),
        (&json!("10.77.0.2:50000"), &json!("10.77.1.2:443"))
    );
    assert_eq!((&flow["packets_down"], &flow["packets_up"]), (&json!(50), &json!(26)));
    assert_eq!(flow["age_s"], first["duration_s"]);
    assert_eq!(flow["inferred"], 1);
    for (of_flow, section, of_total) in [
        ("inferred", "losses", "inferred"),
        ("repaired", "losses", "repaired"),
        ("resent", "resent", "packets"),
        ("resent_bytes", "resent", "bytes"),
        ("holds", "concealed", "gaps"),
        ("held", "concealed", "held"),
    ] {
        assert_eq!(flow[of_flow], first["total"][section][of_total], "{of_flow}");
    }
    assert!(flow["holds"].as_u64().unwrap() >= 1 && flow["held"].as_u64().unwrap() >= 1);
    let rtt = flow["local_rtt_us"].as_u64().unwrap();
    assert!(rtt.abs_diff(HOP_US) < 1_000, "{rtt}");
}

#[test]
fn inferences_are_scored() {
    let talk = Talk::new();
    let (file, log) = (
        File::new("scored", &talk.pcap(false, 1, ethernet)),
        File::new("log", talk.log.as_bytes()),
    );
    let (report, _) = report(&[file.name(), "--truth", log.name()]);
    let truth = &report["truth"];
    assert_eq!((&truth["packets"], &truth["unmatched"]), (&json!(50), &json!(0)));
    assert_eq!((&truth["losses"], &truth["noticed"]), (&json!(1), &json!(1)));
    assert_eq!(
        (&truth["recall"], &truth["copies"]),
        (&json!(1.0), &report["total"]["resent"]["packets"])
    );
    let (copies, needed, vain) = (&truth["copies"], &truth["copies_needed"], &truth["false"]);
    assert_eq!(copies.as_u64(), needed.as_u64().zip(vain.as_u64()).map(|(a, b)| a + b));

    let bad = File::new("bad-log", b"us,dir\n");
    let output = replay(&[file.name(), "--truth", bad.name()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("line 1: column 'proto'"));
}

#[test]
fn probes_are_answered_if_wanted() {
    let file = File::new("probes", &Talk::new().pcap(false, 1, ethernet));
    let total = |arguments: &[&str]| report(arguments).0["total"].take();
    let without = total(&[file.name()]);
    assert!(without["probes"].as_u64().unwrap() >= 1);
    assert_eq!(without["probe_answer_us"], Value::Null);
    let with = total(&[file.name(), "--local-rtt-ms", "2.5"]);
    assert_eq!(with["probe_answer_us"], 2_500);
    assert!(with["probes"].as_u64().unwrap() >= 1);
}

#[test]
fn what_does_not_count_is_counted() {
    let mut talk = Talk::new();
    let whole = talk.packets.len();
    // Everything comes in and goes out again.
    let again = |(time, packet): &(u64, Vec<u8>)| {
        let mut packet = packet.clone();
        packet[8] -= 1;
        [(*time, packet.clone()), (*time + 40, packet)]
    };
    talk.packets = talk.packets.iter().flat_map(again).collect();
    let mut tcp = talk.packets[0].1.clone();
    tcp[9] = 6;
    let dns = ipv4(CLIENT, ([10, 77, 0, 1], 53), b"query");
    // Of the last one only the beginning has been captured.
    let cut = talk.packets[0].1[..100].to_vec();
    // Two in one.
    let merged = ipv4(SERVER, CLIENT, &short(99, 2000));
    talk.packets.extend([tcp, dns, cut, merged].map(|packet| (talk.now, packet)));
    let file = File::new("skipped", &talk.pcap(false, 1, ethernet));
    let (all, _) = report(&[file.name()]);
    assert_eq!(
        all["packets"],
        json!({"read": 2 * whole + 4, "quic": whole, "other": 0, "skipped": whole + 4,
            "skipped_for": {"twice": whole, "not_udp": 1, "direction": 1, "cut": 1, "merged": 1}})
    );
    let text = String::from_utf8(replay(&[file.name()]).stdout).unwrap();
    assert!(text.contains("ethtool -K"), "{text}");
    assert_eq!(all["flows"][0]["inferred"], 1);

    let quic = |arguments: &[&str]| {
        report(&[&[file.name()], arguments].concat()).0["packets"]["quic"].take()
    };
    assert_eq!(quic(&["--port", "4433"]), 0);
    assert_eq!(quic(&["--client-net", "10.77.0.0/24"]), whole);
    assert_eq!(quic(&["--client-net", "192.168.0.0/16"]), 0);
    let config = File::new("config", br#"{"port": [4433]}"#);
    assert_eq!(quic(&["--config", config.name()]), 0);
    assert_eq!(quic(&["--config", config.name(), "--port", "443"]), whole);
}

#[test]
fn what_could_be_read_is_reported() {
    let talk = Talk::new();
    let whole = talk.pcap(true, 1, ethernet);
    let packets = talk.packets.len();
    let absurd = [&whole[..], &put(true, &[0, 0, u32::MAX, u32::MAX])].concat();
    let unknown = talk.pcap(false, 147, ethernet);
    for (name, content, read, what) in [
        ("cut", &whole[..whole.len() - 1], packets - 1, "the file ends within a packet"),
        ("absurd", &absurd, packets, ABSURD),
        ("unknown", &unknown, 0, "offset 24: link type 147 is not supported"),
        ("only-header", &whole[..24], 0, ""),
    ] {
        let file = File::new(name, content);
        let (report, said) = report(&[file.name()]);
        assert_eq!(report["packets"]["read"], read, "{name}");
        assert_eq!(report["flows"].as_array().unwrap().len(), usize::from(read > 0), "{name}");
        if what.is_empty() {
            assert_eq!((said.as_str(), &report["error"]), ("", &Value::Null));
            continue;
        }
        let error = report["error"].as_str().unwrap();
        assert!(error.starts_with(file.name()) && error.contains(what), "{error}");
        assert!(error.contains("expected"), "{error}");
        assert_eq!(said, format!("ERROR {error}\n"));
    }
    for (name, content) in [("nothing", &b""[..]), ("text", b"no capture at all")] {
        let file = File::new(name, content);
        let output = replay(&[file.name()]);
        assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b""[..]));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(file.name()) && said.contains("magic number"), "{said}");
    }
    assert_eq!(replay(&["/nonexistent/x"]).status.code(), Some(1));
}

#[test]
fn standard_input_and_text_for_people() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pemi"))
        .args(["replay", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&Talk::new().pcapng()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in
        ["read 76, quic 76", "inferred 1", "--local-rtt-ms", "10.77.0.2:50000  10.77.1.2:443"]
    {
        assert!(text.contains(part), "{text}");
    }
}

/// A server that stays silent: only who looks after what goes up sends a copy to it.
#[test]
fn both_directions_are_played_if_the_configuration_says_so() {
    let mut talk = Talk::new();
    talk.packets.truncate(1);
    let (time, greeting) = talk.packets[0].clone();
    talk.packets.push((time + 2_000_000, greeting.clone()));
    let file = File::new("silent", &talk.pcap(false, 1, ethernet));
    for (direction, copies) in [("down", 0), ("both", 1)] {
        let config = json!({"direction": direction}).to_string();
        let config = File::new(direction, config.as_bytes());
        let (report, _) = report(&[file.name(), "--config", config.name()]);
        assert_eq!(report["total"]["resent"]["packets"], copies, "{direction}");
        let flow = &report["flows"][0];
        let bytes = copies * greeting.len();
        assert_eq!((&flow["resent"], &flow["resent_bytes"]), (&json!(copies), &json!(bytes)));
    }
}

/// Thousands of files with bytes changed, moved and cut: nothing but errors.
#[test]
fn no_file_makes_it_panic() {
    let mut talk = Talk::new();
    talk.packets.truncate(6);
    talk.packets.iter_mut().for_each(|(_, packet)| packet.truncate(90));
    let originals =
        [talk.pcap(false, 1, ethernet), talk.pcap(true, 101, <[u8]>::to_vec), talk.pcapng()];
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for round in 0..30_000 {
        let mut file = originals[round % originals.len()].clone();
        for _ in 0..=random(4) {
            // Headers are few beside payload, so near the beginning more often.
            let within = if random(2) == 0 { 64 } else { file.len() };
            let at = random(within);
            file[at] = [0, 0xff, 0x7f, 0x80, random(256) as u8][random(5)];
        }
        file.truncate(random(2 * file.len()).max(1));
        let Ok(mut capture) = Capture::open(&file[..]) else { continue };
        while let Ok(Some(packet)) = capture.next_packet() {
            assert!(packet.frame.len() <= file.len() && packet.offset < file.len() as u64);
            let _ = link::content(packet.link, packet.frame);
        }
    }
}
