// SPDX-License-Identifier: GPL-2.0-or-later
//! The firewall rules that bring packets to the queue, as text for `nft -f` or for
//! `iptables-nft-restore`.
//!
//! They live in a table of their own. Loading it twice is loading it once, and
//! changing it is one transaction: there is no moment without rules.
//!
//! The firewall decides what may pass. So the queue comes after every chain
//! that filters, and it gets only what belongs to a connection that a client has
//! begun: of what comes back, only packets of connections that both ends have
//! spoken in. What the firewall drops the daemon never sees.

use std::fmt::{self, Display};

use crate::config::{Config, Mode};

mod bridged;
mod routed;
mod share;

pub use routed::shortcut;

/// Name of the table, in whichever family.
pub const TABLE: &str = "pemi";
/// Priority of the chain with the queue in its hook. fw4's filter chains are at 0, the
/// last one with a name (`security`) at 50; on a bridge it is `filter` at -200, what
/// br_netfilter brings to iptables at -1 and `srcnat` at 300.
const AFTER_FILTERS: i32 = 310;

/// The quota that is exceeded when somebody begins a connection that may be helped.
const MET: &str = "met";

/// So long a client is clean when nobody says so again; three times the time after which the
/// daemon does.
const CLEAN_FOR: &str = "1m";

/// The families that the table may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Packets that are routed, IPv4 and IPv6.
    Inet,
    /// Packets that pass between the ports of a bridge.
    Bridge,
}

impl Family {
    /// The one that `mode` needs.
    pub fn of(mode: Mode) -> Family {
        match mode {
            Mode::Routed => Family::Inet,
            Mode::Bridged => Family::Bridge,
        }
    }

    /// The one that it does not need.
    pub fn other(self) -> Family {
        match self {
            Family::Inet => Family::Bridge,
            Family::Bridge => Family::Inet,
        }
    }

    /// Its number in netlink messages (`NFPROTO_INET`, `NFPROTO_BRIDGE`).
    pub fn number(self) -> u8 {
        match self {
            Family::Inet => 1,
            Family::Bridge => 7,
        }
    }
}

impl Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::Inet => "inet",
            Family::Bridge => "bridge",
        })
    }
}

/// Removes the table, also where there is none. (`destroy` would need Linux 6.3.)
pub fn removal(family: Family) -> String {
    format!("add table {family} {TABLE}\ndelete table {family} {TABLE}\n")
}

/// The table for `config`, in the place of the rules that it has now. Its chains
/// stay where they are: with a chain the kernel would drop every packet that
/// waits in any queue.
pub fn ruleset(config: &Config) -> String {
    let family = Family::of(config.mode);
    let body = match family {
        Family::Inet => routed::nft(config),
        Family::Bridge => bridged::nft(config),
    };
    format!(
        "add table {family} {TABLE}\nflush table {family} {TABLE}\ntable {family} {TABLE} {{\n{body}}}\n"
    )
}

/// The table in the place of [`ruleset`] while nobody's packets are to be seen: without a chain in
/// the way of what is forwarded. The first packet of each connection meets one, which claims those
/// that may be helped and has the kernel tell us of the first of them. The sets stay as they are.
/// None where other flows than those of QUIC are helped, which may be silent for hours; on a bridge
/// nobody tracks connections.
pub fn resting(config: &Config) -> Option<String> {
    if config.mode != Mode::Routed || config.others() {
        return None;
    }
    let body = routed::resting(config);
    // A quota tells once that it is exceeded, and a new one does so again.
    Some(format!(
        "flush table inet {TABLE}\ndelete chain inet {TABLE} claim\n\
         delete chain inet {TABLE} forward\nadd quota inet {TABLE} {MET} over 1 bytes\n\
         delete quota inet {TABLE} {MET}\ntable inet {TABLE} {{\n{body}}}\n"
    ))
}

/// The same rules for `iptables-nft-restore --noflush` and `ip6tables-nft-restore
/// --noflush`, for kernels without nft's queue. What runs the daemon loads them, once.
/// Bridged packets do not come by there.
pub fn iptables(config: &Config) -> Option<String> {
    (config.mode == Mode::Routed).then(|| routed::iptables(config))
}

/// The rule that keeps helped flows out of the flowtable of fw4, for a file
/// that its ruleset includes after its table. Flow offloading would take the
/// packets past every hook; it is the first rule of fw4's forward chain, so
/// this one has to go before it. It gives the verdict that fw4's own next rule
/// gives to packets of known connections. Bridged packets do not come by there.
pub fn no_offload(config: &Config) -> String {
    if config.mode == Mode::Bridged {
        return String::new();
    }
    let helped = config.helped_mark;
    format!(
        "insert rule inet fw4 forward ct mark & {helped:#010x} != 0 \
         ct state established,related accept comment \"!pemi: helped flows are not offloaded\"\n"
    )
}

/// The numbers of the queues, first and last.
pub(super) fn queues(config: &Config) -> (u16, u16) {
    (config.queue, config.queue.saturating_add(config.queues.max(1) - 1))
}

/// A set of clients whose packets pass as they are. What the daemon does not say again runs out:
/// without it nobody would notice that they lose something by now.
fn clean_set(name: &str, kind: &str) -> String {
    format!(
        "\tset {name} {{\n\t\ttype {kind}\n\t\tflags timeout\n\t\ttimeout {CLEAN_FOR}\n\t}}\n\n"
    )
}

/// Packets pass while no daemon is there (`bypass`). The kernel spreads flows over
/// several queues by their two addresses, in both directions alike.
fn queue((first, last): (u16, u16)) -> String {
    let more = if first == last { String::new() } else { format!("-{last}") };
    format!("counter queue flags bypass to {first}{more}")
}

/// Whose packets are ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Devices<'a> {
    /// Everybody's.
    Any,
    /// Nobody's: networks without a device have no packets.
    None,
    /// Those of the clients behind these.
    Of(&'a [String]),
}

impl Devices<'_> {
    fn of(config: &Config) -> Devices<'_> {
        match (config.device.is_empty(), config.network.is_empty()) {
            (true, true) => Devices::Any,
            (true, false) => Devices::None,
            (false, _) => Devices::Of(&config.device),
        }
    }
}

fn set(items: impl IntoIterator<Item = impl Display>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("{{ {} }}", items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Capture, Protocols, Radio, Repair, Repaired, Sidekick};

    fn config() -> Config {
        Config {
            network: vec!["lan".into()],
            device: vec!["br-lan".into(), "eth1".into()],
            port: vec![443, 8443],
            ..Config::default()
        }
    }

    #[test]
    fn takes_the_place_of_earlier_rules() {
        let text = ruleset(&config());
        assert!(
            text.starts_with("add table inet pemi\nflush table inet pemi\ntable inet pemi {\n")
        );
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn both_directions_of_the_helped_devices_are_queued() {
        let text = ruleset(&config());
        for part in [
            "iifname { \"br-lan\", \"eth1\" } udp dport { 443, 8443 } ct direction original ct mark",
            "oifname { \"br-lan\", \"eth1\" } udp sport { 443, 8443 } ct state established \
             ct direction reply ct mark",
            "\t\tudp dport { 443, 8443 } ct direction original goto help",
            "\t\tudp sport { 443, 8443 } ct state established ct direction reply goto help",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(text.contains("counter queue flags bypass to 5443\n"));
        let text = ruleset(&Config { queue: 7, queues: 3, ..config() });
        assert!(text.contains("bypass to 7-9\n"), "{text}");
    }

    #[test]
    fn what_a_ring_shows_does_not_wait() {
        let capture = Capture::Ring;
        let ring = Config { capture, repair: Repair::Infer, ..config() };
        let queued = "ct state established ct direction reply goto help";
        let claimed = "ct state established ct direction reply ct mark";
        let both = ruleset(&Config { capture: Capture::Auto, ..ring.clone() });
        assert!(both.contains(queued) && both.contains(claimed), "{both}");
        let text = ruleset(&ring);
        assert!(!text.contains(queued), "{text}");
        assert!(text.contains(claimed), "offloaded it would not be seen: {text}");
        assert!(text.contains("ct direction original goto help"), "{text}");
        let short = "ct state established ct direction reply goto short\n";
        assert!(text.contains(short) && text.contains("chain short {\n\t}"), "{text}");
        assert!(!both.contains("short"), "{both}");
        let text = iptables(&ring).unwrap();
        assert!(!text.contains("--ctdir REPLY -g"), "{text}");
        // What may have to be sent in another way waits.
        assert!(ruleset(&Config { repair: Repair::Auto, ..ring }).contains(queued));
    }

    #[test]
    fn what_a_ring_shows_takes_a_shortcut_while_there_are_devices_for_it() {
        let text = shortcut(&["eth1".into(), "wwan0".into()]);
        assert_eq!(
            text,
            "flush chain inet pemi short\n\
             add flowtable inet pemi shown { hook ingress priority filter; \
             devices = { \"eth1\", \"wwan0\" }; }\n\
             add rule inet pemi short flow add @shown\n"
        );
        let none = shortcut(&[]);
        assert!(none.starts_with("flush chain inet pemi short\n"), "{none}");
        assert!(none.ends_with("delete flowtable inet pemi shown\n"), "{none}");
    }

    #[test]
    fn a_network_without_a_device_has_no_packets() {
        let nobody = ruleset(&Config { device: vec![], ..config() });
        assert!(!nobody.contains("help"), "{nobody}");
        let all = ruleset(&Config { device: vec![], network: vec![], ..config() });
        assert!(all.contains("\t\tudp sport { 443, 8443 } ct state established"), "{all}");
        let nobody = iptables(&Config { device: vec![], ..config() }).unwrap();
        assert!(!nobody.contains("NFQUEUE") && nobody.contains("notrack"), "{nobody}");
        let all = iptables(&Config { device: vec![], network: vec![], ..config() }).unwrap();
        assert!(all.contains("-A FORWARD -p udp --sport 8443 -m conntrack"), "{all}");
    }

    #[test]
    fn a_flow_is_either_helped_or_let_go() {
        for (repair, untranslated) in
            [(Repair::Infer, ""), (Repair::Auto, "ct status & dnat == 0 ")]
        {
            let marks = Config { bypass_mark: 0x100, helped_mark: 0x200, ..config() };
            let text = ruleset(&Config { repair, ..marks });
            let claim = "ct mark set ct mark | 0x00000200";
            let claim = format!("ct mark & 0x00000100 == 0 {untranslated}{claim}\n");
            assert_eq!(text.matches(&claim).count(), 2, "{text}");
            let others = text.find("\t\tct mark & 0x00000200 == 0 return\n").unwrap();
            let exchange = "\t\tmeta mark & 0x00000100 != 0 \
                            ct mark set ct mark & 0xfffffcff | 0x00000100 return\n";
            let exchange = text.find(exchange).unwrap();
            assert!(others < exchange && exchange < text.find("counter queue").unwrap(), "{text}");
        }
        let fw4 = no_offload(&Config { helped_mark: 0x200, ..config() });
        assert!(fw4.contains("inet fw4 forward ct mark & 0x00000200 != 0 ct state"), "{fw4}");
        let bridged = ruleset(&Config { mode: Mode::Bridged, bypass_mark: 0x100, ..config() });
        let learn = bridged.find("\t\tmeta mark & 0x00000100 != 0 goto learn\n").unwrap();
        assert!(learn < bridged.find("counter queue").unwrap(), "{bridged}");
        assert_eq!(bridged.matches("\t\tadd @bypassed").count(), 4, "{bridged}");
    }

    #[test]
    fn no_chain_but_those_two_is_in_the_way_of_what_is_forwarded() {
        for mode in [Mode::Routed, Mode::Bridged] {
            let text = ruleset(&Config { mode, ..config() });
            let hooks: Vec<_> = text.matches("hook forward").collect();
            assert_eq!(hooks.len(), if mode == Mode::Routed { 2 } else { 1 }, "{text}");
            assert!(!text.contains("hook postrouting") && !text.contains("hook prerouting"));
        }
    }

    #[test]
    fn what_is_sent_instead_is_not_translated() {
        for inferred in [
            Config { repair: Repair::Infer, ..config() },
            // Nobody counts, so nobody is believed.
            Config { radio: Radio::Off, ..config() },
        ] {
            assert!(!ruleset(&inferred).contains("dnat"));
            assert!(!iptables(&inferred).unwrap().contains("DNAT"));
        }
        for repair in [Repair::Auto, Repair::Radio] {
            let config = Config { repair, ..config() };
            let text = ruleset(&config);
            assert_eq!(text.matches("ct status & dnat == 0 ct mark set").count(), 2, "{text}");
            // What is not claimed does not come to the queue.
            let others = text.find("\t\tct mark & 0x40000000 == 0 return\n").unwrap();
            assert!(others < text.find("goto help").unwrap(), "{text}");
            let text = iptables(&config).unwrap();
            assert!(text.contains("-m conntrack ! --ctstate DNAT -j CONNMARK"), "{text}");
        }
    }

    #[test]
    fn with_all_protocols_everything_but_data_up_is_queued() {
        let all = Config { repair: Repair::Radio, protocols: Protocols::All, ..config() };
        let text = ruleset(&all);
        for part in [
            "\"eth1\" } meta l4proto udp ct direction original ct mark",
            "\t\tmeta l4proto udp ct direction original goto help",
            "\t\tmeta l4proto udp ct state established ct direction reply goto help",
            "\t\ttcp flags & (fin | rst | psh) == 0 meta length <= 100 ct direction original \
             goto help",
            "\t\tmeta l4proto tcp ct state established ct direction reply goto help",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(text.matches("ct status & dnat == 0 ct mark set").count(), 4, "{text}");
        let lines = iptables(&all).unwrap();
        for line in [
            "-A FORWARD -p tcp --tcp-flags FIN,RST,PSH NONE -m length --length 0:100 \
             -m conntrack --ctdir ORIGINAL -g pemi",
            "-A FORWARD -p tcp -m conntrack --ctstate ESTABLISHED --ctdir REPLY -g pemi",
            "-A FORWARD -p udp -m conntrack --ctstate ESTABLISHED --ctdir REPLY -g pemi",
        ] {
            assert!(lines.lines().any(|found| found == line), "{line} is not in {lines}");
        }
        // Where nobody reports, or nobody knows the clients, only QUIC can be helped.
        for other in [
            Config { repair: Repair::Infer, ..all.clone() },
            Config { device: vec![], network: vec![], ..all.clone() },
            Config { mode: Mode::Bridged, ..all },
        ] {
            let quic = Config { protocols: Protocols::Quic, ..other.clone() };
            assert_eq!(ruleset(&other), ruleset(&quic));
        }
    }

    #[test]
    fn clean_clients_pass_where_there_is_a_gate() {
        let text = ruleset(&config());
        for (family, set) in [("ip", "clean4"), ("ip6", "clean6")] {
            let unmarked = format!(
                "\t\tct original {family} saddr @{set} ct mark set ct mark & 0xafffffff return\n"
            );
            let at = text.find(&unmarked).unwrap();
            // Also those of helped flows, which are claimed already.
            assert!(at < text.find("ct mark & 0x40000000 != 0 return").unwrap(), "{text}");
            assert!(at < text.find("ct mark set ct mark | ").unwrap(), "{text}");
            assert!(text.contains(&format!("set {set} {{\n\t\ttype ipv{}", &set[5..])), "{text}");
        }
        // Who is not known to be clean, or of whom nobody speaks any more, comes by the queue.
        assert_eq!(text.matches("\t\ttimeout 1m\n").count(), 2, "{text}");
        let bridged = ruleset(&Config { mode: Mode::Bridged, ..config() });
        assert!(bridged.contains("set clean {\n\t\ttype ether_addr\n"), "{bridged}");
        for without in [
            Config { release_s: 0, ..config() },
            Config { radio: Radio::Off, ..config() },
            Config { direction: Repaired::Both, ..config() },
            Config { sidekick: Sidekick { enabled: true, ..config().sidekick }, ..config() },
        ] {
            for mode in [Mode::Routed, Mode::Bridged] {
                let text = ruleset(&Config { mode, ..without.clone() });
                assert!(!text.contains("clean"), "{text}");
            }
        }
        // There nobody fills a set, and all is as without a gate.
        assert!(!iptables(&config()).unwrap().contains("clean"));
        let without = Config { release_s: 0, ..config() };
        assert_eq!(iptables(&config()), iptables(&without));
    }

    #[test]
    fn at_rest_nothing_is_in_the_way_of_what_is_forwarded() {
        let text = resting(&config()).unwrap();
        assert!(!text.contains("hook forward") && !text.contains("queue flags"), "{text}");
        // What a router sends itself is none of it.
        assert!(text.contains("hook output") && text.contains("notrack"), "{text}");
        let clean = text.find("ct original ip6 saddr @clean6 return\n").unwrap();
        let met = "\t\tiifname { \"br-lan\", \"eth1\" } udp dport { 443, 8443 } ct direction original \
                   ct mark set ct mark | 0x40000000 quota name \"met\"\n";
        assert!(clean < text.find(met).unwrap(), "{text}");
        assert!(
            text.find("delete quota inet pemi met").unwrap() < text.find("\tquota met").unwrap()
        );
        assert_eq!(text.matches('{').count(), text.matches('}').count());
        let nobody = resting(&Config { device: vec![], ..config() }).unwrap();
        assert!(nobody.contains("chain sentry") && !nobody.contains("quota name"), "{nobody}");
        let without = resting(&Config { radio: Radio::Off, ..config() }).unwrap();
        assert!(!without.contains("clean"), "{without}");
        assert_eq!(resting(&Config { mode: Mode::Bridged, ..config() }), None);
        assert_eq!(resting(&Config { protocols: Protocols::All, ..config() }), None);
    }

    #[test]
    fn whose_server_is_translated_nobody_is_waked_for_if_he_is_not_claimed() {
        for (repair, priority) in [(Repair::Infer, -110), (Repair::Auto, -90)] {
            let text = resting(&Config { repair, ..config() }).unwrap();
            assert!(text.contains(&format!("nat hook prerouting priority {priority};")), "{text}");
        }
    }

    #[test]
    fn the_queue_comes_after_every_filter() {
        for mode in [Mode::Routed, Mode::Bridged] {
            let text = ruleset(&Config { mode, ..config() });
            assert!(text.contains("hook forward priority 310;"), "{text}");
            let (chain, _) = text.split_once("queue flags").unwrap();
            assert!(chain.rsplit("chain ").next().unwrap().starts_with("help {"), "{text}");
        }
    }

    #[test]
    fn the_same_for_iptables() {
        let infer = Config { repair: Repair::Infer, queues: 3, ..config() };
        let text = iptables(&infer).unwrap();
        for line in [
            "-A FORWARD -p udp --dport 443 -m conntrack --ctdir ORIGINAL -g pemi",
            "-A FORWARD -p udp --sport 8443 -m conntrack --ctstate ESTABLISHED --ctdir REPLY -g pemi",
            "-A FORWARD -m connmark ! --mark 0x40000000/0x40000000 -j RETURN",
            "-A FORWARD -m connmark --mark 0x40000000/0x40000000 -j RETURN",
            "-A pemi -m mark --mark 0x10000000/0x10000000 -j RETURN",
            "-A FORWARD -i br-lan -p udp --dport 443 -m conntrack --ctdir ORIGINAL \
             -m connmark ! --mark 0x10000000/0x10000000 -j CONNMARK --set-xmark 0x40000000/0x40000000",
            "-A pemi -j NFQUEUE --queue-balance 5443:5445 --queue-bypass",
            "-A pemi -m mark --mark 0x10000000/0x10000000 -j CONNMARK --set-xmark 0x10000000/0x50000000",
            "-A OUTPUT -m mark --mark 0x20000000/0x20000000 -p udp --dport 443 -j ACCEPT",
            "-A OUTPUT -m mark --mark 0x20000000/0x20000000 -j CT --notrack",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
        }
        // With reports, connections whose server is translated are left out, and nothing else is.
        let reported = iptables(&Config { repair: Repair::Auto, ..infer }).unwrap();
        let same = reported.replace("-m conntrack ! --ctstate DNAT ", "");
        assert!(same == text && reported != text, "{reported}");
        assert!(iptables(&config()).unwrap().contains("NFQUEUE --queue-num 5443 --queue-bypass"));
        assert_eq!(iptables(&Config { mode: Mode::Bridged, ..config() }), None);
    }

    #[test]
    fn bridged_rules_know_ports_and_whole_bridges() {
        let text = ruleset(&Config { mode: Mode::Bridged, port: vec![443], ..config() });
        assert!(text.starts_with("add table bridge pemi\n"));
        for part in [
            "oifname { \"br-lan\", \"eth1\" } udp sport { 443 } ether daddr != @clean goto help",
            "meta ibrname { \"br-lan\", \"eth1\" } udp dport { 443 } ether saddr != @clean goto help",
            "ip saddr . ip daddr . udp sport . udp dport @bypassed4 return",
            "add @bypassed6 { ip6 daddr . ip6 saddr . udp dport . udp sport }",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
