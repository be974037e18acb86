// SPDX-License-Identifier: GPL-2.0-or-later
//! Both directions: an engine for what goes down to the clients, and, if it is
//! wanted, its mirror image for what goes up beyond the router.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::api::{
    Action, Config, Direction, Fate, FlowInfo, Handle, Outcome, Radio, Station, Ticket, Verdict,
};
use crate::engine::Engine;
use crate::engine::compare::NETWORKS;
use crate::stats::Stats;
use crate::time::{Nanos, Time};
use crate::wire::packet::{Parsed, parse};

/// The mirror's share of the cache, one in so many (chosen: it looks at uploads only, which are
/// rare).
const CACHE_SHARE: usize = 4;
/// The mirror may hold for this many times [`Config::hold_cap`] (chosen: the path beyond the router
/// is longer than the hop before it, and so is the time that a repair takes).
const HOLD_FACTOR: Nanos = 3;

/// One engine, or two that look at the same packets from both sides; the
/// interface is that of [`Engine`].
///
/// With [`Config::both_directions`] a second, mirrored engine repairs what is
/// lost between router and server on the way up. For it the client's packets are
/// the data and the server's the replies. It acts on uploads only, and only where
/// the spin bit tells the round trip to the server, and never holds a packet that
/// may carry data for the client. Each packet is shown to both; only that one may
/// hold it for which it is a reply.
///
/// The mirror takes a quarter of [`Config::cache_bytes`], may know as many flows,
/// and holds for up to three times [`Config::hold_cap`]. Counters are of both
/// together, but each packet is counted once.
#[derive(Debug)]
pub struct Engines {
    down: Engine,
    up: Option<Box<Engine>>,
    /// The mirror is not wanted any more and goes when its actions were fetched.
    up_ends: bool,
    seed: u64,
}

fn without_mirror(config: &Config) -> Config {
    let mut config = config.clone();
    if config.both_directions {
        config.cache_bytes -= config.cache_bytes / CACHE_SHARE;
        // What the mirror holds goes another way than what is sent in its place.
        config.reports = false;
        config.reorders = false;
    }
    config
}

fn mirrored(config: &Config) -> Config {
    Config {
        cache_bytes: config.cache_bytes / CACHE_SHARE,
        hold_cap: config.hold_cap.saturating_mul(HOLD_FACTOR),
        reports: false,
        reorders: false,
        counts: false,
        ..config.clone()
    }
}

impl Engines {
    /// As many engines as the configuration wants; `seed` as for [`Engine::new`].
    pub fn new(config: Config, seed: u64) -> Engines {
        let up = config.both_directions.then(|| Box::new(Engine::mirror(mirrored(&config), seed)));
        Engines { down: Engine::new(without_mirror(&config), seed), up, up_ends: false, seed }
    }

    /// See [`Engine::on_packet`].
    pub fn on_packet(
        &mut self,
        now: Time,
        direction: Direction,
        packet: &[u8],
        handle: Handle,
    ) -> Verdict {
        self.on_parsed(now, direction, packet, &parse(packet), handle)
    }

    /// See [`Engine::on_parsed`].
    pub fn on_parsed(
        &mut self,
        now: Time,
        direction: Direction,
        packet: &[u8],
        parsed: &Parsed,
        handle: Handle,
    ) -> Verdict {
        self.end_mirror();
        let down = &mut self.down;
        let Some(up) = self.up.as_mut().filter(|_| !self.up_ends) else {
            return down.on_parsed(now, direction, packet, parsed, handle);
        };
        let verdict = up.on_parsed(now, direction, packet, parsed, handle);
        if up.saw_upload() || verdict == Verdict::Hold {
            // The other one would take the user's data for strange replies, and send
            // copies of what is held here.
            down.pass_by(now, direction, packet);
            return verdict;
        }
        match down.on_parsed(now, direction, packet, parsed, handle) {
            Verdict::Bypass if verdict != Verdict::Bypass => Verdict::Forward,
            verdict => verdict,
        }
    }

    /// See [`Engine::waited`].
    pub fn waited(&mut self, waited: Nanos) {
        self.down.waited(waited);
        if let Some(up) = &mut self.up {
            up.waited(waited);
        }
    }

    /// See [`Engine::on_gap`].
    pub fn on_gap(&mut self, now: Time) {
        self.down.on_gap(now);
        if let Some(up) = &mut self.up {
            up.on_gap(now);
        }
    }

    /// See [`Engine::from_network`].
    pub fn from_network(&mut self, network: u8) {
        self.down.from_network(network);
        if let Some(up) = &mut self.up {
            up.from_network(network);
        }
    }

    /// See [`Engine::renumber`].
    pub fn renumber(&mut self, numbers: &[u8; NETWORKS as usize]) {
        self.down.renumber(numbers);
        if let Some(up) = &mut self.up {
            up.renumber(numbers);
        }
    }

    /// See [`Engine::stand_back`].
    pub fn stand_back(&mut self, now: Time, networks: u8) {
        self.down.stand_back(now, networks);
        if let Some(up) = &mut self.up {
            up.stand_back(now, networks);
        }
    }

    /// See [`Engine::outcomes`]. The mirror would tell the same flows again.
    pub fn outcomes(&mut self, now: Time) -> Vec<Outcome> {
        self.down.outcomes(now)
    }

    /// See [`Engine::next_timeout`].
    pub fn next_timeout(&self) -> Option<Time> {
        let up = self.up.as_ref().and_then(|up| up.next_timeout());
        self.down.next_timeout().into_iter().chain(up).min()
    }

    /// See [`Engine::on_timeout`].
    pub fn on_timeout(&mut self, now: Time) {
        self.end_mirror();
        self.down.on_timeout(now);
        if let Some(up) = &mut self.up {
            up.on_timeout(now);
        }
    }

    /// See [`Engine::on_probe_reply`].
    pub fn on_probe_reply(&mut self, now: Time, client: IpAddr, rtt: Nanos) {
        self.down.on_probe_reply(now, client, rtt);
    }

    /// See [`Engine::on_report`].
    pub fn on_report(&mut self, now: Time, ticket: Ticket, fate: Fate) {
        self.down.on_report(now, ticket, fate);
    }

    /// See [`Engine::on_radio`].
    pub fn on_radio(&mut self, client: IpAddr, radio: Radio) {
        self.down.on_radio(client, radio);
    }

    /// See [`Engine::on_station`].
    pub fn on_station(&mut self, now: Time, client: IpAddr, station: Station) {
        self.down.on_station(now, client, station);
    }

    /// See [`Engine::on_unsent`].
    pub fn on_unsent(&mut self, now: Time, ticket: Ticket) {
        self.down.on_unsent(now, ticket);
    }

    /// See [`Engine::next_action`].
    pub fn next_action(&mut self) -> Option<Action<'_>> {
        if let Some(action) = self.down.next_action() {
            return Some(action);
        }
        self.up.as_mut()?.next_action()
    }

    /// See [`Engine::release_all`].
    pub fn release_all(&mut self, now: Time) {
        self.down.release_all(now);
        if let Some(up) = &mut self.up {
            up.release_all(now);
        }
    }

    /// See [`Engine::set_config`]. Whether both directions are looked after may
    /// change, too.
    pub fn set_config(&mut self, now: Time, config: Config) {
        self.end_mirror();
        match &mut self.up {
            Some(up) if config.both_directions => {
                up.set_config(now, mirrored(&config));
                self.up_ends = false;
            }
            Some(up) => {
                up.release_all(now);
                self.up_ends = true;
            }
            None if config.both_directions => {
                self.up = Some(Box::new(Engine::mirror(mirrored(&config), self.seed)));
            }
            None => {}
        }
        self.down.set_config(now, without_mirror(&config));
    }

    /// A mirror that is not wanted any more goes, once nothing is left to fetch.
    fn end_mirror(&mut self) {
        if self.up_ends && self.up.as_ref().is_some_and(|up| up.is_drained()) {
            self.up = None;
            self.up_ends = false;
        }
    }

    /// See [`Engine::stats`]. Packets, bytes, flows and round trips are what the
    /// engine for the way down has counted; what was done is the sum.
    pub fn stats(&self, now: Time) -> Stats {
        let mut stats = self.down.stats(now);
        if let Some(up) = &self.up {
            stats.add_mirrored(&up.stats(now));
        }
        stats
    }

    /// See [`Engine::reset`].
    pub fn reset(&mut self) {
        self.down.reset();
        if let Some(up) = &mut self.up {
            up.reset();
        }
    }

    /// See [`Engine::flows`]. Losses and copies are those of both directions.
    pub fn flows(&self, now: Time) -> impl Iterator<Item = FlowInfo> + '_ {
        self.down.flows(now).map(move |mut flow| {
            let up = self.up.as_ref().and_then(|up| up.flow(now, flow.client, flow.server));
            if let Some(up) = up {
                flow.inferred += up.inferred;
                flow.repaired += up.repaired;
                flow.resent += up.resent;
            }
            flow
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{MS, SEC};
    use crate::wire::packet::tests::v4;
    use crate::wire::quic::V1;
    use crate::wire::quic::tests::long;

    /// The copies of a client's first datagram that a silent server gets.
    fn greeted_again(both_directions: bool) -> usize {
        let config = Config { both_directions, ..Config::default() };
        let mut engines = Engines::new(config, 1);
        let initial = v4(&long(V1, 0, 1200));
        let mut now = Time::ZERO + SEC;
        engines.on_packet(now, Direction::Up, &initial, Handle(1));
        let mut copies = 0;
        loop {
            while let Some(action) = engines.next_action() {
                if let Action::Inject { direction, packet } = action {
                    assert_eq!((direction, packet), (Direction::Up, &initial[..]));
                    copies += 1;
                }
            }
            match engines.next_timeout() {
                Some(at) if at < Time::ZERO + 10 * SEC => now = at,
                _ => return copies,
            }
            assert!(now >= Time::ZERO + SEC + 200 * MS, "too early for a server far away");
            engines.on_timeout(now);
        }
    }

    #[test]
    fn a_silent_server_gets_one_copy() {
        assert_eq!(greeted_again(true), 1);
        assert_eq!(greeted_again(false), 0);
    }

    #[test]
    fn the_cache_is_shared_out() {
        let config = Config { both_directions: true, ..Config::default() };
        let limit = |engines: &Engines| engines.stats(Time::ZERO).cache_limit;
        let one = Engines::new(Config::default(), 1);
        let mut two = Engines::new(config, 1);
        assert_eq!(limit(&two), limit(&one));
        two.set_config(Time::ZERO, Config::default());
        two.on_timeout(Time::ZERO);
        assert!(two.up.is_none(), "nothing is left of it");
        assert_eq!(limit(&two), limit(&one));
    }
}
