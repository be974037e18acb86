// SPDX-License-Identifier: GPL-2.0-or-later
//! Whose clients' packets come to which of several queues, in the words of nft and iptables.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::set;
use crate::config::Share;

/// Of IP.
#[derive(Clone, Copy)]
pub(super) enum Version {
    V4,
    V6,
}

/// Both: each has a rule of its own.
pub(super) const VERSIONS: [Version; 2] = [Version::V4, Version::V6];

impl Version {
    /// The address that has nothing but these bits at its end.
    fn end(self, bits: u8) -> IpAddr {
        match self {
            Version::V4 => Ipv4Addr::from(u32::from(bits)).into(),
            Version::V6 => Ipv6Addr::from(u128::from(bits)).into(),
        }
    }
}

/// The test for packets that one of these clients has sent.
pub(super) fn nft(share: Share, version: Version) -> String {
    let word = match version {
        Version::V4 => "ip",
        Version::V6 => "ip6",
    };
    let bits = version.end(share.bits());
    format!("{word} saddr & {bits} {}", set(share.ends().map(|its| version.end(its))))
}

/// The same, one for each of the ends of their addresses. The same text is for both programs: each
/// leaves out what is the other's.
pub(super) fn iptables(share: Share, version: Version) -> Vec<String> {
    let only = match version {
        Version::V4 => "-4",
        Version::V6 => "-6",
    };
    let bits = version.end(share.bits());
    share.ends().map(|its| format!("{only} -s {}/{bits}", version.end(its))).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::{Capture, Config, Repair};
    use crate::firewall::rules::{iptables, ruleset};

    #[test]
    fn beside_rings_each_queue_has_clients_of_its_own() {
        let ring = |queues| Config {
            capture: Capture::Ring,
            repair: Repair::Infer,
            queue: 7,
            queues,
            device: vec!["br-lan".into()],
            ..Config::default()
        };
        let help = |config: &Config| {
            let text = ruleset(config);
            let (_, chain) = text.split_once("chain help {\n").unwrap();
            let (chain, _) = chain.split_once("\t}").unwrap();
            chain.lines().skip(1).map(str::trim).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(help(&ring(1)), "counter queue flags bypass to 7");
        assert_eq!(
            help(&ring(2)),
            "ip saddr & 0.0.0.1 { 0.0.0.0 } counter queue flags bypass to 7\n\
             ip6 saddr & ::1 { :: } counter queue flags bypass to 7\n\
             counter queue flags bypass to 8"
        );
        let three = help(&ring(3));
        assert!(three.contains("ip6 saddr & ::f { ::1, ::4, ::7, ::a, ::d } counter"), "{three}");
        assert!(three.ends_with("\ncounter queue flags bypass to 9"), "{three}");
        let waits = Config { capture: Capture::Auto, ..ring(2) };
        assert_eq!(help(&waits), "counter queue flags bypass to 7-8");
        let text = iptables(&ring(2)).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| line.contains("NFQUEUE")).collect();
        assert_eq!(
            lines,
            [
                "-A pemi -4 -s 0.0.0.0/0.0.0.1 -j NFQUEUE --queue-num 7 --queue-bypass",
                "-A pemi -6 -s ::/::1 -j NFQUEUE --queue-num 7 --queue-bypass",
                "-A pemi -j NFQUEUE --queue-num 8 --queue-bypass",
            ]
        );
        // The last one has no rule for each of the ends of its clients' addresses.
        assert_eq!(iptables(&ring(8)).unwrap().matches("NFQUEUE").count(), 2 * 7 + 1);
    }
}
