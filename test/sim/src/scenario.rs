// SPDX-License-Identifier: GPL-2.0-or-later
//! What is simulated: links, flows, router. Read from TOML; every option has a
//! default, and together these are the train scenario.

use std::path::PathBuf;

use linkem::{MS, Nanos};
use pemi_air::settings::Settings as Air;
use serde::{Deserialize, Deserializer, Serialize};

use crate::endpoint::App;
use crate::tunables::Tunables;

/// A server behind a WAN, a router with the engine, clients behind its Wi-Fi.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// The hop between clients and router.
    pub wifi: Wifi,
    /// The hop between router and servers.
    pub wan: Wan,
    /// The flows; without any, one download of 5 MB.
    #[serde(rename = "flow")]
    pub flows: Vec<Flow>,
    /// The engine's settings.
    pub engine: EngineOptions,
    /// Constants of the engine's rules that are varied, by their names.
    #[serde(skip_serializing_if = "Tunables::is_empty")]
    pub tunables: Tunables,
    /// The run is over after this much virtual time.
    pub limit_s: u64,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            wifi: Wifi::default(),
            wan: Wan::default(),
            flows: vec![Flow::default()],
            engine: EngineOptions::default(),
            tunables: Tunables::new(),
            limit_s: 300,
        }
    }
}

/// The last hop.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wifi {
    /// A radio channel in place of rate, delay, jitter, queue and losses: the name of
    /// a preset of `test/air`, or its settings.
    #[serde(deserialize_with = "air")]
    pub air: Option<Air>,
    /// In place of the rate, the delay or both, what a trace has of them: a file as
    /// `run.py --trace1` takes it, or the name of one of test/mininet/traces. Products of
    /// rate and round trip still count with `delay_ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Megabits per second.
    pub rate_mbit: f64,
    /// One way, ms.
    pub delay_ms: f64,
    /// The delay varies by this share of it to both sides, percent; packets stay
    /// in order.
    pub jitter_percent: f64,
    /// Bytes of the queue to each side.
    pub queue_bytes: u64,
    /// What is done about a standing queue.
    pub qdisc: Qdisc,
    /// Losses towards the clients.
    pub loss_down: LossModel,
    /// Losses towards the router.
    pub loss_up: LossModel,
    /// This share of the packets to the clients comes later than its successors.
    pub reorder_percent: f64,
    /// So much later, ms.
    pub reorder_ms: f64,
    /// Packets to the clients wait until a radio wakes up or a block is
    /// complete: lengths of the waits from and to, ms; [0, 0]: never.
    pub clump_ms: [f64; 2],
    /// The access point reports what became of packets to the clients.
    pub reports: Option<Reports>,
    /// The access point counts what it loses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
}

/// How an access point reports.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reports {
    /// From a packet's fate to its report, ms.
    pub lag_ms: f64,
    /// Packets that have arrived and are called lost, percent.
    pub false_percent: f64,
    /// Packets of which no report comes, percent.
    pub missing_percent: f64,
    /// What the queue drops is called lost, too.
    pub queue: bool,
}

/// What an access point counts.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Counts {
    /// Between two looks at the counters, ms.
    pub period_ms: f64,
    /// From a packet's fate until it is counted, ms.
    pub lag_ms: f64,
    /// It is not known for certain that what was counted was lost.
    pub at_most: bool,
    /// What the queue drops is counted as well.
    pub queue: bool,
}

impl Default for Counts {
    fn default() -> Self {
        Counts { period_ms: 100.0, lag_ms: 0.0, at_most: false, queue: false }
    }
}

impl Default for Wifi {
    fn default() -> Self {
        Wifi {
            air: None,
            trace: None,
            rate_mbit: 100.0,
            delay_ms: 1.0,
            jitter_percent: 0.0,
            queue_bytes: 1_000_000,
            qdisc: Qdisc::Droptail,
            loss_down: LossModel::None,
            loss_up: LossModel::None,
            reorder_percent: 0.0,
            reorder_ms: 0.0,
            clump_ms: [0.0, 0.0],
            reports: None,
            counts: None,
        }
    }
}

/// The hop before the router.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wan {
    /// Megabits per second, both ways; not heeded with a trace.
    pub rate_mbit: f64,
    /// One way, ms.
    pub delay_ms: f64,
    /// The queue in products of rate and round trip of the whole path.
    pub queue_bdp: f64,
    /// What is done about a standing queue.
    pub qdisc: Qdisc,
    /// Losses towards the router.
    pub loss_down: LossModel,
    /// Losses towards the servers.
    pub loss_up: LossModel,
    /// Delivery opportunities towards the router, in mahimahi's format.
    pub trace: Option<PathBuf>,
}

impl Default for Wan {
    fn default() -> Self {
        Wan {
            rate_mbit: 10.0,
            delay_ms: 25.0,
            queue_bdp: 1.0,
            qdisc: Qdisc::Droptail,
            loss_down: LossModel::None,
            loss_up: LossModel::None,
            trace: None,
        }
    }
}

/// A queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Qdisc {
    /// What does not fit is dropped.
    Droptail,
    /// CoDel (RFC 8289).
    Codel,
    /// FQ-CoDel (RFC 8290).
    FqCodel,
}

/// Which packets are lost.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossModel {
    /// None.
    None,
    /// Each independently, percent.
    Percent(f64),
    /// Gilbert-Elliott as in tc-netem(8): p, r, 1-h, 1-k in percent.
    Gemodel([f64; 4]),
    /// Everything, for a time: from one outage to the next and how long one lasts, ms, both
    /// exponentially distributed with these means, and the same in both directions.
    Outages([f64; 2]),
    /// As recorded: a file of lines `0` (arrives) and `1` (is lost), repeated.
    Trace(PathBuf),
}

/// How late a client host is unless a scenario says otherwise. Chosen: three times what those of the
/// testbed are (`crate::real`), as phones and laptops have more to do.
pub const WAKE_MS: f64 = 0.5;

/// One flow.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Flow {
    /// What it carries.
    pub app: AppKind,
    /// Bytes of a download or an upload.
    pub bytes: u64,
    /// Seconds of a call.
    pub seconds: f64,
    /// Frames of a call each second.
    pub fps: f64,
    /// Rate of a call, kilobits per second.
    pub kbps: f64,
    /// The client sends frames, too.
    pub two_way: bool,
    /// The sender's congestion control.
    pub cc: CongestionControl,
    /// How the client behaves.
    pub client: ClientKind,
    /// The client host reads what has come only this much later, at most, ms: a
    /// random time after the first packet of a batch. 0 for a host that is prompt, as none
    /// is: see [`WAKE_MS`].
    pub wake_ms: f64,
    /// The client host collects packets for this long after the first, ms.
    pub batch_ms: f64,
    /// What the client makes of what it has read leaves up to this much later, ms, and tells of nothing that has
    /// come by then.
    pub reply_ms: f64,
    /// Of a hundred batches so many are read later still, by up to this, ms.
    pub pause_percent: f64,
    /// See `pause_percent`.
    pub pause_ms: f64,
    /// The client takes this much longer for the first batch, in which the server's certificate and keys
    /// come, ms.
    pub handshake_ms: f64,
    /// The sender leaves out one packet number after so many packets, on average; 0 for as few as quinn-proto
    /// does by itself. The client has to be a model.
    pub skips_every: u64,
    /// Packets in the sender's first flight, of Cubic; 0 for as many as it has by itself.
    pub first_flight: u64,
    /// The client's number: flows of one number share its address.
    pub client_id: u8,
    /// When it starts, ms.
    pub start_ms: f64,
    /// Whether the engine gets to see it.
    pub helped: bool,
    /// Whether what becomes of it is told: of two downloads of one client the first is there for
    /// what the engine learns from it.
    #[serde(skip_serializing_if = "bool::clone")]
    pub counted: bool,
}

impl Default for Flow {
    fn default() -> Self {
        Flow {
            app: AppKind::Download,
            bytes: 5_000_000,
            seconds: 10.0,
            fps: 30.0,
            kbps: 3000.0,
            two_way: false,
            cc: CongestionControl::Cubic,
            client: ClientKind::Quinn,
            wake_ms: WAKE_MS,
            batch_ms: 0.0,
            reply_ms: 0.0,
            pause_percent: 0.0,
            pause_ms: 0.0,
            handshake_ms: 0.0,
            skips_every: 0,
            first_flight: 0,
            client_id: 0,
            start_ms: 0.0,
            helped: true,
            counted: true,
        }
    }
}

impl Flow {
    /// The application with its sizes.
    pub fn app(&self) -> App {
        match self.app {
            AppKind::Download => App::Download { bytes: self.bytes },
            AppKind::Upload => App::Upload { bytes: self.bytes },
            AppKind::Call => App::Call {
                frames: (self.seconds * self.fps).round() as u64,
                interval: (1e9 / self.fps) as Nanos,
                frame_bytes: (self.kbps * 1000.0 / 8.0 / self.fps).round() as u64,
                two_way: self.two_way,
            },
        }
    }
}

/// What a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AppKind {
    /// A download.
    Download,
    /// An upload; the client has to be quinn's.
    Upload,
    /// A video call.
    Call,
}

/// Congestion controllers: quinn-proto's, and models of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs)]
pub enum CongestionControl {
    Cubic,
    Newreno,
    Bbr,
    /// BBRv3 with its own pacing.
    Bbr3,
    /// NewReno with HyStart, as quic-go's and Chromium's servers.
    Hystart,
    /// The same with the windows of quic-go.
    QuicGo,
    /// CUBIC that takes a cut back where few packets were lost, as quiche.
    Rollback,
}

/// Clients; all but quinn's and TCP's are models fed with measured facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientKind {
    /// quinn-proto: every 2nd packet, at once on a gap.
    Quinn,
    /// The model with quinn's rule.
    Every2,
    /// Each packet, as quiche.
    Every1,
    /// Every 10th, at once on a gap and when it closes.
    Every10,
    /// Only by a timer, 25 ms after the first unacknowledged packet.
    Delayed,
    /// Decimation as in Chromium.
    Chromium,
    /// As quic-go: every 2nd, a PING on each 20th acknowledgement.
    QuicGo,
    /// Every 2nd; all acknowledgements are padded to one size.
    Padded,
    /// Every 2nd; each acknowledgement is padded by 0 to 32 bytes at random.
    RandomPadding,
    /// As libcurl on ngtcp2: every 2nd, at once on a gap, padded to one size.
    Ngtcp2,
    /// As s2n-quic: every 10th, one at once on a gap, padded to one size.
    S2n,
    /// As msquic: every 2nd, and shorter by some frames while there is a gap.
    Msquic,
    /// As a busy Firefox: after 5 to 9 packets, irregularly.
    Irregular,
    /// Every 4th, one at once on a gap, padded to one size.
    Every4,
    /// Every 2nd, and no sooner on a gap; sizes vary for other reasons.
    Patient,
    /// Every 2nd, and by the server's wish every 16th after a while, with or without gaps.
    AckFrequency,
    /// The same, and at once when a third packet beyond a gap has come.
    AckFrequencyThird,
    /// Every 2nd, with the times of what was received.
    Timestamps,
    /// Every 2nd; one of four acknowledgements is longer by 1 to 6 bytes.
    Varying,
    /// As tquic: every 2nd, and no sooner on a gap.
    Tquic,
    /// As aioquic: by a timer alone, 1 ms after the first packet that is not acknowledged yet.
    Aioquic,
    /// TCP with cubic at the server: not QUIC, never helped.
    Tcp,
}

/// Settings of the engine that experiments change.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineOptions {
    /// As in the daemon's configuration.
    pub resend_percent: u32,
    /// As in the daemon's configuration.
    pub conceal: bool,
    /// Rules that are switched off, by the names of `sim ablate`.
    pub without: Vec<String>,
    /// As in the daemon's configuration.
    pub direction: Directions,
    /// Packets that come densely gather for a moment before they are read, as the daemon has it; if not,
    /// each is read as it comes.
    pub gathers: bool,
}

/// Which losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Directions {
    /// Those on the way to the clients.
    Down,
    /// Those beyond the router on the way to the servers as well.
    Both,
}

impl Default for EngineOptions {
    fn default() -> Self {
        let config = pemi_engine::Config::default();
        EngineOptions {
            resend_percent: config.resend_percent,
            conceal: config.conceal,
            without: Vec::new(),
            direction: Directions::Down,
            gathers: false,
        }
    }
}

/// A preset by its name, or settings.
fn air<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Air>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Name(String),
        Settings(Air),
    }
    match Given::deserialize(deserializer)? {
        Given::Name(name) => Air::preset(&name).map(Some).map_err(serde::de::Error::custom),
        Given::Settings(settings) => settings.checked().map(Some).map_err(serde::de::Error::custom),
    }
}

/// Milliseconds as nanoseconds.
pub fn ms(value: f64) -> Nanos {
    (value * MS as f64).round() as Nanos
}
