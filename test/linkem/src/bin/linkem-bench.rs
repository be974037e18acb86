// SPDX-License-Identifier: GPL-2.0-or-later
//! Measures linkem between two hosts in network namespaces; needs root.
//!
//! `linkem-bench send` and `linkem-bench receive` are the programs that it runs
//! on the hosts; the tests use them, too.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use hdrhistogram::Histogram;
use lexopt::{Arg, Parser, ValueExt};
use linkem::lab::{Host, Lab, Running};
use linkem::sched;
use serde_json::{Value, json};

const HELP: &str = "\
linkem-bench [--mbit MBIT] [--bytes BYTES] [--seconds S] [--linkem PROGRAM]
  Sends IP packets of BYTES (default 1250) at MBIT (default 300) for S seconds
  (default 5) through a linkem with a rate a third above that and 5 ms delay;
  prints what arrived and how late as JSON.
linkem-bench send ADDRESS:PORT PAYLOAD_BYTES PACKETS_PER_SECOND COUNT
linkem-bench receive ADDRESS:PORT COUNT
  Prints 'ready', then JSON when COUNT packets have come or no more do.";

/// SCHED_FIFO priority of sender and receiver, below linkem's: they must keep up
/// for its losses to be seen.
const PRIORITY: u8 = 40;
/// Headers of IPv4 and UDP.
const HEADERS_BYTES: usize = 28;
const ETHERNET_BYTES: usize = 14;
const DELAY_MS: u64 = 5;
/// A sequence number and the time of sending.
const STAMP_BYTES: usize = 16;
/// How long to wait for the first packet, and for each one after it.
const FIRST_PATIENCE: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("linkem-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut mbit = 300.0;
    let mut bytes: usize = 1250;
    let mut seconds = 5.0;
    let mut program = std::env::current_exe()?.with_file_name("linkem");
    let mut parser = Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Value(command) => {
                let command = command.string()?;
                let rest: Vec<String> =
                    parser.raw_args()?.map(|word| word.string()).collect::<Result<_, _>>()?;
                let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
                return match (command.as_str(), &rest[..]) {
                    ("send", [to, bytes, rate, count]) => {
                        send(to, bytes.parse()?, rate.parse()?, count.parse()?)
                    }
                    ("receive", [listen, count]) => receive(listen, count.parse()?),
                    _ => bail!("see --help"),
                };
            }
            Arg::Long("mbit") => mbit = parser.value()?.parse()?,
            Arg::Long("bytes") => bytes = parser.value()?.parse()?,
            Arg::Long("seconds") => seconds = parser.value()?.parse()?,
            Arg::Long("linkem") => program = PathBuf::from(parser.value()?),
            Arg::Long("help") | Arg::Short('h') => {
                println!("{HELP}");
                return Ok(());
            }
            _ => return Err(argument.unexpected().into()),
        }
    }
    ensure!(bytes >= HEADERS_BYTES + STAMP_BYTES, "--bytes is too little");
    let result = bench(&program, mbit, bytes, seconds)?;
    println!("{}", serde_json::to_string_pretty(&result)?);
    Ok(())
}

fn bench(program: &std::path::Path, mbit: f64, bytes: usize, seconds: f64) -> Result<Value> {
    let rate = mbit * 1e6 / 8.0 / bytes as f64;
    let count = (rate * seconds).round() as u64;
    let link_mbit = mbit * 4.0 / 3.0;
    let lab = Lab::new("bench")?;
    let linkem = lab.linkem(
        program,
        &[&format!("--rate={link_mbit}"), &format!("--delay={DELAY_MS}"), "--queue=4000000"],
    )?;
    let own = std::env::current_exe()?;
    let own = own.to_str().context("a path in UTF-8")?;
    let to = format!("{}:9000", Host::B.addresses()[0]);
    let mut receiver = lab.command(Host::B, own);
    receiver.args(["receive", &to, &count.to_string()]);
    let receiver = Running::start(receiver)?;
    let payload = (bytes - HEADERS_BYTES).to_string();
    let start = Instant::now();
    let status = lab
        .command(Host::A, own)
        .args(["send", &to, &payload, &rate.to_string(), &count.to_string()])
        .status()?;
    ensure!(status.success(), "the sender failed: {status}");
    let elapsed = start.elapsed().as_secs_f64();
    let received = receiver.finish()?;
    let cpu_s = cpu_seconds(linkem.child.id())?;
    let totals = linkem.terminate()?;
    // What the link is there for: its delay and the serialisation of one packet.
    let serialisation = (bytes + ETHERNET_BYTES) as f64 * 8.0 / link_mbit;
    let least = DELAY_MS as f64 * 1000.0 + serialisation;
    let added = |name: &str| {
        let delay = received["delay_us"][name].as_f64();
        delay.map(|delay| (delay - least).round())
    };
    Ok(json!({
        "packet_bytes": bytes,
        "sent": count,
        "sent_mbps": count as f64 * bytes as f64 * 8e-6 / elapsed,
        "received": received["received"],
        "out_of_order": received["out_of_order"],
        "added_delay_us": {"p50": added("p50"), "p99": added("p99"), "max": added("max")},
        "linkem_cpu_s": cpu_s,
        "linkem_cpu_us_per_packet": cpu_s * 1e6 / count as f64,
        "linkem": totals["ab"],
    }))
}

/// User and system time of a process so far.
fn cpu_seconds(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name, in parentheses, may contain anything; fields 14 and 15 of
    // proc_pid_stat(5) are in ticks of 10 ms on every Linux.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: f64 = ticks.filter_map(|field| field.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}

fn send(to: &str, bytes: usize, rate: f64, count: u64) -> Result<()> {
    ensure!(bytes >= STAMP_BYTES && rate > 0.0, "see --help");
    sched::set_exact_timers()?;
    prioritise();
    let any = if to.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to).with_context(|| to.to_owned())?;
    let mut payload = vec![0x55; bytes];
    let start = Instant::now();
    for number in 0..count {
        // What could not be sent in time is sent at once: the mean rate holds.
        let at = start + Duration::from_secs_f64(number as f64 / rate);
        let early = at.saturating_duration_since(Instant::now());
        if !early.is_zero() {
            std::thread::sleep(early);
        }
        payload[..8].copy_from_slice(&number.to_be_bytes());
        payload[8..STAMP_BYTES].copy_from_slice(&sched::monotonic().to_be_bytes());
        socket.send(&payload).context("send")?;
    }
    Ok(())
}

fn prioritise() {
    if let Err(error) = sched::set_fifo(PRIORITY) {
        eprintln!("linkem-bench: warning: SCHED_FIFO: {error}");
    }
}

fn receive(listen: &str, count: u64) -> Result<()> {
    let socket = UdpSocket::bind(listen).with_context(|| listen.to_owned())?;
    let mut delays = Histogram::<u64>::new(3)?;
    let (mut received, mut out_of_order, mut next) = (0u64, 0u64, 0u64);
    let mut buffer = [0; 65_536];
    prioritise();
    println!("ready");
    socket.set_read_timeout(Some(FIRST_PATIENCE))?;
    while received < count {
        let length = match socket.recv(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => return Err(error).context("receive"),
        };
        let now = sched::monotonic();
        if received == 0 {
            socket.set_read_timeout(Some(PATIENCE))?;
        }
        let field = |at: usize| {
            let bytes = buffer[..length].get(at..at + 8)?;
            Some(u64::from_be_bytes(bytes.try_into().ok()?))
        };
        let (Some(number), Some(sent)) = (field(0), field(8)) else {
            bail!("a packet of {length} bytes is not from linkem-bench");
        };
        received += 1;
        out_of_order += u64::from(number < next);
        next = next.max(number + 1);
        delays.record(now.saturating_sub(sent) / 1000)?;
    }
    let result = json!({
        "received": received,
        "out_of_order": out_of_order,
        "delay_us": {
            "p50": delays.value_at_quantile(0.5),
            "p99": delays.value_at_quantile(0.99),
            "max": delays.max(),
        },
    });
    println!("{result}");
    Ok(())
}
