//! One flow: puts the rules together. Each rule lives in a module of its own;
//! what happens here is only their order.

mod mirror;
mod repair;

use alloc::boxed::Box;
use core::net::SocketAddr;

use crate::api::{
    Config, Direction, Event, EventKind, FlowInfo, FlowState, Handle, Stats, Verdict,
};
use crate::budget::Budget;
use crate::cache::{Cache, Trail};
use crate::conceal::Conceal;
use crate::gap::{Facts, Reading, SignKind, Sizes};
use crate::governor::Governor;
use crate::guard::Guard;
use crate::habit::{Beat, Habit, Reply};
use crate::hop::{Hop, HopState};
use crate::out::{Out, Queued};
use crate::quic::Datagram;
use crate::recognise::{Judgement, Recogniser};
use crate::refill::Refill;
use crate::rtt::LocalRtt;
use crate::rules::Rule;
use crate::start::Start;
use crate::tail::{Step, Tail};
use crate::time::{Nanos, Time, US};
use crate::uplink::Uplink;

/// Packets acknowledged beyond one that is missing before a sender takes it for
/// lost (RFC 9002, section 6.1.1).
const REORDERING_THRESHOLD: u64 = 3;

/// A client's datagram with this much payload carries data of its own: an
/// acknowledgement of 64 ranges, which is the most that common stacks report,
/// has less than 250 bytes.
const OWN_DATA: usize = 300;

/// What a flow works with that is not its own.
pub(crate) struct Context<'a> {
    pub now: Time,
    pub config: &'a Config,
    pub cache: &'a mut Cache,
    pub hop: &'a mut Hop,
    pub out: &'a mut Out,
    pub stats: &'a mut Stats,
}

#[derive(Clone, Debug)]
enum Phase {
    Unknown(Recogniser),
    Quic,
    Bypassed,
}

#[derive(Clone, Debug)]
pub(crate) struct Flow {
    client: SocketAddr,
    server: SocketAddr,
    pub hop_slot: u32,
    created: Time,
    pub last_seen: Time,
    last_down: Option<Time>,
    last_up: Option<Time>,
    last_reply: Option<Time>,
    /// From the client's last packet before the server's first to that one:
    /// the round trip beyond the router, which no later one is shorter than.
    beyond: Option<Nanos>,
    /// The last repair, or the beginning: what [`Config::release_after`]
    /// counts from.
    last_repair: Time,
    packets_down: u64,
    bytes_down: u64,
    inferred: u64,
    repaired: u64,
    resent: u64,
    phase: Phase,
    trail: Trail,
    start: Start,
    rtt: LocalRtt,
    habit: Habit,
    sizes: Sizes,
    refill: Refill,
    conceal: Conceal,
    governor: Governor,
    budget: Budget,
    guard: Guard,
    tail: Tail,
    /// In the mirrored engine only.
    uplink: Option<Box<Uplink>>,
}

impl Flow {
    pub fn new(
        now: Time,
        client: SocketAddr,
        server: SocketAddr,
        hop_slot: u32,
        hop: HopState,
    ) -> Flow {
        Flow {
            client,
            server,
            hop_slot,
            created: now,
            last_seen: now,
            last_down: None,
            last_up: None,
            last_reply: None,
            beyond: None,
            last_repair: now,
            packets_down: 0,
            bytes_down: 0,
            inferred: 0,
            repaired: 0,
            resent: 0,
            phase: Phase::Unknown(Recogniser::default()),
            trail: Trail::default(),
            start: Start::new(hop),
            rtt: LocalRtt::new(),
            habit: Habit::new(),
            sizes: Sizes::new(),
            refill: Refill::new(),
            conceal: Conceal::new(),
            governor: Governor::new(),
            budget: Budget::new(hop),
            guard: Guard::new(now),
            tail: Tail::new(),
            uplink: None,
        }
    }

    fn event(&self, cx: &mut Context<'_>, kind: EventKind) {
        let (client, server) = (self.client, self.server);
        let direction = Direction::Down;
        cx.out.event(|| Event { at: cx.now, client, server, direction, kind });
    }

    /// When [`Flow::on_timeout`] is due.
    pub fn deadline(&self) -> Option<Time> {
        [
            self.conceal.deadline(),
            self.refill.deadline(),
            self.start.deadline(),
            self.tail.deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// One UDP datagram of the flow; `packet` is the IP packet around it.
    pub fn on_packet(
        &mut self,
        cx: &mut Context<'_>,
        up: bool,
        packet: &[u8],
        payload: &[u8],
        seen: Option<Datagram>,
        handle: Handle,
    ) -> Verdict {
        self.last_seen = cx.now;
        if let Phase::Unknown(recogniser) = &mut self.phase {
            match recogniser.look(up != self.uplink.is_some(), payload, seen) {
                Judgement::Undecided => {}
                Judgement::NotQuic => self.phase = Phase::Bypassed,
                Judgement::Opening => self.recognised(cx),
                Judgement::Midway => {
                    self.start = Start::over();
                    self.recognised(cx);
                }
            }
        }
        match self.phase {
            Phase::Unknown(_) => {
                cx.stats.packets_other += 1;
                self.note(cx.now, up, packet);
                return Verdict::Forward;
            }
            Phase::Bypassed => {
                cx.stats.packets_other += 1;
                return Verdict::Bypass;
            }
            Phase::Quic => cx.stats.packets_quic += 1,
        }
        if self.uplink.is_some() {
            return self.on_mirrored(cx, up, packet, payload, seen, handle);
        }
        if cx.hop.wants_probe(cx.now, false) {
            cx.out.push(Queued::Probe(self.client.ip()));
        }
        let long = seen.is_none_or(|s| s.long);
        let verdict = if up {
            self.on_up(cx, payload.len(), long, handle)
        } else {
            self.on_down(cx, packet, long);
            Verdict::Forward
        };
        let clean_for = cx.now.since(self.last_repair);
        if cx.config.release_after.is_some_and(|after| clean_for > after)
            && verdict == Verdict::Forward
            && !self.conceal.active()
        {
            self.let_go(cx);
            return Verdict::Bypass;
        }
        verdict
    }

    fn recognised(&mut self, cx: &mut Context<'_>) {
        self.phase = Phase::Quic;
        self.event(cx, EventKind::FlowStart);
    }

    /// The hop is clean: nothing to do here any more.
    fn let_go(&mut self, cx: &mut Context<'_>) {
        self.refill.clear();
        self.tail = Tail::new();
        self.start = Start::over();
        self.phase = Phase::Bypassed;
        self.end_event(cx);
    }

    fn end_event(&self, cx: &mut Context<'_>) {
        let end = EventKind::FlowEnd {
            packets_down: self.packets_down,
            inferred: self.inferred,
            repaired: self.repaired,
            resent: self.resent,
        };
        self.event(cx, end);
    }

    fn note(&mut self, now: Time, up: bool, packet: &[u8]) {
        if up {
            self.last_up = Some(now);
        } else {
            self.last_down = Some(now);
            self.packets_down += 1;
            self.bytes_down += packet.len() as u64;
        }
    }

    fn on_down(&mut self, cx: &mut Context<'_>, packet: &[u8], long: bool) {
        let now = cx.now;
        if self.last_down.is_none() {
            self.beyond = self.last_up.map(|up| now.since(up));
        }
        self.rtt.sent(now, self.last_down, self.last_up);
        self.note(now, false, packet);
        self.budget.forwarded();
        self.guard.forwarded(now);
        cx.hop.forwarded();
        let Some(id) = self.trail.push(cx.cache, now, self.packets_down, packet) else {
            return;
        };
        if self.start.on_down(now, id, long, self.rtt.get()) && cx.config.has(Rule::FirstFlight) {
            self.copy(cx, id);
        }
        if self.start.is_over() && self.rtt.known() {
            self.tail.sent(now, &self.rtt);
        }
    }

    fn on_up(&mut self, cx: &mut Context<'_>, size: usize, long: bool, handle: Handle) -> Verdict {
        let now = cx.now;
        self.last_up = Some(now);
        if self.start.is_over() && size >= OWN_DATA && cx.config.has(Rule::OwnData) {
            // Nothing about the hop can be read from it. A single one may be a
            // probe of the path's MTU that tells of the hole like any reply; more
            // are what a person says, and end the episode. None goes ahead of what
            // is held: the client would take that for lost (RFC 9002, section 6.1.1).
            if self.conceal.held() == 0 || !self.hold(cx, handle) {
                return Verdict::Forward;
            }
            if !self.conceal.first_own_data() {
                self.release(cx, true);
            }
            return Verdict::Hold;
        }
        self.rtt.burst_reply(now, self.habit.decimating());
        if !self.start.is_over() {
            self.rtt.handshake_reply(now);
            self.start.on_up(now, long, self.rtt.get());
            return Verdict::Forward;
        }
        if long {
            return Verdict::Forward;
        }
        if let Some(ping) = cx.hop.ping(now).filter(|_| cx.config.has(Rule::Probe)) {
            self.rtt.bound(ping);
        }
        if !self.rtt.known() {
            self.rtt.handshake_reply(now);
            return Verdict::Forward;
        }
        let size = i32::try_from(size).unwrap_or(i32::MAX / 2);
        let previous = self.last_reply.replace(now);
        let (reading, beat) = self.read(cx, size, previous);
        match reading {
            Reading::NewGap(sign) => self.new_gap(cx, sign, beat, previous),
            Reading::OneHealed => self.one_healed(cx),
            Reading::Healed if !self.refill.gaps.is_empty() => {
                self.all_healed(cx);
                self.release(cx, true);
                return Verdict::Forward;
            }
            Reading::Upstream => {
                cx.stats.losses_upstream += 1;
                self.governor.upstream(now);
            }
            Reading::Healed | Reading::Noise | Reading::Plain => {
                if self.conceal.ending() && self.refill.gaps.is_empty() {
                    self.release(cx, true);
                    return Verdict::Forward;
                }
                if reading == Reading::Plain
                    && cx.config.has(Rule::Run)
                    && self.answers_copy(now, &beat)
                {
                    self.longer_run(cx);
                }
            }
        }
        if self.refill.gaps.is_empty() || !self.conceal.active() || self.harmless(&beat) {
            return Verdict::Forward;
        }
        if self.hold(cx, handle) {
            Verdict::Hold
        } else {
            self.release(cx, true);
            Verdict::Forward
        }
    }

    fn hold(&mut self, cx: &mut Context<'_>, handle: Handle) -> bool {
        let held = self.conceal.hold(handle);
        cx.stats.concealed_held += u64::from(held);
        cx.stats.held_now += u64::from(held);
        held
    }

    /// What a reply says, with everything that bears on it.
    fn read(&mut self, cx: &mut Context<'_>, size: i32, previous: Option<Time>) -> (Reading, Beat) {
        let now = cx.now;
        let answer = self.refill.nearest_answer(now, self.rtt.get(), self.habit.batch_wait());
        let answer_within = |span: Nanos| answer.is_some_and(|a| a <= span);
        let reply = Reply {
            now,
            excess: self.sizes.excess(size),
            fill: answer_within(300 * US + 2 * self.rtt.deviation()),
            sent: self.packets_down,
            since_last: previous.map(|p| now.since(p)),
        };
        let mut beat = self.habit.observe(&reply, &self.rtt, &mut self.trail, cx.cache);
        // A decimating client's replies wait for its count or its timer.
        let late = if self.habit.decimating() { 0 } else { beat.late };
        self.guard.replied(late, self.rtt.get());
        beat.skipped &= cx.config.has(Rule::Skip) && !self.governor.weak(now, SignKind::Skip);
        beat.early &= cx.config.has(Rule::Rhythm);
        beat.adjacent &= cx.config.has(Rule::Adjacent);
        self.tail.replied(now, beat.trigger, reply.fill, &self.rtt);
        let offset = self.trail.nearest(cx.cache, now - self.rtt.get()).map(|(_, offset)| offset);
        if let Some(offset) = offset
            && !(self.habit.decimating() && (!beat.fast || beat.timer))
        {
            self.rtt.track(-offset);
        }
        if self.governor.in_storm(now) && cx.config.has(Rule::Storm) {
            if self.sizes.excess(size) >= 2 {
                self.governor.storm_step(now);
            }
            self.sizes.rebase(size);
            return (Reading::Plain, beat);
        }
        let explained = 1000 * US + 3 * self.rtt.deviation();
        let tolerance = self.rtt.tolerance();
        let better_explained_by_packet = self.habit.decimating()
            && beat.fast
            && answer.is_none_or(|a| a >= beat.error.max(60 * US));
        let tried = self.refill.gaps.iter().all(|gap| gap.attempts >= 2)
            && self.refill.last_resend().is_none_or(|at| at + self.rtt.get() + tolerance < now);
        let facts = Facts {
            now,
            size,
            open: self.refill.gaps.len(),
            explained: offset.is_some_and(|o| o.abs() <= explained),
            refill_due: answer_within(tolerance) && !better_explained_by_packet,
            all_tried: tried,
            at_once: previous.is_some_and(|p| now.since(p) < 400 * US),
            counts_high: self.habit.counts_high(),
            beat,
        };
        let reading = self.sizes.read(&facts);
        if let Reading::NewGap(sign) = reading {
            let rule = match sign.kind {
                SignKind::Step | SignKind::LongStep => Rule::Size,
                SignKind::Floor => Rule::Floor,
                SignKind::Rhythm => Rule::Rhythm,
                SignKind::Skip => Rule::Skip,
            };
            if !cx.config.has(rule) {
                self.sizes.rebase(size);
                return (Reading::Plain, beat);
            }
            if cx.config.has(Rule::Guard) && self.guard.congested(now, cx.hop) {
                cx.stats.losses_congestion += 1;
                self.sizes.rebase(size);
                return (Reading::Plain, beat);
            }
            if cx.config.has(Rule::Hope) && self.governor.lets_pass() {
                cx.stats.losses_upstream += 1;
                self.sizes.rebase(size);
                return (Reading::Plain, beat);
            }
            if cx.config.has(Rule::Overflow) && self.overflowing() {
                self.overflow(cx, size);
                return (Reading::Plain, beat);
            }
            if self.refill.gaps.is_full() {
                return (Reading::Noise, beat);
            }
        }
        (reading, beat)
    }

    /// Whether the answer to a copy was due now and explains the reply better
    /// than that to any forwarded packet.
    fn answers_copy(&self, now: Time, beat: &Beat) -> bool {
        let answer = self.refill.nearest_answer(now, self.rtt.get(), 0);
        answer.is_some_and(|answer| {
            answer <= 150 * US + 2 * self.rtt.deviation()
                && answer < beat.error
                && (!beat.fast || self.rtt.sharp())
        })
    }

    /// Whether the sender cannot yet take a packet for lost from this reply: it
    /// acknowledges less than three packets beyond each hole (RFC 9002, section
    /// 6.1.1), and the holes should be filled before an eighth of a round trip
    /// has passed (section 6.1.2).
    fn harmless(&self, beat: &Beat) -> bool {
        let patience = self.beyond.map_or(0, |beyond| (beyond + self.rtt.get()) / 8);
        beat.certain
            && !self.budget.proven()
            && self.conceal.held() == 0
            && self
                .refill
                .gaps
                .iter()
                .all(|gap| beat.trigger < gap.hole + REORDERING_THRESHOLD && gap.span <= patience)
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
        self.retry(cx);
        if self.conceal.deadline().is_some_and(|at| at <= now) {
            if !self.conceal.ending() {
                cx.stats.concealed_late += 1;
            }
            for gap in core::mem::take(&mut self.refill.gaps) {
                self.give_up(cx, &gap);
            }
            self.refill.clear();
            self.sizes.gave_up_all();
            self.release(cx, false);
        }
        if self.start.deadline().is_some_and(|at| at <= now) {
            for id in self.start.on_timeout(now) {
                self.resend(cx, id);
            }
        }
        self.tail_timeout(cx);
    }

    fn tail_timeout(&mut self, cx: &mut Context<'_>) {
        let unanswered_needed = self.habit.usual_count().max(2);
        let Some(step) = self.tail.timeout(cx.now, self.packets_down, unanswered_needed, &self.rtt)
        else {
            return;
        };
        let Some(id) = self.trail.newest(cx.cache) else { return };
        let unwanted = self.habit.decimating() || self.guard.own_queue() || !self.trusted();
        if unwanted || !cx.config.has(Rule::Tail) {
            return;
        }
        let first = cx.cache.record(id).is_some_and(|r| r.copies == 0);
        match step {
            Step::Open if first && self.budget.speculative() => {
                self.copy(cx, id);
            }
            Step::Overdue if first && self.budget.tokens(self.rtt.sharp()) >= 1 => {
                self.resend(cx, id)
            }
            Step::Sure if self.budget.tokens(self.rtt.sharp()) >= 1 => self.resend(cx, id),
            Step::Open | Step::Overdue | Step::Sure => {}
        }
    }

    /// Lets everything go that is held.
    pub fn release_all(&mut self, cx: &mut Context<'_>) {
        self.refill.clear();
        self.sizes.gave_up_all();
        self.release(cx, false);
    }

    /// The flow leaves the table.
    pub fn end(&mut self, cx: &mut Context<'_>) {
        self.release_all(cx);
        if let Phase::Quic = self.phase {
            self.end_event(cx);
        }
    }

    pub fn state(&self, now: Time) -> FlowState {
        match self.phase {
            Phase::Unknown(_) => FlowState::Unknown,
            Phase::Bypassed => FlowState::Bypassed,
            Phase::Quic if !self.start.is_over() => FlowState::Handshake,
            Phase::Quic if !self.governor.armed(now) || self.governor.in_storm(now) => {
                FlowState::Watching
            }
            Phase::Quic => FlowState::Protected,
        }
    }

    pub fn local_rtt(&self) -> Nanos {
        self.rtt.get()
    }

    pub fn info(&self, now: Time) -> FlowInfo {
        FlowInfo {
            client: self.client,
            server: self.server,
            age: now.since(self.created),
            bytes_down: self.bytes_down,
            packets_down: self.packets_down,
            local_rtt: self.rtt.get(),
            inferred: self.inferred,
            repaired: self.repaired,
            resent: self.resent,
            state: self.state(now),
        }
    }
}
