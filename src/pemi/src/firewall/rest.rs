// SPDX-License-Identifier: GPL-2.0-or-later
//! When the rules may rest: nobody is helped, and clients whose radio loses nothing pass.
//!
//! A chain in the way of what is forwarded costs every packet something, also those of clients
//! that pass by the queue. So the chains go when no packet has come by the queue for so long that
//! connection tracking has forgotten every connection that was claimed. Whoever comes then
//! begins a connection, and its first packet meets a chain that no other packet meets
//! (`rules::resting`).

use std::fs;

/// After which connection tracking forgets a connection over UDP that both ends have spoken in.
const FORGOTTEN: &str = "/proc/sys/net/netfilter/nf_conntrack_udp_timeout_stream";
/// That of OpenWrt, where it cannot be read; the kernel's own is 120.
const FORGOTTEN_S: u64 = 180;
/// Seconds between two looks.
const LOOK_S: u64 = 60;
/// Where the kernel lists sockets of netlink: the number of the subsystem is the second word, that
/// of the socket the third. Its list of queues is root's alone.
const SOCKETS: &str = "/proc/net/netlink";

const NETFILTER: &str = "12";

/// How long it has been calm.
#[derive(Debug, Default)]
pub struct Calm {
    seconds: u64,
}

impl Calm {
    /// One more second, or the end of it. Says whether the rules may rest now; so many of
    /// netfilter's sockets are our own.
    pub fn second(&mut self, calm: bool, own: usize) -> bool {
        self.seconds = if calm { self.seconds + 1 } else { 0 };
        calm && self.seconds.is_multiple_of(LOOK_S)
            && is_over(self.seconds, fs::read_to_string(FORGOTTEN).ok().as_deref())
            && fs::read_to_string(SOCKETS).is_ok_and(|text| is_alone(&text, own))
    }
}

/// Whether all connections have ended that had a packet before.
fn is_over(seconds: u64, forgotten: Option<&str>) -> bool {
    seconds > forgotten.and_then(|text| text.trim().parse().ok()).unwrap_or(FORGOTTEN_S)
}

/// Whether nobody else can have a queue. With a chain the kernel drops what waits in any of them; in
/// ours nothing does. Without a number is the kernel's own socket.
fn is_alone(text: &str, own: usize) -> bool {
    let is_bound = |line: &&str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        words.next() == Some(NETFILTER) && words.next().is_some_and(|number| number != "0")
    };
    text.lines().filter(is_bound).count() <= own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_have_ended_first() {
        assert!(!is_over(180, None) && is_over(181, None) && is_over(181, Some("nonsense")));
        assert!(!is_over(120, Some("120\n")) && is_over(121, Some("120\n")));
        let mut calm = Calm::default();
        // Whatever this machine's settings are: never in the first minute.
        assert!((1..LOOK_S).all(|_| !calm.second(true, 1)));
        calm.second(false, 1);
        assert_eq!(calm.seconds, 0);
    }

    #[test]
    fn nobody_else_has_a_queue() {
        let head = "sk Eth Pid Groups Rmem Wmem Dump Locks Drops Inode\n";
        let kernel = "000000004238bcac 12 0 00000000 0 0 0 2 0 566\n";
        let ours = "00000000f2b1d0e1 12 2764 00000000 0 0 0 2 0 900\n";
        let radio = "00000000f2b1d0e2 16 2764 00000000 0 0 0 2 0 901\n";
        let others = "00000000f2b1d0e3 12 4294963200 00000000 0 0 0 2 0 902\n";
        assert!(is_alone(&[head, kernel, ours, radio].concat(), 1));
        assert!(!is_alone(&[head, kernel, ours, radio, others].concat(), 1));
    }
}
