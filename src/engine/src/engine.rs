//! The engine: tables of flows and clients around the rules for one flow.

mod mirror;

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};
use core::net::{IpAddr, SocketAddr};

use crate::api::{Action, Config, Direction, FlowInfo, FlowState, Handle, Stats, Verdict};
use crate::cache::Cache;
use crate::flow::{Context, Flow};
use crate::hop::Hop;
use crate::out::{Out, Queued};
use crate::packet::{self, Parsed, Udp};
use crate::quic;
use crate::table::Table;
use crate::time::{Nanos, Time};
use crate::timers::Timers;

/// Clients remembered although none of their flows is in the table.
const SPARE_HOPS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FlowKey {
    client: SocketAddr,
    server: SocketAddr,
}

// What derive would give feeds the hasher in a dozen small pieces, and this is
// done for every packet.
impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for end in [self.client, self.server] {
            match end.ip() {
                IpAddr::V4(ip) => {
                    state.write_u64(u64::from(ip.to_bits()) << 16 | u64::from(end.port()))
                }
                IpAddr::V6(ip) => {
                    state.write_u128(ip.to_bits());
                    state.write_u16(end.port());
                }
            }
        }
    }
}

/// Watches flows and says what to do; see the [crate documentation](crate).
///
/// Memory: the cache ([`Config::cache_bytes`]) plus about 3 KiB a flow, of at
/// most [`Config::max_flows`]. Nothing is allocated per packet.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    flows: Table<FlowKey, Flow>,
    hops: Table<IpAddr, Hop>,
    timers: Timers,
    cache: Cache,
    out: Out,
    stats: Stats,
    /// Clients and servers have changed places: see [`Engines`](crate::Engines).
    mirrored: bool,
    upload: bool,
}

impl Engine {
    /// An engine. `seed` makes the hash of the tables unpredictable to
    /// strangers; it has no influence on what the engine does.
    pub fn new(config: Config, seed: u64) -> Engine {
        Engine {
            flows: Table::new(seed),
            hops: Table::new(seed.rotate_left(32)),
            timers: Timers::default(),
            cache: Cache::new(config.cache_bytes),
            out: Out::new(config.events),
            stats: Stats::default(),
            config,
            mirrored: false,
            upload: false,
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
        let up = (direction == Direction::Up) != self.mirrored;
        self.count(direction, packet);
        self.upload = false;
        self.expire(now);
        let udp = match packet::parse(packet) {
            Parsed::Udp(udp) => udp,
            Parsed::Other => {
                self.stats.packets_other += 1;
                return Verdict::Forward;
            }
            Parsed::Malformed => {
                self.stats.packets_other += 1;
                self.stats.packets_malformed += 1;
                return Verdict::Forward;
            }
        };
        let slot = self.flow_slot(now, up, &udp);
        let seen = quic::inspect(udp.payload);
        let shown = self.with_flow(now, slot, |flow, cx| {
            let verdict = flow.on_packet(cx, up, packet, udp.payload, seen, handle);
            (verdict, flow.is_upload())
        });
        let (verdict, upload) = shown.unwrap_or((Verdict::Forward, false));
        self.upload = upload;
        verdict
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
            config: &self.config,
            cache: &mut self.cache,
            hop: self.hops.get_mut(flow.hop_slot)?,
            out: &mut self.out,
            stats: &mut self.stats,
        };
        let result = act(flow, &mut cx);
        self.timers.set(slot, flow.deadline());
        Some(result)
    }

    /// The flow's place in the table; makes room and adds it if it is new.
    fn flow_slot(&mut self, now: Time, up: bool, udp: &Udp<'_>) -> u32 {
        let source = SocketAddr::new(udp.source, udp.source_port);
        let destination = SocketAddr::new(udp.destination, udp.destination_port);
        let (client, server) = if up { (source, destination) } else { (destination, source) };
        let key = FlowKey { client, server };
        if let Some(slot) = self.flows.find(&key) {
            self.flows.touch(slot);
            return slot;
        }
        while self.flows.len() >= self.config.max_flows.max(1) {
            let Some(oldest) = self.flows.oldest() else { break };
            self.remove_flow(now, oldest);
            self.stats.flows_evicted += 1;
        }
        let hop_slot = self.hop_slot(now, client.ip());
        let hop = self.hops.get_mut(hop_slot).map(|hop| {
            hop.flows += 1;
            hop.state(now)
        });
        let state = hop.unwrap_or(crate::hop::HopState::New);
        let mut flow = Flow::new(now, client, server, hop_slot, state);
        if self.mirrored {
            flow.mirror(now);
        }
        self.flows.insert(key, flow)
    }

    fn hop_slot(&mut self, now: Time, client: IpAddr) -> u32 {
        if let Some(slot) = self.hops.find(&client) {
            self.hops.touch(slot);
            return slot;
        }
        if self.hops.len() >= self.config.max_flows.saturating_add(SPARE_HOPS) {
            // There are more clients than flows, so one of them has none.
            let mut oldest = self.hops.oldest();
            while let Some(slot) = oldest {
                if self.hops.get(slot).is_none_or(|hop| hop.flows == 0) {
                    self.hops.remove(slot);
                    break;
                }
                oldest = self.hops.newer(slot);
            }
        }
        self.hops.insert(client, Hop::new(now))
    }

    fn remove_flow(&mut self, now: Time, slot: u32) {
        self.with_flow(now, slot, |flow, cx| flow.end(cx));
        self.timers.set(slot, None);
        if let Some(flow) = self.flows.remove(slot)
            && let Some(hop) = self.hops.get_mut(flow.hop_slot)
        {
            hop.flows = hop.flows.saturating_sub(1);
        }
    }

    /// Forgets flows that have been idle for too long.
    fn expire(&mut self, now: Time) {
        while let Some(oldest) = self.flows.oldest() {
            let idle = self.flows.get(oldest).map_or(0, |flow| now.since(flow.last_seen));
            if idle < self.config.idle_timeout {
                break;
            }
            self.remove_flow(now, oldest);
        }
    }

    /// When [`Engine::on_timeout`] is due, if at all.
    pub fn next_timeout(&self) -> Option<Time> {
        let expiry = self
            .flows
            .oldest()
            .and_then(|slot| self.flows.get(slot))
            .map(|flow| flow.last_seen + self.config.idle_timeout);
        [self.timers.first().map(|(at, _)| at), expiry].into_iter().flatten().min()
    }

    /// Does everything that is due at `now`.
    pub fn on_timeout(&mut self, now: Time) {
        // Each round moves one flow's deadline on; the bound only guards
        // against a flow that would not.
        for _ in 0..8 * self.flows.len() {
            match self.timers.first() {
                Some((at, slot)) if at <= now => {
                    self.with_flow(now, slot, |flow, cx| flow.on_timeout(cx));
                }
                _ => break,
            }
        }
        self.expire(now);
    }

    /// The answer to [`Action::Probe`]: the round trip in nanoseconds.
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
                // Servers are strangers: nobody pings them.
                Queued::Probe(_) if self.mirrored => {}
                Queued::Probe(client) => return Some(Action::Probe { client }),
                Queued::Event(event) if self.mirrored => {
                    if let Some(event) = event.mirrored() {
                        return Some(Action::Event(event));
                    }
                }
                Queued::Event(event) => return Some(Action::Event(event)),
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
        while self.flows.len() > self.config.max_flows.max(1) {
            let Some(oldest) = self.flows.oldest() else { break };
            self.remove_flow(now, oldest);
            self.stats.flows_evicted += 1;
        }
    }

    /// Counters, and gauges as of now.
    pub fn stats(&self, now: Time) -> Stats {
        let mut stats = self.stats;
        let mut rtts: Vec<Nanos> = Vec::new();
        for (_, flow) in self.flows.iter() {
            match flow.state(now) {
                FlowState::Unknown => {}
                FlowState::Bypassed => stats.flows_bypassed += 1,
                FlowState::Handshake => stats.flows_active += 1,
                FlowState::Protected | FlowState::Watching => {
                    stats.flows_active += 1;
                    stats.flows_protected += 1;
                    rtts.extend(Some(flow.local_rtt()).filter(|rtt| *rtt > 0));
                }
            }
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

    /// All flows in the table, in no particular order.
    pub fn flows(&self, now: Time) -> impl Iterator<Item = FlowInfo> + '_ {
        self.flows.iter().map(move |(_, flow)| flow.info(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::tests::v4;
    use crate::quic::V1;
    use crate::quic::tests::long;
    use crate::time::SEC;

    /// The second in which a flow that never loses anything is let go.
    fn let_go_at(release_after: Option<Nanos>) -> Option<i64> {
        let mut engine = Engine::new(Config { release_after, ..Config::default() }, 1);
        let initial = v4(&long(V1, 0, 1200));
        let short = v4(&[0x40; 40]);
        (0..100).find(|second| {
            let packet = if *second == 0 { &initial } else { &short };
            let now = Time::ZERO + second * SEC;
            let verdict = engine.on_packet(now, Direction::Up, packet, Handle(1));
            while engine.next_action().is_some() {}
            let bypassed = engine.stats(now).flows_bypassed == 1;
            assert_eq!(verdict == Verdict::Bypass, bypassed);
            bypassed
        })
    }

    #[test]
    fn a_clean_flow_is_let_go() {
        assert_eq!(let_go_at(Some(30 * SEC)), Some(31));
        assert_eq!(let_go_at(Some(5 * SEC)), Some(6));
        assert_eq!(let_go_at(None), None);
    }
}
