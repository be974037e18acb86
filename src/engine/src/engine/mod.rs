// SPDX-License-Identifier: GPL-2.0-or-later
//! The engine: tables of flows and clients around the rules for one flow.

pub(crate) mod both;
pub(crate) mod compare;
mod mirror;
mod other;
mod reported;
mod room;

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, SocketAddr};

use crate::api::{Action, Config, Direction, FlowInfo, FlowState, Handle, Verdict};
use crate::flow::Flow;
use crate::flow::context::Context;
use crate::flow::out::{Out, Queued};
use crate::measure::hop::Hop;
use crate::repair::ceiling::Ceiling;
use crate::stats::Stats;
use crate::store::cache::Cache;
use crate::store::table::{Standing, Table};
use crate::store::tickets::Tickets;
use crate::store::timers::Timers;
use crate::time::{MS, Nanos, Time};
use crate::wire::packet::{self, Parsed};
use crate::wire::quic;

/// Clients remembered although none of their flows is in the table (chosen: more than a home
/// has).
const SPARE_HOPS: usize = 64;
/// New flows have places of their own: one for this many of [`Config::max_flows`], within these
/// bounds (chosen: new flows are few unless somebody floods the table, and push out nobody but each
/// other).
const NEW_PART: usize = 4;
const NEW_FLOWS: core::ops::RangeInclusive<usize> = 16..=256;
/// Rounds of [`Engine::on_timeout`] for each flow at most (chosen: a flow has four deadlines, each
/// of which may move once).
const ROUNDS: usize = 8;
/// No packet is taken to have waited longer to be shown (chosen: ten times as long as callers let
/// packets gather; what is longer has other causes, such as clocks that are set).
const MOST_WAIT: Nanos = 8 * MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FlowKey {
    receiver: SocketAddr,
    sender: SocketAddr,
    /// Over TCP, not UDP.
    tcp: bool,
}

// What derive would give feeds the hasher in a dozen small pieces, and this is
// done for every packet.
impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for end in [self.receiver, self.sender] {
            let port = u32::from(self.tcp) << 16 | u32::from(end.port());
            match end.ip() {
                IpAddr::V4(ip) => state.write_u64(u64::from(ip.to_bits()) << 32 | u64::from(port)),
                IpAddr::V6(ip) => {
                    state.write_u128(ip.to_bits());
                    state.write_u32(port);
                }
            }
        }
    }
}

/// Watches flows and says what to do; see the [crate documentation](crate).
///
/// Memory: the cache ([`Config::cache_bytes`]) plus about 3 KiB a flow, of at
/// most [`Config::max_flows`] and a quarter as many new ones beside them,
/// of which one end has not spoken yet. Nothing is allocated per packet.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    flows: Table<FlowKey, Flow>,
    hops: Table<IpAddr, Hop>,
    timers: Timers,
    cache: Cache,
    ceiling: Ceiling,
    tickets: Tickets,
    out: Out,
    stats: Stats,
    /// Stands in for the hop of a flow that has no lasting place yet.
    nowhere: Hop,
    /// The clients send the data that is repaired, and the servers receive it: see
    /// [`Engines`](crate::Engines).
    mirrored: bool,
    upload: bool,
    /// That of the packet in hand, by the caller's number.
    network: u8,
    /// Flows that have begun.
    begun: u32,
    /// For how long the packet in hand has waited.
    waited: Nanos,
    /// When packets passed unseen last, as far as that was told.
    missed: Option<Time>,
    /// Networks of which no flow is helped, a bit for each.
    standing_back: u8,
    /// No flow has been idle for too long before this, so that not every packet has to look.
    expires: Time,
}

impl Engine {
    /// An engine. `seed` makes the hash of the tables unpredictable to
    /// anybody else; it has no influence on what the engine does.
    pub fn new(config: Config, seed: u64) -> Engine {
        Engine {
            flows: Table::new(seed),
            hops: Table::new(seed.rotate_left(32)),
            timers: Timers::default(),
            cache: Cache::new(config.cache_bytes),
            ceiling: Ceiling::new(config.tunables()),
            tickets: Tickets::new(),
            out: Out::new(config.events),
            stats: Stats::default(),
            nowhere: Hop::new(Time::ZERO, config.tunables()),
            config,
            mirrored: false,
            upload: false,
            network: 0,
            begun: 0,
            waited: 0,
            missed: None,
            standing_back: 0,
            expires: Time::ZERO,
        }
    }

    /// Shows one IP packet; any bytes will do. The verdict is about this
    /// packet; what else is to be done follows from [`Engine::next_action`].
    pub fn on_packet(
        &mut self,
        now: Time,
        direction: Direction,
        packet: &[u8],
        handle: Handle,
    ) -> Verdict {
        self.on_parsed(now, direction, packet, &packet::parse(packet), handle)
    }

    /// The same for a caller that has read the packet's headers by [`packet::parse`].
    pub fn on_parsed(
        &mut self,
        now: Time,
        direction: Direction,
        packet: &[u8],
        parsed: &Parsed,
        handle: Handle,
    ) -> Verdict {
        let reply = (direction == Direction::Up) != self.mirrored;
        let came = now - core::mem::take(&mut self.waited);
        self.count(direction, packet);
        self.upload = false;
        self.expire(now);
        self.give_up_reports(now);
        let udp = match parsed {
            Parsed::Udp(udp) => udp,
            Parsed::Tcp(tcp) if self.config.others().is_some() => {
                return self.on_segment(now, reply, packet, tcp, handle);
            }
            Parsed::Tcp(_) | Parsed::Other => {
                self.stats.packets_other += 1;
                return Verdict::Forward;
            }
            Parsed::Malformed => {
                self.stats.packets_other += 1;
                self.stats.packets_malformed += 1;
                return Verdict::Forward;
            }
        };
        let slot = self.flow_slot(now, reply, udp.ends(), false, packet.len());
        let payload = udp.payload(packet);
        let seen = quic::inspect(payload);
        let shown = self.with_flow(now, slot, |flow, cx| {
            cx.passes(reply);
            cx.came = came;
            let verdict = flow.on_packet(cx, reply, packet, payload, seen, handle);
            (verdict, flow.is_upload())
        });
        let (verdict, upload) = shown.unwrap_or((Verdict::Forward, false));
        self.upload = upload;
        verdict
    }

    /// The next packet that is shown has come so long ago, because the caller reads several at a
    /// time. Replies are judged by when they came.
    pub fn waited(&mut self, waited: Nanos) {
        self.waited = waited.clamp(0, MOST_WAIT);
    }

    /// Packets have passed that were not shown, before the next one that is. Replies to them look
    /// like signs of losses, so for as long as they can be on their way none is believed.
    pub fn on_gap(&mut self, now: Time) {
        self.missed = Some(now);
    }

    fn count(&mut self, direction: Direction, packet: &[u8]) {
        let (packets, bytes) = match direction {
            Direction::Down => (&mut self.stats.packets_down, &mut self.stats.bytes_down),
            Direction::Up => (&mut self.stats.packets_up, &mut self.stats.bytes_up),
        };
        *packets += 1;
        *bytes += packet.len() as u64;
    }

    /// Runs `act` on a flow with everything it needs, and sets its timer.
    fn with_flow<R>(
        &mut self,
        now: Time,
        slot: u32,
        act: impl FnOnce(&mut Flow, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let flow = self.flows.get_mut(slot)?;
        let mut cx = Context {
            now,
            came: now,
            config: &self.config,
            cache: &mut self.cache,
            ceiling: &mut self.ceiling,
            hop: match flow.hop_slot {
                Some(hop) => self.hops.get_mut(hop)?,
                None => &mut self.nowhere,
            },
            out: &mut self.out,
            stats: &mut self.stats,
            tickets: &mut self.tickets,
            slot,
            missed: self.missed,
        };
        let result = act(flow, &mut cx);
        self.timers.set(slot, flow.deadline());
        Some(result)
    }

    /// The flow's place in the table; adds it if it is new, and gives it a lasting
    /// place when both ends have spoken. The packet in hand counts.
    fn flow_slot(
        &mut self,
        now: Time,
        reply: bool,
        (source, destination): (SocketAddr, SocketAddr),
        tcp: bool,
        bytes: usize,
    ) -> u32 {
        let (receiver, sender) = if reply { (source, destination) } else { (destination, source) };
        let key = FlowKey { receiver, sender, tcp };
        let found = self.flows.find(&key);
        let slot = match self.unless_taken_up(now, found) {
            Some(slot) => {
                self.flows.touch(slot);
                slot
            }
            None => {
                self.crowd_out(now, Standing::Passing, self.new_flows().saturating_sub(1));
                let flow = self.new_flow(now, receiver, sender, tcp);
                self.flows.insert(key, flow)
            }
        };
        if self.flows.get_mut(slot).is_some_and(|flow| flow.heard(reply, bytes)) {
            self.establish(now, slot, receiver.ip());
        }
        slot
    }

    /// Flows that may be in the table of which one end has not spoken.
    fn new_flows(&self) -> usize {
        (self.config.max_flows / NEW_PART).clamp(*NEW_FLOWS.start(), *NEW_FLOWS.end())
    }

    /// Gives a flow of `receiver` whose ends have both spoken a lasting place. Where
    /// there is none it stays what it is, and the next packet asks again.
    fn establish(&mut self, now: Time, slot: u32, receiver: IpAddr) {
        if !self.make_room(now, receiver) {
            return;
        }
        let hop_slot = self.hop_slot(now, receiver);
        let Some(hop) = self.hops.get_mut(hop_slot) else { return };
        hop.flows += 1;
        let state = hop.state(now);
        self.hops.set_standing(hop_slot, Standing::Settled);
        self.flows.set_standing(slot, Standing::Settled);
        if let Some(flow) = self.flows.get_mut(slot) {
            flow.establish(hop_slot, state, self.config.tunables());
        }
    }

    fn hop_slot(&mut self, now: Time, receiver: IpAddr) -> u32 {
        if let Some(slot) = self.hops.find(&receiver) {
            self.hops.touch(slot);
            return slot;
        }
        // Clients with flows are settled, so there are no more of them than flows.
        while self.hops.len(Standing::Passing) > SPARE_HOPS {
            let Some(oldest) = self.hops.oldest(Standing::Passing) else { break };
            self.hops.remove(oldest);
        }
        self.hops.insert(receiver, Hop::new(now, self.config.tunables()))
    }

    fn remove_flow(&mut self, now: Time, slot: u32) {
        self.with_flow(now, slot, |flow, cx| flow.end(cx));
        self.timers.set(slot, None);
        let Some(hop_slot) = self.flows.remove(slot).and_then(|flow| flow.hop_slot) else {
            return;
        };
        let Some(hop) = self.hops.get_mut(hop_slot) else { return };
        hop.flows = hop.flows.saturating_sub(1);
        if hop.flows == 0 {
            self.hops.set_standing(hop_slot, Standing::Passing);
        }
    }

    /// Forgets flows that have been idle for too long.
    fn expire(&mut self, now: Time) {
        if now < self.expires {
            return;
        }
        for standing in [Standing::Passing, Standing::Settled] {
            while let Some(oldest) = self.flows.oldest(standing) {
                let idle = self.flows.get(oldest).map_or(0, |flow| now.since(flow.last_seen));
                if idle < self.config.idle_timeout {
                    break;
                }
                self.remove_flow(now, oldest);
            }
        }
        // What begins or is heard of later expires later.
        self.expires = self.next_expiry().unwrap_or(now + self.config.idle_timeout);
    }

    /// When the next flow will have been idle for too long if nothing more comes.
    fn next_expiry(&self) -> Option<Time> {
        let expiry = |standing| {
            let oldest = self.flows.oldest(standing).and_then(|slot| self.flows.get(slot))?;
            Some(oldest.last_seen + self.config.idle_timeout)
        };
        expiry(Standing::Passing).into_iter().chain(expiry(Standing::Settled)).min()
    }

    /// When [`Engine::on_timeout`] is due, if at all.
    pub fn next_timeout(&self) -> Option<Time> {
        let timer = self.timers.first().map(|(at, _)| at);
        timer.into_iter().chain(self.next_expiry()).min()
    }

    /// Does everything that is due at `now`.
    pub fn on_timeout(&mut self, now: Time) {
        self.give_up_reports(now);
        // Each round moves one flow's deadline on; the bound only guards
        // against a flow that would not.
        for _ in 0..ROUNDS * (self.flows.len(Standing::Passing) + self.flows.len(Standing::Settled))
        {
            match self.timers.first() {
                Some((at, slot)) if at <= now => {
                    self.with_flow(now, slot, |flow, cx| flow.on_timeout(cx));
                }
                _ => break,
            }
        }
        self.expire(now);
    }

    /// The reply to [`Action::Probe`] has come: the round trip in nanoseconds.
    pub fn on_probe_reply(&mut self, now: Time, client: IpAddr, rtt: Nanos) {
        if let Some(hop) = self.hops.find(&client).and_then(|slot| self.hops.get_mut(slot)) {
            hop.probed(now, rtt);
        }
    }

    /// The next thing to do.
    pub fn next_action(&mut self) -> Option<Action<'_>> {
        loop {
            match self.out.pop()? {
                Queued::Release(handle) => return Some(Action::Release(handle)),
                // Servers are not ours: nobody probes them.
                Queued::Probe(_) if self.mirrored => {}
                Queued::Probe(client) => return Some(Action::Probe { client }),
                Queued::Watch(client) => return Some(Action::Watch { client }),
                Queued::Event(event) if self.mirrored => {
                    if let Some(event) = event.mirrored() {
                        return Some(Action::Event(event));
                    }
                }
                Queued::Event(event) => return Some(Action::Event(event)),
                Queued::Send { id, ticket, original } => {
                    if self.cache.record(id).is_some() {
                        let packet = self.cache.packet(id).unwrap_or_default();
                        return Some(Action::Send { ticket, packet, original });
                    }
                    if let Some(original) = original {
                        return Some(Action::Release(original));
                    }
                }
                Queued::Inject(id) => {
                    if self.cache.record(id).is_some() {
                        let packet = self.cache.packet(id).unwrap_or_default();
                        let direction = if self.mirrored { Direction::Up } else { Direction::Down };
                        return Some(Action::Inject { direction, packet });
                    }
                }
            }
        }
    }

    /// Releases everything held, for an orderly stop.
    pub fn release_all(&mut self, now: Time) {
        let slots: Vec<u32> = self.flows.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            self.with_flow(now, slot, |flow, cx| flow.release_all(cx));
        }
    }

    /// Takes new settings and keeps the flows. A new cache size empties the
    /// cache: what was lost in the last moments cannot be repaired then.
    pub fn set_config(&mut self, now: Time, config: Config) {
        if config.cache_bytes != self.config.cache_bytes {
            self.release_all(now);
            self.cache = self.cache.resized(config.cache_bytes);
        }
        self.out.want_events(config.events);
        self.config = config;
        self.expires = Time::ZERO;
        self.crowd_out(now, Standing::Passing, self.new_flows());
        self.crowd_out(now, Standing::Settled, self.config.max_flows.max(1));
    }

    /// Counters, and gauges as of now.
    pub fn stats(&self, now: Time) -> Stats {
        let mut stats = self.stats;
        let mut rtts: Vec<Nanos> = Vec::new();
        for flow in self.established() {
            match flow.state(now) {
                FlowState::Unknown => {}
                FlowState::Bypassed => stats.flows_bypassed += 1,
                FlowState::Handshake | FlowState::Alone => stats.flows_active += 1,
                FlowState::Protected | FlowState::Watching => {
                    stats.flows_active += 1;
                    stats.flows_protected += 1;
                    rtts.extend(Some(flow.local_rtt()).filter(|rtt| *rtt > 0));
                }
            }
        }
        for (_, hop) in self.hops.iter() {
            stats.clients_reported += u64::from(hop.reports.proven() == Some(true));
            stats.clients_unreported += u64::from(hop.reports.proven() == Some(false));
        }
        rtts.sort_unstable();
        let quantile = |percent: usize| {
            let at = (rtts.len() * percent / 100).min(rtts.len().wrapping_sub(1));
            rtts.get(at).map_or(0, |rtt| (*rtt / 1000) as u64)
        };
        (stats.local_rtt_us_p50, stats.local_rtt_us_p99) = (quantile(50), quantile(99));
        stats.cache_bytes = self.cache.used() as u64;
        stats.cache_limit = self.cache.limit() as u64;
        stats
    }

    /// Sets the counters back to zero; flows stay.
    pub fn reset(&mut self) {
        self.stats = Stats { held_now: self.stats.held_now, ..Stats::default() };
    }

    fn established(&self) -> impl Iterator<Item = &Flow> + '_ {
        self.flows.iter().map(|(_, flow)| flow).filter(|flow| flow.hop_slot.is_some())
    }

    /// All flows of which both ends have spoken, in no particular order.
    pub fn flows(&self, now: Time) -> impl Iterator<Item = FlowInfo> + '_ {
        self.established().map(move |flow| self.info(now, flow))
    }

    fn info(&self, now: Time, flow: &Flow) -> FlowInfo {
        let hop = flow.hop_slot.and_then(|slot| self.hops.get(slot)).unwrap_or(&self.nowhere);
        flow.info(now, hop)
    }
}

#[cfg(test)]
mod tests;
