// SPDX-License-Identifier: GPL-2.0-or-later
//! The options: the settings of the daemon, their defaults, and the one table of what there
//! is to know of each option.
//!
//! Everything else reads [`TABLE`]: the configuration file, `pemi check`, the flags of
//! `pemi run` and their help, what takes a restart, and `pemi options`, against which
//! `tests/options.rs` holds the documents, the shipped file and the LuCI app. A new option is
//! a field, its default and a line of the table.

use std::path::PathBuf;

use log::LevelFilter;

mod kind;

use kind::Kind::{
    Choice, Interval, MoreNames, Names, Number, Path, PathOrNone, Ports, Service, Switch,
};
use kind::Width::{U8, U16, U32};
pub use kind::{Kind, Named, Word};

/// Where the control socket is unless the configuration says otherwise.
pub const CONTROL: &str = "/var/run/pemi/control.sock";
/// Where ubusd's socket is on OpenWrt.
pub const UBUS: &str = "/var/run/ubus/ubus.sock";

/// How packets reach the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The router forwards between networks.
    Routed,
    /// Clients and WAN are on one bridge.
    Bridged,
}

impl Named for Mode {
    const NAMES: &'static [(&'static str, Mode)] =
        &[("routed", Mode::Routed), ("bridged", Mode::Bridged)];
}

/// Which losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repaired {
    /// Those on the way to the clients.
    Down,
    /// Those beyond the router, on the way to the servers, as well.
    Both,
}

impl Named for Repaired {
    const NAMES: &'static [(&'static str, Repaired)] =
        &[("down", Repaired::Down), ("both", Repaired::Both)];
}

/// How it is known what was lost on the way to the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// By what the clients' replies give away.
    Infer,
    /// By what the access point reports, where it does and counts losses as well, which tells
    /// whether the reports are true.
    Auto,
    /// By what the access point reports, where it does.
    Radio,
}

impl Named for Repair {
    const NAMES: &'static [(&'static str, Repair)] =
        &[("auto", Repair::Auto), ("infer", Repair::Infer), ("radio", Repair::Radio)];
}

/// Whose losses are repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocols {
    /// Those of QUIC.
    Quic,
    /// Those of TCP and of everything else over UDP as well, where they are reported.
    All,
}

impl Named for Protocols {
    const NAMES: &'static [(&'static str, Protocols)] =
        &[("quic", Protocols::Quic), ("all", Protocols::All)];
}

/// How packets to clients are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// As it is proven: now, that is the queue.
    Auto,
    /// They wait in the queue for the daemon.
    Queue,
    /// They pass, and a ring of the kernel's shows copies; only what clients send waits.
    Ring,
}

impl Named for Capture {
    const NAMES: &'static [(&'static str, Capture)] =
        &[("auto", Capture::Auto), ("queue", Capture::Queue), ("ring", Capture::Ring)];
}

/// Who brings packets to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firewall {
    /// Somebody else.
    None,
    /// The daemon, with a table of its own in nf_tables.
    Nft,
    /// Nobody: there is no queue, and no flow is helped.
    Nobody,
}

impl Named for Firewall {
    const NAMES: &'static [(&'static str, Firewall)] =
        &[("none", Firewall::None), ("nft", Firewall::Nft), ("nobody", Firewall::Nobody)];
}

/// When this router's access points are asked what they lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radio {
    /// Whenever the daemon runs.
    Auto,
    /// The same; and the init script starts the daemon also where nobody is to be helped.
    Always,
    /// Never.
    Off,
}

impl Named for Radio {
    const NAMES: &'static [(&'static str, Radio)] =
        &[("auto", Radio::Auto), ("always", Radio::Always), ("off", Radio::Off)];
}

impl Named for LevelFilter {
    const NAMES: &'static [(&'static str, LevelFilter)] = &[
        ("error", LevelFilter::Error),
        ("warn", LevelFilter::Warn),
        ("info", LevelFilter::Info),
        ("debug", LevelFilter::Debug),
    ];
}

/// The settings of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Networks whose clients are helped; for people to read, the devices count.
    pub network: Vec<String>,
    /// Those of the networks that have no device now.
    pub absent: Vec<String>,
    /// Interfaces towards the clients.
    pub device: Vec<String>,
    /// UDP ports of the servers.
    pub port: Vec<u16>,
    /// How packets reach the daemon.
    pub mode: Mode,
    /// Which losses are repaired.
    pub direction: Repaired,
    /// How it is known what was lost.
    pub repair: Repair,
    /// Whose losses are repaired.
    pub protocols: Protocols,
    /// How packets to clients are seen.
    pub capture: Capture,
    /// Packet copies kept, KiB.
    pub cache_kib: u32,
    /// Flows known at a time.
    pub max_flows: u32,
    /// Largest share of a flow sent again beside 48 and repairs.
    pub resend_percent: u32,
    /// Largest share of copies of all flows together in the traffic of a second.
    pub resend_total_percent: u32,
    /// Whether telling replies are held.
    pub conceal: bool,
    /// Seconds without a repair after which a flow is let go; 0: never.
    pub release_s: u32,
    /// Share of the flows that are left alone for comparison.
    pub control_percent: u32,
    /// Where the comparison is kept over restarts; none: nowhere.
    pub benefit: Option<PathBuf>,
    /// Number of the first queue.
    pub queue: u16,
    /// How many queues, one thread each.
    pub queues: u16,
    /// Packet mark of what the daemon sends.
    pub mark: u32,
    /// Packet mark of flows that are let go.
    pub bypass_mark: u32,
    /// Connection mark of flows that are helped.
    pub helped_mark: u32,
    /// Who brings packets to the queue.
    pub firewall: Firewall,
    /// SCHED_FIFO priority of the packet path; 0: none.
    pub realtime_priority: u8,
    /// When access points are asked what they lost.
    pub radio: Radio,
    /// What is logged.
    pub log_level: LevelFilter,
    /// Path of the control socket.
    pub control: PathBuf,
    /// Path of ubusd's socket; none: no object on ubus.
    pub ubus: Option<PathBuf>,
    /// The helper for cooperating senders.
    pub sidekick: Sidekick,
}

/// Settings of the helper for cooperating senders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sidekick {
    /// Whether it answers.
    pub enabled: bool,
    /// Its UDP port.
    pub port: u16,
    /// When to quACK: after packets (`2p`), time (`10ms`), or `adaptive`.
    pub interval: String,
    /// Missing packets that one quACK can name.
    pub threshold: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            network: Vec::new(),
            absent: Vec::new(),
            device: Vec::new(),
            port: vec![443],
            mode: Mode::Routed,
            direction: Repaired::Down,
            repair: Repair::Auto,
            protocols: Protocols::Quic,
            capture: Capture::Auto,
            cache_kib: 4096,
            max_flows: 1024,
            resend_percent: 10,
            resend_total_percent: 50,
            conceal: true,
            release_s: 30,
            control_percent: 5,
            benefit: None,
            queue: 5443,
            queues: 1,
            mark: 0x2000_0000,
            bypass_mark: 0x1000_0000,
            helped_mark: 0x4000_0000,
            firewall: Firewall::None,
            realtime_priority: 40,
            radio: Radio::Auto,
            log_level: LevelFilter::Info,
            control: CONTROL.into(),
            ubus: None,
            sidekick: Sidekick {
                enabled: false,
                port: 5103,
                interval: "adaptive".into(),
                threshold: 8,
            },
        }
    }
}

/// What there is to know of an option. Its default is that of [`Config`].
#[derive(Debug)]
pub struct Entry {
    /// The section of UCI that it is in; in the file an object, but for that of [`MAIN`].
    pub section: &'static str,
    /// Its name in there.
    pub name: &'static str,
    /// What it may be, and where its value is kept.
    pub kind: Kind,
    /// What a number of it counts, if that is not plain from its name.
    pub unit: &'static str,
    /// Whether a change takes effect only when the daemon starts anew.
    pub restart: bool,
    /// Whether `pemi run` has a flag for it.
    pub has_flag: bool,
    /// What it is for; of a switch, what it does when it is on.
    pub about: &'static str,
}

/// The section whose options are those of the file itself.
pub const MAIN: &str = "main";
/// All sections.
pub const SECTIONS: &[&str] = &[MAIN, SIDEKICK];
const SIDEKICK: &str = "sidekick";
/// The unit of marks, which are better read with hexadecimal digits.
const BITS: &str = "bits";

/// All options, in the order in which they are told.
pub static TABLE: &[Entry] = &[
    main("enabled", Service, "start the service"),
    main("run_as_root", Service, "start the service as root if there is no account pemi"),
    main("network", Names(|c| &mut c.network), "networks whose clients are helped"),
    main("absent", Names(|c| &mut c.absent), "those of the networks that have no device now"),
    main("device", Names(|c| &mut c.device), "interfaces towards the clients").flag(),
    main("devices", MoreNames(|c| &mut c.device), "those of the networks"),
    main("port", Ports(|c| &mut c.port), "UDP ports of the servers").flag(),
    main(
        "mode",
        Choice(|c| &mut c.mode),
        "whether the router forwards, or bridges clients and WAN",
    )
    .restart(),
    main("direction", Choice(|c| &mut c.direction), "losses repaired, to the clients or both ways")
        .flag(),
    main("repair", Choice(|c| &mut c.repair), "what tells of losses").restart().flag(),
    main("protocols", Choice(|c| &mut c.protocols), "repair QUIC, or TCP and all UDP as well")
        .restart()
        .flag(),
    main("capture", Choice(|c| &mut c.capture), "how packets to clients are seen").flag(),
    main(
        "cache_kib",
        Number(64..=1_048_576, |c| U32(&mut c.cache_kib)),
        "memory for packet copies, over all queues",
    )
    .unit("KiB")
    .flag(),
    main(
        "max_flows",
        Number(16..=65_536, |c| U32(&mut c.max_flows)),
        "flows known at a time, over all queues",
    )
    .flag(),
    main(
        "resend_percent",
        Number(0..=100, |c| U32(&mut c.resend_percent)),
        "largest share of a flow sent again beside 48 and repairs",
    )
    .unit("%")
    .flag(),
    main(
        "resend_total_percent",
        Number(0..=100, |c| U32(&mut c.resend_total_percent)),
        "largest share of copies of all flows together in the traffic of a second",
    )
    .unit("%"),
    main("conceal", Switch(|c| &mut c.conceal), "hold replies that tell of a loss under repair")
        .flag(),
    main(
        "release_s",
        Number(0..=86_400, |c| U32(&mut c.release_s)),
        "let go so long after a repair or counted loss; 0: never",
    )
    .unit("s")
    .flag(),
    main(
        "control_percent",
        Number(0..=50, |c| U32(&mut c.control_percent)),
        "share of the flows left alone, for comparison",
    )
    .unit("%")
    .flag(),
    main(
        "benefit",
        PathOrNone(|c| &mut c.benefit),
        "file in which that comparison is kept over restarts",
    )
    .restart()
    .flag(),
    main("queue", Number(0..=65_535, |c| U16(&mut c.queue)), "number of the first packet queue")
        .restart()
        .flag(),
    main("queues", Number(1..=8, |c| U16(&mut c.queues)), "packet queues, a thread each")
        .restart()
        .flag(),
    main(
        "mark",
        Number(1..=u32::MAX, |c| U32(&mut c.mark)),
        "packet mark of what the daemon sends",
    )
    .unit(BITS)
    .restart(),
    main(
        "bypass_mark",
        Number(1..=u32::MAX, |c| U32(&mut c.bypass_mark)),
        "packet mark of flows that are let go",
    )
    .unit(BITS),
    main(
        "helped_mark",
        Number(1..=u32::MAX, |c| U32(&mut c.helped_mark)),
        "connection mark of flows that are helped",
    )
    .unit(BITS),
    main(
        "firewall",
        Choice(|c| &mut c.firewall),
        "who sets the firewall rules: somebody else, or the daemon; nobody: no flow is helped",
    )
    .restart(),
    main(
        "realtime_priority",
        Number(0..=98, |c| U8(&mut c.realtime_priority)),
        "SCHED_FIFO priority of the packet path; 0: none",
    )
    .restart(),
    main(
        "radio",
        Choice(|c| &mut c.radio),
        "ask access points what they lose: while helping, always, or never",
    ),
    main("log_level", Choice(|c| &mut c.log_level), "what is logged").flag(),
    main("control", Path(|c| &mut c.control), "control socket").restart().flag(),
    main("ubus", PathOrNone(|c| &mut c.ubus), "ubusd's socket, to publish the object pemi")
        .restart()
        .flag(),
    sidekick("enabled", Switch(|c| &mut c.sidekick.enabled), "answer cooperating senders"),
    sidekick(
        "port",
        Number(1..=65_535, |c| U16(&mut c.sidekick.port)),
        "UDP port that senders talk to",
    ),
    sidekick("interval", Interval(|c| &mut c.sidekick.interval), "when to send a quACK"),
    sidekick(
        "threshold",
        Number(1..=64, |c| U32(&mut c.sidekick.threshold)),
        "missing packets that one quACK can name",
    ),
];

const fn main(name: &'static str, kind: Kind, about: &'static str) -> Entry {
    Entry { section: MAIN, name, kind, unit: "", restart: false, has_flag: false, about }
}

const fn sidekick(name: &'static str, kind: Kind, about: &'static str) -> Entry {
    Entry { section: SIDEKICK, ..main(name, kind, about) }
}

impl Entry {
    const fn unit(self, unit: &'static str) -> Entry {
        Entry { unit, ..self }
    }

    const fn restart(self) -> Entry {
        Entry { restart: true, ..self }
    }

    const fn flag(self) -> Entry {
        Entry { has_flag: true, ..self }
    }

    /// Its name in messages: with that of its section, but for [`MAIN`].
    pub fn full_name(&self) -> String {
        match self.section {
            MAIN => self.name.into(),
            section => format!("{section}.{}", self.name),
        }
    }

    /// Its flag without the dashes, if it has one. That of a switch turns it off, since what is
    /// off by default has none.
    pub fn flag_name(&self) -> Option<String> {
        let no = if matches!(self.kind, Switch(_)) { "no-" } else { "" };
        self.has_flag.then(|| format!("{no}{}", self.full_name().replace('_', "-")))
    }
}
