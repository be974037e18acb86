// SPDX-License-Identifier: GPL-2.0-or-later
//! One flow: puts the rules together. What a rule decides is in a module of its own; this
//! folder asks the rules in order and does what they say.

mod answers;
mod closed;
pub(crate) mod compared;
pub(crate) mod context;
mod data;
mod habit;
mod info;
mod mirror;
mod missed;
mod naming;
mod other;
pub(crate) mod out;
mod pairs;
mod read;
mod repair;
mod reported;
mod tail;
mod told;
mod validation;
mod window;

use alloc::boxed::Box;
use core::net::SocketAddr;

use crate::api::{Config, EventKind, Handle, Protocol, Verdict};
use crate::flow::compared::Compared;
use crate::flow::context::Context;
use crate::flow::data::Bytes;
use crate::flow::out::Queued;
use crate::flow::validation::Validation;
use crate::infer::rhythm::Rhythm;
use crate::infer::sizes::Sizes;
use crate::infer::stall::Stall;
use crate::measure::cumulative::Cumulative;
use crate::measure::guard::Guard;
use crate::measure::hop::HopState;
use crate::measure::pace::Pace;
use crate::measure::rtt::LocalRtt;
use crate::measure::sender::Sender;
use crate::measure::train::Train;
use crate::measure::uplink::Uplink;
use crate::repair::budget::Budget;
use crate::repair::conceal::{Conceal, is_own_data};
use crate::repair::exact::Exact;
use crate::repair::gaps::Gaps;
use crate::repair::governor::Governor;
use crate::repair::missed::Missed;
use crate::repair::naming::Naming;
use crate::repair::pairs::Pairs;
use crate::repair::start::Start;
use crate::repair::tail::Tail;
use crate::rules::Rule;
use crate::store::cache::Trail;
use crate::time::{Nanos, Time};
use crate::tunables::Tunables;
use crate::wire::quic::Datagram;
use crate::wire::recognise::{Judgement, Recogniser};

#[derive(Clone, Debug)]
enum Phase {
    Unknown(Recogniser),
    Quic,
    /// Anything else that is repaired; of TCP, what its acknowledgements say.
    Other(Option<Cumulative>),
    Bypassed,
}

/// Bytes a flow may have: `max_flows` is reckoned with them where a router's memory is small.
#[cfg(not(feature = "ablation"))]
const MOST_BYTES: usize = 3584;
#[cfg(not(feature = "ablation"))]
const _: () = assert!(size_of::<Flow>() <= MOST_BYTES);

#[derive(Clone, Debug)]
pub(crate) struct Flow {
    /// Who gets the data that is repaired, and who sends it: client and server, or the
    /// other way round in the mirrored engine.
    receiver: SocketAddr,
    sender: SocketAddr,
    /// Where what is known of the receiver stands; none until both ends have spoken and
    /// the flow has a lasting place.
    pub hop_slot: Option<u32>,
    validation: Validation,
    /// An event has told of its beginning, so another one will tell of its end.
    told: bool,
    pub created: Time,
    pub last_seen: Time,
    /// When the sender and the receiver last sent anything, and the receiver an
    /// acknowledgement.
    last_data: Option<Time>,
    last_heard: Option<Time>,
    last_reply: Option<Time>,
    /// The same without what was something else.
    acknowledged: Option<Time>,
    /// ... and without those that a copy may have caused, of which nothing tells what they cover.
    certain: Time,
    /// From the receiver's last packet before the sender's first to that one:
    /// the round trip beyond the router, which no later one is shorter than.
    beyond: Option<Nanos>,
    /// The last repair, or the beginning: what [`Config::release_after`]
    /// counts from.
    last_repair: Time,
    /// A gap has closed when the reply to a copy was due, which may have been chance.
    hinted: bool,
    /// What the sender has sent.
    packets: u64,
    bytes: u64,
    inferred: u64,
    repaired: u64,
    resent: u64,
    protocol: Protocol,
    phase: Phase,
    trail: Trail,
    start: Start,
    pace: Pace,
    heeds: Sender,
    rtt: LocalRtt,
    train: Train,
    rhythm: Rhythm,
    sizes: Sizes,
    /// Gaps that were noticed although the reply was as long as those before, less the others.
    hidden: i8,
    /// Another flow of this client had replies of one size, and losses showed while its packets changed
    /// places.
    paired_before: bool,
    stall: Stall,
    gaps: Gaps,
    naming: Naming,
    missed: Missed,
    exact: Exact,
    /// The client has moved, and has not spoken since. What was sent before this had arrived.
    moved: Option<Time>,
    conceal: Conceal,
    governor: Governor,
    budget: Budget,
    guard: Guard,
    tail: Tail,
    compared: Compared,
    /// Only flows whose clients show losses in no other way have it.
    pairs: Option<Box<Pairs>>,
    /// Only flows of the mirrored engine have it.
    uplink: Option<Box<Uplink>>,
}

impl Flow {
    /// A flow whose first packet is in hand.
    pub fn new(
        now: Time,
        receiver: SocketAddr,
        sender: SocketAddr,
        mirrored: bool,
        tunables: Tunables,
    ) -> Flow {
        let start = match mirrored {
            true => Start::mirrored(tunables),
            false => Start::new(HopState::New, tunables),
        };
        Flow {
            receiver,
            sender,
            hop_slot: None,
            validation: Validation::new(mirrored),
            told: false,
            created: now,
            last_seen: now,
            last_data: None,
            last_heard: None,
            last_reply: None,
            acknowledged: None,
            certain: now,
            beyond: None,
            last_repair: now,
            hinted: false,
            packets: 0,
            bytes: 0,
            inferred: 0,
            repaired: 0,
            resent: 0,
            protocol: Protocol::Udp,
            phase: Phase::Unknown(Recogniser::default()),
            trail: Trail::default(),
            start,
            pace: Pace::new(),
            heeds: Sender::new(),
            rtt: LocalRtt::new(tunables),
            train: Train::default(),
            rhythm: Rhythm::new(tunables),
            sizes: Sizes::new(),
            hidden: 0,
            paired_before: false,
            stall: Stall::new(),
            gaps: Gaps::new(),
            naming: Naming::new(),
            missed: Missed::new(),
            exact: Exact::default(),
            moved: None,
            conceal: Conceal::new(tunables),
            governor: Governor::new(tunables),
            budget: Budget::new(HopState::New, tunables),
            guard: Guard::new(now, tunables),
            tail: Tail::new(),
            compared: Compared::new(0, false, false),
            pairs: None,
            uplink: mirrored.then(|| Box::new(Uplink::new(now, tunables))),
        }
    }

    /// Takes note of who sent the packet in hand, `reply` if the receiver did; true if both
    /// ends have spoken and the flow has no lasting place yet.
    pub fn heard(&mut self, reply: bool, bytes: usize) -> bool {
        self.validation.heard(reply, bytes);
        self.hop_slot.is_none() && self.validation.established()
    }

    /// Gives it a lasting place, and what is known of its receiver.
    pub fn establish(&mut self, hop_slot: u32, hop: HopState, tunables: Tunables) {
        self.hop_slot = Some(hop_slot);
        self.budget = Budget::new(hop, tunables);
        self.start.established(hop, self.validation.client_began());
    }

    pub fn receiver_address(&self) -> core::net::IpAddr {
        self.receiver.ip()
    }

    /// When [`Flow::on_timeout`] is due.
    pub fn deadline(&self) -> Option<Time> {
        [
            self.conceal.deadline(),
            self.gaps.deadline(),
            self.start.deadline(),
            self.tail.deadline(),
            self.pairs_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// One UDP datagram of the flow, `reply` if the receiver sent it; `packet` is the IP
    /// packet around it.
    pub fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        reply: bool,
        packet: &[u8],
        payload: &[u8],
        seen: Option<Datagram>,
        handle: Handle,
    ) -> Verdict {
        self.last_seen = cx.now;
        self.compare_packet(cx, reply, is_own_data(payload.len()), packet.len());
        self.recognise(cx.config, reply, payload, seen);
        match self.phase {
            Phase::Unknown(_) => {
                cx.stats.packets_other += 1;
                self.note(cx.now, reply, packet.len());
                return Verdict::Forward;
            }
            Phase::Bypassed => {
                cx.stats.packets_other += 1;
                return Verdict::Bypass;
            }
            Phase::Other(_) => return self.on_other(cx, reply, packet, None, handle),
            Phase::Quic => cx.stats.packets_quic += 1,
        }
        if self.is_left_alone() {
            return self.pass(cx, reply, packet);
        }
        self.tell_start(cx);
        if self.uplink.is_some() {
            return self.on_mirrored(cx, reply, packet, payload, seen, handle);
        }
        let greeting = self.validation.client_began() && !self.validation.established();
        if self.hop_slot.is_none() && !greeting {
            // A new flow, or one for which there was no room.
            self.note(cx.now, reply, packet.len());
            return Verdict::Forward;
        }
        if self.hop_slot.is_some() && cx.hop.wants_probe(cx.now, false, !reply) {
            cx.out.push(Queued::Probe(self.receiver.ip()));
        }
        let long = seen.is_none_or(|s| s.long);
        let verdict = if reply {
            self.on_reply(cx, payload.len(), long, handle)
        } else {
            match self.pair(cx, packet, long, handle) {
                Some(verdict) => verdict,
                None => self.goes(cx, &Bytes::New(packet), long, handle).1,
            }
        };
        if verdict == Verdict::Forward && self.exact.settled() && self.clean_for_long(cx) {
            self.let_go(cx);
            return Verdict::Bypass;
        }
        verdict
    }

    /// Makes up its mind whether the flow is QUIC.
    fn recognise(&mut self, config: &Config, reply: bool, payload: &[u8], seen: Option<Datagram>) {
        let Phase::Unknown(recogniser) = &mut self.phase else {
            return self.begins_quic(config.tunables(), reply, payload, seen);
        };
        match recogniser.look(reply != self.uplink.is_some(), payload, seen) {
            Judgement::Undecided => {}
            Judgement::NotQuic if config.others().is_some() => {
                self.becomes_other(false, config.tunables());
            }
            Judgement::NotQuic => self.phase = Phase::Bypassed,
            Judgement::Opening => self.becomes_quic(),
            Judgement::Midway => {
                self.start = Start::over(config.tunables());
                self.becomes_quic();
            }
        }
    }

    pub(super) fn becomes_quic(&mut self) {
        (self.protocol, self.phase) = (Protocol::Quic, Phase::Quic);
    }

    /// Whether the last repair is long enough ago for the flow to be let go.
    fn clean_for_long(&self, cx: &Context<'_>) -> bool {
        let clean_for = cx.now.since(self.last_repair);
        let long = cx.config.release_after.is_some_and(|after| clean_for > after);
        long && !self.conceal.active()
    }

    /// Lets the flow go: the hop is clean, and there is nothing left to do.
    fn let_go(&mut self, cx: &mut Context<'_>) {
        self.gaps.clear();
        self.end_pairs(cx);
        self.tail = Tail::new();
        self.start = Start::over(cx.config.tunables());
        self.phase = Phase::Bypassed;
        self.end_download(cx);
        self.end_event(cx);
    }

    fn note(&mut self, now: Time, reply: bool, len: usize) {
        if reply {
            self.last_heard = Some(now);
        } else {
            self.last_data = Some(now);
            self.packets += 1;
            self.bytes += len as u64;
        }
    }

    fn on_reply(
        &mut self,
        cx: &mut Context<'_>,
        size: usize,
        long: bool,
        handle: Handle,
    ) -> Verdict {
        let came = cx.came;
        let previous = self.last_heard.replace(came);
        if self.start.is_over() {
            self.look_for_stall(cx, previous);
            self.repair_move(cx);
        }
        if self.start.is_over() && is_own_data(size) && cx.config.has(Rule::OwnData) {
            return self.on_own_data(cx, handle);
        }
        self.rtt.burst_reply(came, self.rhythm.decimating());
        if !self.start.is_over() {
            self.rtt.handshake_reply(came);
            self.start.on_reply(came, long, self.rtt.get());
            if !self.is_reported(cx) {
                return Verdict::Forward;
            }
            if long {
                self.client_replied(cx);
                return Verdict::Forward;
            }
            let size = i32::try_from(size).unwrap_or(i32::MAX / 2);
            return self.conceal_reported(cx, size, handle);
        }
        if long {
            return Verdict::Forward;
        }
        self.heed_probes(cx);
        if !self.rtt.known() {
            self.rtt.handshake_reply(came);
            return Verdict::Forward;
        }
        if self.is_reported(cx) {
            return self.on_reported_reply(cx, size, handle);
        }
        if self.in_pairs() {
            return self.on_paired_reply(cx, size, handle);
        }
        self.on_acknowledgement(cx, size, handle)
    }

    /// A datagram with data of the receiver's own. Nothing about the hop can be read from
    /// it. A single one may be a probe of the path's MTU that tells of the gap like any
    /// reply; more are what a person says, and end the episode. None goes ahead of what
    /// is held: the receiver would take that for lost (RFC 9002, section 6.1.1).
    fn on_own_data(&mut self, cx: &mut Context<'_>, handle: Handle) -> Verdict {
        if self.conceal.held() == 0 || !self.hold(cx, handle) {
            return Verdict::Forward;
        }
        if !self.conceal.first_own_data() {
            self.release(cx, true);
        }
        Verdict::Hold
    }

    fn hold(&mut self, cx: &mut Context<'_>, handle: Handle) -> bool {
        let held = self.conceal.hold(cx.now, handle);
        cx.stats.concealed_held += u64::from(held);
        cx.stats.held_now += u64::from(held);
        held
    }

    /// Ends an episode of holding, if there is one.
    fn release(&mut self, cx: &mut Context<'_>, overtaken: bool) {
        if !self.conceal.active() {
            return;
        }
        // Without the rule the packet in hand still goes first, but the others
        // in their order: nothing that a caller could do about the first.
        let overtaken = overtaken || !cx.config.has(Rule::NewestFirst);
        let episode =
            self.conceal.release(cx.now, overtaken, |handle| cx.out.push(Queued::Release(handle)));
        cx.stats.held_now -= u64::from(episode.packets);
        self.event(cx, EventKind::HoldEnd { packets: episode.packets, held_ns: episode.held });
    }

    /// Does what is due.
    pub fn on_timeout(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        self.pairs_timeout(cx);
        self.retry(cx);
        if self.conceal.deadline().is_some_and(|at| at <= now) && !self.on_held_timeout(cx) {
            if !self.conceal.ending() {
                cx.stats.concealed_late += 1;
            }
            for gap in self.gaps.take_gaps() {
                self.abandon(cx, &gap);
            }
            self.gaps.clear();
            self.sizes.abandoned_all();
            self.release(cx, false);
        }
        if self.start.deadline().is_some_and(|at| at <= now) {
            let guessed = !self.is_reported(cx);
            for id in self.start.on_timeout(now).into_iter().filter(|_| guessed) {
                self.resend(cx, id);
            }
        }
        self.tail_timeout(cx);
    }

    /// Releases everything that is held.
    pub fn release_all(&mut self, cx: &mut Context<'_>) {
        self.gaps.clear();
        self.sizes.abandoned_all();
        self.release(cx, false);
        self.end_pairs(cx);
    }

    /// The flow leaves the table.
    pub fn end(&mut self, cx: &mut Context<'_>) {
        self.release_all(cx);
        self.end_download(cx);
        self.end_event(cx);
    }
}
