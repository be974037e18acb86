// SPDX-License-Identifier: GPL-2.0-or-later
//! Which packets the kernel copies into a ring: those to clients that are helped, as classic BPF.

use libc::sock_filter;
use pemi_engine::{Nanos, SEC, Time};

use crate::config::{BITS, Config, Share};
use crate::sys::bpf::{
    DESTINATION_PORT, IF_ANY_BIT, LOAD_WORD, MARK, MOST, ONLY_UDP, PACKET_TYPE, RETURN,
    SOURCE_PORT, WHOLE, jump, one_of, only_if, op, receiver,
};

/// A port of which nothing was heard for so long makes room (chosen: what a client would have to
/// reply to has come and gone).
const IDLE: Nanos = 10 * SEC;

/// What makes a packet one that may be seen, whichever client's it is.
#[derive(Clone, Debug)]
pub(super) struct Ours {
    /// Bits of the mark of what the daemon sends itself.
    pub mark: u32,
    /// The servers' ports.
    servers: Vec<u16>,
    /// Whose clients send to the queue.
    share: Share,
}

impl Ours {
    /// For the queue with this number.
    pub fn of(config: &Config, queue: u16) -> Ours {
        let Config { mark, ref port, .. } = *config;
        Ours { mark, servers: port.clone(), share: config.share(queue) }
    }
}

/// The clients' ports, as far as there is room for them.
#[derive(Debug, Default)]
pub(super) struct Clients {
    ports: Vec<(u16, Time)>,
    /// There are more than fit, so all are meant.
    all: bool,
}

impl Clients {
    /// A client has sent something from this port, and it is not let go. True if the filter has to
    /// be changed.
    pub fn heard(&mut self, port: u16, now: Time) -> bool {
        if let Some((_, heard)) = self.ports.iter_mut().find(|(known, _)| *known == port) {
            *heard = now;
            return false;
        }
        if self.ports.len() == MOST {
            self.ports.retain(|(_, heard)| now.since(*heard) < IDLE);
        }
        let was_all = self.all;
        self.all = self.ports.len() == MOST;
        if !self.all {
            self.ports.push((port, now));
        }
        !(self.all && was_all)
    }

    /// What goes to this port need not be seen. True if the filter has to be changed.
    pub fn let_go(&mut self, port: u16) -> bool {
        let before = self.ports.len();
        self.ports.retain(|(known, _)| *known != port);
        self.ports.len() < before && !self.all
    }

    /// UDP that leaves by the device, from one of these ports of servers to one of the clients', but
    /// for what has one of our own marks; no fragments, and no IPv6 extension headers.
    pub fn program(&self, Ours { mark, servers, share }: &Ours) -> Vec<sock_filter> {
        let mut program = Vec::with_capacity(self.ports.len() + servers.len() + 48);
        program.extend([
            op(LOAD_WORD, PACKET_TYPE),
            only_if(libc::PACKET_OUTGOING as u32),
            op(RETURN, 0),
            op(LOAD_WORD, MARK),
            jump(IF_ANY_BIT, *mark, 0, 1),
            op(RETURN, 0),
        ]);
        program.extend(ONLY_UDP);
        if share.queues > 1 {
            program.extend(receiver(BITS, share.queues, share.index));
        }
        program.push(SOURCE_PORT);
        one_of(&mut program, servers.iter().map(|port| u32::from(*port)));
        if !self.all {
            program.push(DESTINATION_PORT);
            one_of(&mut program, self.ports.iter().map(|(port, _)| u32::from(*port)));
        }
        program.push(op(RETURN, WHOLE));
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::bpf::tests::{About, run, v4, v6};

    const MARK: u32 = 0x2000_0000;
    const OUT: About = About { device: 3, packet_type: libc::PACKET_OUTGOING as u32, mark: 0 };

    fn ours(servers: &[u16], share: Share) -> Ours {
        Ours { mark: MARK, servers: servers.into(), share }
    }

    /// The program where there is one queue.
    fn program(clients: &Clients, servers: &[u16]) -> Vec<sock_filter> {
        clients.program(&ours(servers, Share { queues: 1, index: 0 }))
    }

    fn at(seconds: i64) -> Time {
        Time::ZERO + seconds * SEC
    }

    #[test]
    fn what_goes_to_helped_clients_is_seen_and_nothing_else() {
        let mut clients = Clients::default();
        assert!(!run(&program(&clients, &[443]), &v4((443, 50_000), 0), OUT), "nobody yet");
        assert!(clients.heard(50_000, at(0)) && clients.heard(50_001, at(0)));
        assert!(!clients.heard(50_001, at(1)), "known");
        let program = program(&clients, &[443, 8443]);
        let seen = |frame: &[u8], about| run(&program, frame, about);
        for ports in [(443, 50_000), (8443, 50_001)] {
            for frame in [v4(ports, 0), v4(ports, 3), v6(ports)] {
                assert!(seen(&frame, OUT) && seen(&frame, About { mark: 0x100, ..OUT }));
                assert!(!seen(&frame, About { packet_type: 0, ..OUT }), "it came in");
                assert!(!seen(&frame, About { mark: MARK | 1, ..OUT }), "we have sent it");
            }
        }
        for ports in [(443, 50_002), (80, 50_000), (50_000, 443)] {
            assert!(!seen(&v4(ports, 0), OUT) && !seen(&v6(ports), OUT), "{ports:?}");
        }
        for (byte, value) in [(14 + 9, 6), (14 + 6, 0x20), (14 + 7, 1)] {
            let mut frame = v4((443, 50_000), 0);
            frame[byte] = value;
            assert!(!seen(&frame, OUT), "TCP, the first fragment, a later one");
        }
    }

    #[test]
    fn each_of_several_queues_sees_what_goes_to_its_own_clients() {
        let mut clients = Clients::default();
        clients.heard(50_000, at(0));
        let frames = [(v4((443, 50_000), 3), 14 + 19), (v6((443, 50_000)), 14 + 39)];
        for queues in 2..=8 {
            let shares = (0..queues).map(|index| Share { queues, index });
            let programs: Vec<_> =
                shares.map(|it| (it, clients.program(&ours(&[443], it)))).collect();
            for end in 0..=u8::MAX {
                for (frame, last) in &frames {
                    let mut frame = frame.clone();
                    frame[*last] = end;
                    for (share, program) in &programs {
                        let its = share.ends().any(|its| its == end & share.bits());
                        assert_eq!(run(program, &frame, OUT), its, "{end}, {share:?}");
                    }
                }
            }
            let other = v4((443, 50_001), 0);
            assert!(!programs.iter().any(|(_, program)| run(program, &other, OUT)));
        }
    }

    #[test]
    fn flows_that_are_let_go_cost_no_copies() {
        let mut clients = Clients::default();
        clients.heard(50_000, at(0));
        assert!(clients.let_go(50_000) && !clients.let_go(50_000));
        assert!(!run(&program(&clients, &[443]), &v4((443, 50_000), 0), OUT));
    }

    #[test]
    fn more_clients_than_fit_are_all_seen_until_others_are_silent() {
        let mut clients = Clients::default();
        for port in 0..MOST as u16 {
            assert!(clients.heard(port, at(0)));
        }
        let sees =
            |clients: &Clients, port| run(&program(clients, &[443]), &v4((443, port), 0), OUT);
        assert!(sees(&clients, 0) && sees(&clients, 127) && !sees(&clients, 50_000));
        assert!(clients.heard(50_000, at(1)) && !clients.heard(50_001, at(1)));
        assert!(sees(&clients, 50_000) && sees(&clients, 50_001) && clients.ports.len() == MOST);
        assert!(clients.heard(50_002, at(20)));
        assert!(sees(&clients, 50_002) && !sees(&clients, 50_000) && !sees(&clients, 0));
    }
}
