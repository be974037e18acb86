// SPDX-License-Identifier: GPL-2.0-or-later
//! What goes in and what comes out.

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};

use crate::time::{MS, Nanos, SEC, Time};
use crate::tunables::Tunables;

/// Where a packet is going.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the server to the client, over the lossy hop.
    Down,
    /// From the client to the server; mostly acknowledgements.
    Up,
}

/// The caller's name for a packet that is waiting for its verdict; for
/// NFQUEUE the packet id. The engine hands it back and never looks into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle(pub u32);

/// The engine's name for a packet of which the caller's way out tells what became. The caller
/// hands it back with [`Engine::on_report`](crate::Engine::on_report), and never looks into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(pub u32);

/// What became of a packet on the hop, as the access point reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The client has acknowledged it.
    Arrived,
    /// The client has not, after all attempts.
    Lost,
}

/// What an access point has counted of the packets to a client between two looks at its station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Radio {
    /// The look before.
    pub from: Time,
    /// This one.
    pub to: Time,
    /// Packets that left the radio, also those that were lost.
    pub sent: u32,
    /// Packets lost after all attempts.
    pub lost: u32,
    /// What `lost` is good for.
    pub lost_is: Count,
    /// Packets in the client's own queue at the end.
    pub queued: u32,
    /// Packets that this queue dropped.
    pub queue_drops: u32,
}

/// What a number of losses is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// So many were lost.
    Exact,
    /// Not more than this.
    AtMost,
    /// Nobody knows.
    Nothing,
}

/// What became of a client's station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Station {
    /// It is with an access point of this router.
    Joined,
    /// It is no longer with one, or never was.
    Gone,
    /// It is with another access point than before, or with the same one anew: what was under
    /// way may be lost without having been counted.
    Moved,
}

/// What tells of losses on the way to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Knowledge {
    /// The client's replies alone.
    Replies,
    /// They, and the access point's counters.
    Counts,
    /// The access point, packet by packet.
    Reports,
}

impl Knowledge {
    /// The name used on ubus and in LuCI.
    pub fn name(self) -> &'static str {
        match self {
            Knowledge::Replies => "replies",
            Knowledge::Counts => "counts",
            Knowledge::Reports => "reports",
        }
    }
}

/// What to do with the packet just shown to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let it go on now.
    Forward,
    /// Keep it until [`Action::Release`] or [`Action::Send`] names its handle.
    Hold,
    /// Let it go on now, and need not show the engine this flow again: it is
    /// not QUIC, or its hop has been clean for [`Config::release_after`]. A
    /// caller that cannot bypass may treat it as [`Verdict::Forward`].
    Bypass,
}

/// Something the caller has to do. Actions are to be drained with
/// [`Engine::next_action`](crate::Engine::next_action) after every other call,
/// and in order. The verdict of the call comes first: the packet it was given for
/// goes ahead of every copy and every held packet that the same call releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Let a held packet go on. Order matters: wire order is the order of
    /// these actions.
    Release(Handle),
    /// Send a copy of an earlier packet, a whole IP packet as it was shown.
    Inject {
        /// Where it goes: down to the client, or, with
        /// [`Config::both_directions`], up to the server.
        direction: Direction,
        /// The bytes, borrowed from the engine's cache.
        packet: &'a [u8],
    },
    /// Send a packet to its client; only with [`Config::reports`].
    Send {
        /// Report what becomes of it under this name; none: nobody wants to know.
        ticket: Option<Ticket>,
        /// The bytes, borrowed from the engine's cache.
        packet: &'a [u8],
        /// It is sent in the place of this held one, which is not to go on as well. If it
        /// cannot be sent, the held one is to go on instead, and
        /// [`Engine::on_unsent`](crate::Engine::on_unsent) to be called.
        original: Option<Handle>,
    },
    /// Measure the round trip to this client with an echo request and report
    /// it with [`Engine::on_probe_reply`](crate::Engine::on_probe_reply).
    Probe {
        /// The client's address.
        client: IpAddr,
    },
    /// Have the access point of this client asked more often, for the next two seconds, and tell
    /// with [`Engine::on_radio`](crate::Engine::on_radio) what it has counted; only with
    /// [`Config::counts`].
    Watch {
        /// The client's address.
        client: IpAddr,
    },
    /// Something worth a log line; only if [`Config::events`].
    Event(Event),
}

/// What the engine noticed, for logs, time lines and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it was noticed.
    pub at: Time,
    /// The client's end of the flow.
    pub client: SocketAddr,
    /// The server's end of the flow.
    pub server: SocketAddr,
    /// Which way the packets went that this is about: losses, copies and numbers
    /// are of packets going this way, held ones go the other.
    pub direction: Direction,
    /// What was noticed.
    pub kind: EventKind,
}

impl Event {
    /// What the event of a mirrored engine really means. That a flow begins and
    /// ends is told by the other one, unless there is something to add.
    pub(crate) fn mirrored(self) -> Option<Event> {
        let told = match self.kind {
            EventKind::FlowStart => true,
            EventKind::FlowEnd { inferred, resent, .. } => inferred == 0 && resent == 0,
            _ => false,
        };
        let (client, server) = (self.server, self.client);
        (!told).then_some(Event { client, server, direction: Direction::Up, ..self })
    }
}

/// The kinds of [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A QUIC flow was recognised, and both ends have spoken.
    FlowStart,
    /// A flow that was told of left the table. With [`Config::both_directions`] there is a second
    /// one for the way up if anything was done there.
    FlowEnd {
        /// Packets seen on their way down; in the second one, up.
        packets_down: u64,
        /// Losses inferred.
        inferred: u64,
        /// Losses that were seen to be repaired.
        repaired: u64,
        /// Copies sent.
        resent: u64,
    },
    /// A reply revealed a loss.
    Loss {
        /// Number of the packet believed lost, counted per flow from 1.
        packet: u64,
    },
    /// A copy was sent.
    Resend {
        /// Number of the packet, counted per flow from 1.
        packet: u64,
    },
    /// A reply showed the gap closed, when the reply to a copy was due.
    Repair {
        /// From the reply that revealed the loss to this one.
        after_ns: Nanos,
    },
    /// A loss was abandoned: it was not on this hop, or it is beyond repair.
    Abandon,
    /// Client packets are being held from now on.
    HoldStart,
    /// Held client packets were let go.
    HoldEnd {
        /// How many were released.
        packets: u32,
        /// For how long the first one waited.
        held_ns: Nanos,
    },
}

/// Settings. [`Config::default`] is what the product ships with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of packet copies kept, shared by all flows.
    pub cache_bytes: usize,
    /// Flows known at a time of which both ends have spoken. In a full table a client
    /// that has more than a quarter of it makes room, or else the flow that was not
    /// used for the longest time, if that is more than a second.
    pub max_flows: usize,
    /// Largest share of a flow's downstream packets sent again, in percent, not
    /// counting one copy for each loss that was seen to be repaired.
    pub resend_percent: u32,
    /// Largest share of copies of all flows together, in percent of the bytes that went
    /// the same way in the last second, beside 128 KiB a second.
    pub resend_total_percent: u32,
    /// Whether replies that would tell the sender of a repaired loss are held.
    pub conceal: bool,
    /// Let a flow go ([`Verdict::Bypass`]) after this long without a loss.
    pub release_after: Option<Nanos>,
    /// Forget a flow after this long without a packet.
    pub idle_timeout: Nanos,
    /// Longest time a client packet is ever held.
    pub hold_cap: Nanos,
    /// Whether [`Action::Event`] is wanted.
    pub events: bool,
    /// Whether the caller can hold packets to clients, so that some may change places. Not
    /// together with [`Config::both_directions`].
    pub reorders: bool,
    /// Whether the caller can tell what becomes of packets that it sends to clients itself
    /// ([`Action::Send`]). What is reported lost is then sent again, and nothing is inferred of
    /// clients of which reports come. Not together with [`Config::both_directions`].
    pub reports: bool,
    /// Whose losses are repaired.
    pub protocols: Protocols,
    /// Whether that is done only for clients whose access point counts each loss as well.
    pub reports_counted: bool,
    /// Whether the caller can tell what access points count ([`Action::Watch`]).
    pub counts: bool,
    /// Whether losses beyond the router, from the clients to the servers, are
    /// repaired as well. Heeded by [`Engines`](crate::Engines) only; what the two
    /// of them do with the other settings is told there.
    pub both_directions: bool,
    /// Share of the flows that are left alone, in percent, so that those that are helped can be
    /// compared with them ([`Engine::outcomes`](crate::Engine::outcomes)). Chance decides when one begins,
    /// but none of the first `100 / control_percent - 1` is left alone.
    pub control_percent: u32,
    /// Rules that are switched off.
    #[cfg(feature = "ablation")]
    pub without: crate::rules::Rules,
    /// The constants of the rules.
    #[cfg(feature = "sweep")]
    pub tunables: Tunables,
}

/// Whose losses are repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocols {
    /// Those of QUIC, whichever port it uses.
    Quic,
    /// Those of TCP and of everything over UDP as well, but only where they are reported
    /// ([`Config::reports`]).
    All {
        /// Ports of servers whose UDP may be QUIC also if its first packet did not show that.
        quic: Vec<u16>,
    },
}

impl Config {
    /// The ports of QUIC, if other flows are repaired as well.
    pub(crate) fn others(&self) -> Option<&[u16]> {
        match &self.protocols {
            Protocols::All { quic } if self.reports => Some(quic),
            Protocols::All { .. } | Protocols::Quic => None,
        }
    }

    /// The constants of the rules, which a sweep may have changed.
    #[cfg(feature = "sweep")]
    pub(crate) fn tunables(&self) -> Tunables {
        self.tunables
    }

    /// The constants of the rules.
    #[cfg(not(feature = "sweep"))]
    pub(crate) const fn tunables(&self) -> Tunables {
        Tunables::DEFAULT
    }

    /// Whether a rule is on.
    #[cfg(feature = "ablation")]
    pub(crate) fn has(&self, rule: crate::rules::Rule) -> bool {
        !self.without.has(rule)
    }

    /// Whether a rule is on: all are.
    #[cfg(not(feature = "ablation"))]
    pub(crate) const fn has(&self, _: crate::rules::Rule) -> bool {
        true
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            cache_bytes: 4096 * 1024,
            max_flows: 1024,
            resend_percent: 10,
            resend_total_percent: 50,
            conceal: true,
            release_after: Some(30 * SEC),
            idle_timeout: 60 * SEC,
            hold_cap: 100 * MS,
            events: false,
            reorders: true,
            reports: false,
            protocols: Protocols::Quic,
            reports_counted: false,
            counts: false,
            both_directions: false,
            control_percent: 0,
            #[cfg(feature = "ablation")]
            without: Default::default(),
            #[cfg(feature = "sweep")]
            tunables: Tunables::default(),
        }
    }
}

/// One flow, for people to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowInfo {
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
    /// Since the first packet, nanoseconds.
    pub age: Nanos,
    /// IP bytes towards the client.
    pub bytes_down: u64,
    /// Packets towards the client.
    pub packets_down: u64,
    /// Local round-trip time in nanoseconds; 0 if unknown.
    pub local_rtt: Nanos,
    /// Losses inferred.
    pub inferred: u64,
    /// Losses seen to be repaired.
    pub repaired: u64,
    /// Copies sent.
    pub resent: u64,
    /// What it speaks, as far as that was seen.
    pub protocol: Protocol,
    /// What the engine makes of it.
    pub state: FlowState,
    /// What tells of its losses.
    pub knowledge: Knowledge,
}

/// What a flow speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// QUIC, versions 1 and 2.
    Quic,
    /// TCP.
    Tcp,
    /// Something else over UDP, or nobody has seen yet what.
    Udp,
}

impl Protocol {
    /// The name used on ubus, and which people know.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Quic => "QUIC",
            Protocol::Tcp => "TCP",
            Protocol::Udp => "UDP",
        }
    }
}

/// What came of the first download of a flow, be it helped or left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The client's network, by the caller's number; [`GONE`](crate::GONE) if it is not there any more.
    pub network: u8,
    /// Whether it was helped; else chance had it left alone.
    pub helped: bool,
    /// What tells of losses on the way to the client.
    pub knowledge: Knowledge,
    /// IP bytes towards the client.
    pub bytes: u64,
    /// How long that took, without the time in which nothing was asked for.
    pub busy: Nanos,
    /// How often it stood still for 200 ms.
    pub stalls: u32,
}

/// What the engine makes of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowState {
    /// Not yet known to be QUIC.
    Unknown,
    /// The QUIC handshake is going on.
    Handshake,
    /// Watched and repaired.
    Protected,
    /// Watched only, for the moment: recent attempts did not repair anything.
    Watching,
    /// Left alone, to be compared with those that are helped.
    Alone,
    /// Not QUIC, or let go.
    Bypassed,
}

impl FlowState {
    /// The name used in logs, on ubus and in LuCI.
    pub fn name(self) -> &'static str {
        match self {
            FlowState::Unknown => "unknown",
            FlowState::Handshake => "handshake",
            FlowState::Protected => "protected",
            FlowState::Watching => "watching",
            FlowState::Alone => "alone",
            FlowState::Bypassed => "bypassed",
        }
    }
}
