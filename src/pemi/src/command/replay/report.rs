// SPDX-License-Identifier: GPL-2.0-or-later
//! What `pemi replay` prints, for people and as JSON. Names are those of the
//! control socket's answers where they mean the same.

use std::fmt::{Display, Write};

use pemi_engine::{Nanos, SEC, Stats};
use serde_json::{Map, Value};

use super::book::{Ends, Flow};
use crate::command::show;

/// Flows in the text; JSON has all.
const TEXT_FLOWS: usize = 20;

/// What to do about packets that were merged before they were captured.
const MERGED: &str = "several packets in one cannot be told apart, so what is said here is about the \
                      others; capture with `ethtool -K DEVICE gro off`, on the device to the servers";

/// Packets of the capture and why some were not shown to the engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All that could be read.
    pub read: u64,
    /// Not IP, not UDP, or a fragment.
    pub not_udp: u64,
    /// Not between a client and a server's port.
    pub direction: u64,
    /// Captured once more.
    pub twice: u64,
    /// Not captured whole.
    pub cut: u64,
    /// Several in one.
    pub merged: u64,
}

/// Everything that the report is made of.
#[derive(Debug)]
pub struct Report<'a> {
    /// Name of the capture.
    pub file: &'a str,
    /// Why it could not be read to its end.
    pub error: Option<&'a str>,
    /// From the first packet to the last.
    pub duration: Nanos,
    /// Packets.
    pub counts: Counts,
    /// Those with most bytes first.
    pub flows: &'a [(Ends, Flow)],
    /// Packets of flows beyond those.
    pub unlisted: u64,
    /// The engine's counters.
    pub stats: Stats,
    /// Probes that the engine asked for.
    pub probes: u64,
    /// The answer to each of them.
    pub local_rtt: Option<Nanos>,
    /// The score.
    pub truth: Option<Vec<(&'static str, Value)>>,
}

/// Numbers by name.
type Named<const N: usize> = [(&'static str, u64); N];

impl Report<'_> {
    fn packets(&self) -> Named<4> {
        let (c, s) = (&self.counts, &self.stats);
        [
            ("read", c.read),
            ("quic", s.packets_quic),
            ("other", s.packets_other),
            ("skipped", c.not_udp + c.direction + c.twice + c.cut + c.merged),
        ]
    }

    fn skipped(&self) -> Named<5> {
        let c = &self.counts;
        [
            ("not_udp", c.not_udp),
            ("direction", c.direction),
            ("twice", c.twice),
            ("cut", c.cut),
            ("merged", c.merged),
        ]
    }

    fn losses(&self) -> Named<4> {
        let s = &self.stats;
        [
            ("inferred", s.losses_inferred),
            ("repaired", s.losses_repaired),
            ("upstream", s.losses_upstream),
            ("congestion", s.losses_congestion),
        ]
    }

    fn resent(&self) -> Named<3> {
        let s = &self.stats;
        [("packets", s.resent_packets), ("bytes", s.resent_bytes), ("limited", s.resent_limited)]
    }

    fn concealed(&self) -> Named<3> {
        let s = &self.stats;
        [("gaps", s.concealed_gaps), ("held", s.concealed_held), ("late", s.concealed_late)]
    }

    fn bytes(&self) -> Named<2> {
        [("down", self.stats.bytes_down), ("up", self.stats.bytes_up)]
    }

    /// For programs. Times in seconds where the name ends in `_s`, in microseconds
    /// where it ends in `_us`; sizes in IP bytes.
    pub fn json(&self) -> Value {
        let mut packets = numbers(&self.packets());
        packets["skipped_for"] = numbers(&self.skipped());
        let flows: Vec<Value> = self.flows.iter().map(flow).collect();
        let total = vec![
            (
                "packets",
                numbers(&[("down", self.stats.packets_down), ("up", self.stats.packets_up)]),
            ),
            ("bytes", numbers(&self.bytes())),
            ("losses", numbers(&self.losses())),
            ("resent", numbers(&self.resent())),
            ("concealed", numbers(&self.concealed())),
            ("local_rtt_us", numbers(&self.local_rtts())),
            ("probes", self.probes.into()),
            ("probe_answer_us", self.local_rtt.map(micros).into()),
            ("flows", self.flows.len().into()),
            ("unlisted_packets", self.unlisted.into()),
        ];
        object(vec![
            ("file", self.file.into()),
            ("error", self.error.into()),
            ("duration_s", seconds(self.duration)),
            ("packets", packets),
            ("flows", flows.into()),
            ("total", object(total)),
            ("truth", self.truth.clone().map(object).into()),
        ])
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| _ = writeln!(text, "{name:<13} {value}");
        line("capture", &format!("{}, {} s", self.file, seconds(self.duration)));
        line("packets", &words(&self.packets()));
        line("skipped", &words(&self.skipped()));
        if self.counts.merged > 0 {
            line("merged", MERGED);
        }
        line("bytes", &words(&self.bytes()));
        line("losses", &words(&self.losses()));
        line("would resend", &words(&self.resent()));
        line("would hold", &words(&self.concealed()));
        let how = match self.local_rtt {
            Some(rtt) => format!("{} probes answered with {} us", self.probes, micros(rtt)),
            None => "estimated without probes, see --local-rtt-ms".into(),
        };
        line("local RTT us", &format!("{}; {how}", words(&self.local_rtts())));
        if let Some(truth) = &self.truth {
            line("truth", &words(truth));
        }
        let rows = self
            .flows
            .iter()
            .take(TEXT_FLOWS)
            .map(flow)
            .map(|flow| COLUMNS.iter().map(|(_, name)| show::told(&flow[*name])).collect());
        text.push('\n');
        text.push_str(&show::table(&COLUMNS.map(|(head, _)| head), rows.collect()));
        if let Some(more @ 1..) = self.flows.len().checked_sub(TEXT_FLOWS) {
            let _ = writeln!(text, "and {more} more, see --json");
        }
        if self.unlisted > 0 {
            let _ = writeln!(text, "and {} packets of flows not listed", self.unlisted);
        }
        text
    }

    /// Over the flows where it became known.
    fn local_rtts(&self) -> Named<2> {
        let rtts = self.flows.iter().map(|(_, flow)| flow.local_rtt).filter(|rtt| *rtt > 0);
        let mut rtts: Vec<Nanos> = rtts.collect();
        rtts.sort_unstable();
        let quantile =
            |percent| rtts.get(rtts.len() * percent / 100).map_or(0, |rtt: &Nanos| micros(*rtt));
        [("p50", quantile(50)), ("p99", quantile(99))]
    }
}

/// Columns of the table: the head and the name in JSON.
const COLUMNS: [(&str, &str); 12] = [
    ("client", "client"),
    ("server", "server"),
    ("age s", "age_s"),
    ("packets", "packets_down"),
    ("bytes", "bytes_down"),
    ("RTT us", "local_rtt_us"),
    ("inferred", "inferred"),
    ("repaired", "repaired"),
    ("resent", "resent"),
    ("holds", "holds"),
    ("held", "held"),
    ("state", "state"),
];

fn flow((ends, flow): &(Ends, Flow)) -> Value {
    let mut value = numbers(&[
        ("packets_down", flow.packets_down),
        ("packets_up", flow.packets_up),
        ("bytes_down", flow.bytes_down),
        ("bytes_up", flow.bytes_up),
        ("local_rtt_us", micros(flow.local_rtt)),
        ("inferred", flow.inferred),
        ("repaired", flow.repaired),
        ("resent", flow.resent),
        ("resent_bytes", flow.resent_bytes),
        ("holds", flow.holds),
        ("held", flow.held),
    ]);
    value["client"] = ends.client.to_string().into();
    value["server"] = ends.server.to_string().into();
    value["age_s"] = seconds(flow.last.since(flow.first));
    value["state"] = flow.state.name().into();
    value
}

// Neither `json!` nor `collect`: the one would make a piece of code for each name,
// the other brings a sort for each type, together 30 KiB of the daemon.
fn object(named: Vec<(&'static str, Value)>) -> Value {
    let mut object = Map::new();
    for (name, value) in named {
        object.insert(name.to_string(), value);
    }
    object.into()
}

fn numbers(named: &[(&'static str, u64)]) -> Value {
    object(named.iter().map(|(name, number)| (*name, Value::from(*number))).collect())
}

fn words<T: Display>(named: &[(&'static str, T)]) -> String {
    let words: Vec<String> = named.iter().map(|(name, value)| format!("{name} {value}")).collect();
    words.join(", ")
}

fn micros(nanos: Nanos) -> u64 {
    u64::try_from(nanos / 1_000).unwrap_or(0)
}

fn seconds(nanos: Nanos) -> Value {
    ((nanos as f64 / SEC as f64 * 1e3).round() / 1e3).into()
}
