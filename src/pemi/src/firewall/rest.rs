// SPDX-License-Identifier: GPL-2.0-or-later
//! When the rules may rest: nobody is helped, and clients whose radio loses nothing pass.
//!
//! A chain in the way of what is forwarded costs every packet something, also those of clients
//! that pass by the queue. So the chains go when no packet has come by the queue for so long that
//! connection tracking has forgotten every connection that was claimed. Whoever comes then
//! begins a connection, and its first packet meets a chain that no other packet meets
//! (`rules::resting`).

use std::fs;
use std::ops::RangeInclusive;

/// After which connection tracking forgets a connection over UDP that both ends have spoken in.
const FORGOTTEN: &str = "/proc/sys/net/netfilter/nf_conntrack_udp_timeout_stream";
/// That of OpenWrt, where it cannot be read; the kernel's own is 120.
const FORGOTTEN_S: u64 = 180;
/// Seconds between two looks.
const LOOK_S: u64 = 60;
/// Where the kernel lists queues that somebody reads.
const QUEUES: &str = "/proc/net/netfilter/nfnetlink_queue";

/// How long it has been calm.
#[derive(Debug, Default)]
pub struct Calm {
    seconds: u64,
}

impl Calm {
    /// One more second, or the end of it. Says whether the rules may rest now.
    pub fn second(&mut self, calm: bool, queues: &RangeInclusive<u16>) -> bool {
        self.seconds = if calm { self.seconds + 1 } else { 0 };
        calm && self.seconds.is_multiple_of(LOOK_S)
            && is_over(self.seconds, fs::read_to_string(FORGOTTEN).ok().as_deref())
            && fs::read_to_string(QUEUES).is_ok_and(|text| is_alone(&text, queues))
    }
}

/// Whether all connections have ended that had a packet before.
fn is_over(seconds: u64, forgotten: Option<&str>) -> bool {
    seconds > forgotten.and_then(|text| text.trim().parse().ok()).unwrap_or(FORGOTTEN_S)
}

/// Whether nobody else has a queue. With a chain the kernel drops what waits in any of them; in
/// ours nothing does.
fn is_alone(text: &str, ours: &RangeInclusive<u16>) -> bool {
    let first = |line: &str| line.split_ascii_whitespace().next().and_then(|it| it.parse().ok());
    text.lines().all(|line| first(line).is_some_and(|queue| ours.contains(&queue)))
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
        assert!((1..LOOK_S).all(|_| !calm.second(true, &(0..=0))));
        calm.second(false, &(0..=0));
        assert_eq!(calm.seconds, 0);
    }

    #[test]
    fn nobody_else_has_a_queue() {
        let ours = " 5443  1234     0 2 65531     0     0        7  1\n";
        let others = " 200  99     3 2 65531     0     0        7  1\n";
        assert!(is_alone(ours, &(5443..=5444)) && is_alone("", &(5443..=5443)));
        assert!(!is_alone(&[ours, others].concat(), &(5443..=5443)));
        assert!(!is_alone("nonsense\n", &(5443..=5443)));
    }
}
