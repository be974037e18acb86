// SPDX-License-Identifier: GPL-2.0-or-later
//! What was done for each client: from looks at the flows, which come and go.

use std::net::IpAddr;

use pemi_engine::{FlowInfo, FlowState, Knowledge};

/// The last minute in steps of five seconds, as that of the radio's losses.
const STEP_S: u64 = 5;
const STEPS: usize = 12;
/// So many clients are remembered, as many as stations are. More, and who has no flow makes room.
const MOST: usize = pemi_radio::stations::MOST;

/// What was done for a client, or for several addresses of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Help {
    /// Flows that are helped now.
    pub flows: u32,
    /// What tells of their losses, the best of them.
    pub knowledge: Option<Knowledge>,
    /// Losses repaired since the start, or since a reset.
    pub repaired: u64,
    /// Copies sent since then.
    pub copies: u64,
    /// Losses repaired in the last 55 to 60 seconds.
    pub repaired_minute: u32,
}

/// Sums over the flows of a client that are there.
#[derive(Clone, Copy, Debug, Default)]
struct Flows {
    packets: u64,
    repaired: u64,
    copies: u64,
}

#[derive(Clone, Debug)]
struct Client {
    address: IpAddr,
    help: Help,
    minute: [u32; STEPS],
    /// At the last look, and at this one.
    before: Flows,
    now: Flows,
}

/// All clients.
#[derive(Debug, Default)]
pub struct Helped {
    step: u64,
    clients: Vec<Client>,
}

impl Helped {
    /// Takes the flows at a second since the start. Gives the clients of those that are helped
    /// and to which packets have come since the look before.
    pub fn look(&mut self, second: u64, flows: &[FlowInfo]) -> Vec<IpAddr> {
        self.advance(second / STEP_S);
        for client in &mut self.clients {
            (client.help.flows, client.help.knowledge) = (0, None);
            client.before = std::mem::take(&mut client.now);
        }
        for flow in flows {
            let Some(client) = self.client(flow.client.ip()) else { continue };
            if flow.state == FlowState::Protected {
                client.help.flows += 1;
                client.help.knowledge = client.help.knowledge.max(Some(flow.knowledge));
            }
            client.now.packets += flow.packets_down;
            client.now.repaired += flow.repaired;
            client.now.copies += flow.resent;
        }
        let step = self.step as usize % STEPS;
        let mut busy = Vec::new();
        for client in &mut self.clients {
            let (before, now) = (client.before, client.now);
            // Less than before: a flow has ended, and what it had was counted.
            let repaired = now.repaired.saturating_sub(before.repaired);
            client.help.repaired += repaired;
            client.help.copies += now.copies.saturating_sub(before.copies);
            client.minute[step] += repaired as u32;
            if client.help.flows > 0 && now.packets > before.packets {
                busy.push(client.address);
            }
        }
        busy
    }

    /// Whether no packet of this client came between the last two looks.
    pub fn is_silent(&self, client: IpAddr) -> bool {
        let mut its = self.clients.iter().filter(|it| it.address == client);
        // Fewer than before: a flow has ended, and others may go on.
        its.all(|client| client.now.packets == client.before.packets)
    }

    /// What was done for a client with these addresses.
    pub fn of(&self, addresses: &[IpAddr]) -> Help {
        let its = self.clients.iter().filter(|client| addresses.contains(&client.address));
        its.fold(Help::default(), |sum, client| Help {
            flows: sum.flows + client.help.flows,
            knowledge: sum.knowledge.max(client.help.knowledge),
            repaired: sum.repaired + client.help.repaired,
            copies: sum.copies + client.help.copies,
            repaired_minute: sum.repaired_minute + client.minute.iter().sum::<u32>(),
        })
    }

    /// Clients with flows that are helped now.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.clients.iter().filter(|client| client.help.flows > 0).map(|client| client.address)
    }

    /// Counts anew. What flows have had by now stays known, so that it is not counted again.
    pub fn reset(&mut self) {
        for client in &mut self.clients {
            let Help { flows, knowledge, .. } = client.help;
            client.help = Help { flows, knowledge, ..Help::default() };
            client.minute = [0; STEPS];
        }
    }

    fn client(&mut self, address: IpAddr) -> Option<&mut Client> {
        if let Some(at) = self.clients.iter().position(|client| client.address == address) {
            return self.clients.get_mut(at);
        }
        if self.clients.len() >= MOST {
            let idle = self.clients.iter().position(|client| client.help.flows == 0)?;
            self.clients.remove(idle);
        }
        self.clients.push(Client {
            address,
            help: Help::default(),
            minute: [0; STEPS],
            before: Flows::default(),
            now: Flows::default(),
        });
        self.clients.last_mut()
    }

    fn advance(&mut self, step: u64) {
        let first = self.step.max(step.saturating_sub(STEPS as u64));
        for passed in first + 1..=step {
            for client in &mut self.clients {
                client.minute[passed as usize % STEPS] = 0;
            }
        }
        self.step = self.step.max(step);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn flow(host: u8, packets: u64, repaired: u64) -> FlowInfo {
        FlowInfo {
            client: SocketAddr::from(([192, 0, 2, host], 50_000)),
            server: SocketAddr::from(([198, 51, 100, 1], 443)),
            age: 0,
            bytes_down: packets * 1200,
            packets_down: packets,
            local_rtt: 0,
            inferred: repaired,
            repaired,
            resent: 2 * repaired,
            protocol: pemi_engine::Protocol::Quic,
            state: FlowState::Protected,
            knowledge: pemi_engine::Knowledge::Replies,
        }
    }

    fn address(host: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, host])
    }

    #[test]
    fn flows_of_a_client_are_summed_and_those_that_end_stay_counted() {
        let mut helped = Helped::default();
        assert_eq!(helped.look(1, &[flow(9, 100, 1), flow(8, 5, 0)]), [address(9), address(8)]);
        // One goes on, the other stands still; then there is none, and then a new one.
        assert_eq!(helped.look(2, &[flow(8, 5, 0), flow(9, 200, 4)]), [address(9)]);
        assert_eq!(helped.look(3, &[]), [] as [IpAddr; 0]);
        assert_eq!(helped.look(3, &[flow(9, 10, 2)]), [address(9)]);
        let knowledge = Some(Knowledge::Replies);
        let help = Help { flows: 1, knowledge, repaired: 6, copies: 12, repaired_minute: 6 };
        let ended = Help { flows: 0, knowledge: None, ..help };
        assert_eq!(helped.of(&[address(9), address(7)]), help);
        assert_eq!(helped.addresses().collect::<Vec<_>>(), [address(9)]);
        assert_eq!(helped.look(4, &[]), [] as [IpAddr; 0]);
        assert_eq!(helped.of(&[address(9)]), ended);
        helped.look(59, &[]);
        assert_eq!(helped.of(&[address(9)]).repaired_minute, 6);
        helped.look(60, &[]);
        assert_eq!(helped.of(&[address(9)]), Help { repaired_minute: 0, ..ended });
        helped.reset();
        assert_eq!(helped.of(&[address(9)]), Help::default());
    }

    #[test]
    fn the_best_of_what_tells_of_a_client_is_told() {
        let mut helped = Helped::default();
        let other = |knowledge, state| FlowInfo { knowledge, state, ..flow(9, 1, 0) };
        helped.look(1, &[flow(9, 1, 0), other(Knowledge::Counts, FlowState::Protected)]);
        assert_eq!(helped.of(&[address(9)]).knowledge, Some(Knowledge::Counts));
        helped.look(2, &[other(Knowledge::Reports, FlowState::Bypassed)]);
        assert_eq!(helped.of(&[address(9)]).knowledge, None);
    }

    #[test]
    fn what_was_before_a_reset_is_not_counted_again() {
        let mut helped = Helped::default();
        helped.look(1, &[flow(9, 100, 5)]);
        helped.reset();
        helped.look(2, &[flow(9, 200, 6)]);
        assert_eq!(helped.of(&[address(9)]).repaired, 1);
    }

    #[test]
    fn a_flow_that_is_watched_only_is_not_helped() {
        let mut helped = Helped::default();
        let watched = FlowInfo { state: FlowState::Watching, ..flow(9, 100, 3) };
        assert_eq!(helped.look(1, &[watched]), [] as [IpAddr; 0]);
        assert_eq!((helped.of(&[address(9)]).flows, helped.of(&[address(9)]).repaired), (0, 3));
    }

    #[test]
    fn no_more_clients_than_there_is_room_for() {
        let mut helped = Helped::default();
        for second in 0..100 {
            let flows: Vec<FlowInfo> = (0..200)
                .map(|host| {
                    let client = SocketAddr::from(([192, 0, second as u8, host], 1));
                    FlowInfo { client, ..flow(9, 1, 0) }
                })
                .collect();
            helped.look(second, &flows);
            assert!(helped.clients.len() <= MOST);
        }
        assert_eq!(helped.addresses().count(), 200);
    }
}
