//! The firewall rules that bring packets to the queue, as text for `nft -f`.
//!
//! They live in a table of their own. Loading it twice is loading it once, and
//! changing it is one transaction: there is no moment without rules.

use std::fmt::{self, Display, Write};

use crate::config::{Config, Mode};

/// Name of the table, in whichever family.
pub const TABLE: &str = "pemi";
/// In bridged mode: flows remembered as let go, each of them in both directions.
const BYPASSED: u32 = 4096;
/// In bridged mode: after this a flow that was let go is looked at again.
const BYPASSED_FOR: &str = "5m";

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
        Family::Inet => routed(config),
        Family::Bridge => bridged(config),
    };
    format!(
        "add table {family} {TABLE}\nflush table {family} {TABLE}\ntable {family} {TABLE} {{\n{body}}}\n"
    )
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

fn routed(config: &Config) -> String {
    let Config { mark, bypass_mark, helped_mark, .. } = config;
    let ports = set(&config.port);
    let forward = forward(config, "iifname", "oifname");
    let look = format!(
        "\t\tct mark & {bypass_mark:#010x} != 0 return
\t\tct mark set ct mark | {helped_mark:#010x}
"
    );
    let help = help(config, &forward, &look);
    // The daemon adds bypass_mark to the mark of the packet with whose verdict
    // it lets a flow go; the queue's own hook does not see that packet again.
    // Copies are no new packets to connection tracking, except on their way up,
    // where they have to be translated like those before them.
    format!(
        "\tchain forward {{
\t\ttype filter hook forward priority mangle; policy accept;
{forward}\t}}

{help}\tchain postrouting {{
\t\ttype filter hook postrouting priority mangle; policy accept;
\t\tmeta mark & {bypass_mark:#010x} != 0 ct mark set ct mark & {keep:#010x} | {bypass_mark:#010x}
\t}}

\tchain output {{
\t\ttype filter hook output priority raw; policy accept;
\t\tmeta mark & {mark:#010x} != 0 udp dport {ports} accept
\t\tmeta mark & {mark:#010x} != 0 notrack
\t}}
",
        keep = !helped_mark & !bypass_mark,
    )
}

/// Connection tracking does not see bridged packets unless asked to, so flows
/// that are let go are remembered in sets. Copies are sent out of a port and
/// meet no hook.
fn bridged(config: &Config) -> String {
    let bypass_mark = config.bypass_mark;
    let ports = forward(config, "iifname", "oifname");
    // A device may be a port of a bridge, or a bridge: then all of its ports.
    let bridges = match config.device.is_empty() {
        true => String::new(),
        false => forward(config, "meta ibrname", "meta obrname"),
    };
    let mut sets = String::new();
    let mut look = String::new();
    let mut learn = String::new();
    for (version, family) in [("4", "ip"), ("6", "ip6")] {
        let there = format!("{family} saddr . {family} daddr . udp sport . udp dport");
        let back = format!("{family} daddr . {family} saddr . udp dport . udp sport");
        let _ = write!(
            sets,
            "\tset bypassed{version} {{
\t\ttype ipv{version}_addr . ipv{version}_addr . inet_service . inet_service
\t\tflags dynamic,timeout
\t\ttimeout {BYPASSED_FOR}
\t\tsize {size}
\t}}

",
            size = 2 * BYPASSED,
        );
        let _ = writeln!(look, "\t\t{there} @bypassed{version} return");
        for tuple in [there, back] {
            let _ = writeln!(
                learn,
                "\t\tmeta mark & {bypass_mark:#010x} != 0 add @bypassed{version} {{ {tuple} }}"
            );
        }
    }
    let help = help(config, &ports, &look);
    format!(
        "{sets}\tchain forward {{
\t\ttype filter hook forward priority filter; policy accept;
{ports}{bridges}\t}}

{help}\tchain postrouting {{
\t\ttype filter hook postrouting priority filter; policy accept;
{learn}\t}}
"
    )
}

/// Which packets are ours. Networks without a device have none; without networks
/// every device's are.
fn forward(config: &Config, from: &str, to: &str) -> String {
    let ports = set(&config.port);
    let (from, to) = match (config.device.is_empty(), config.network.is_empty()) {
        (true, false) => return String::new(),
        (true, true) => (String::new(), String::new()),
        (false, _) => {
            let devices = set(config.device.iter().map(|name| format!("\"{name}\"")));
            (format!("{from} {devices} "), format!("{to} {devices} "))
        }
    };
    format!("\t\t{from}udp dport {ports} goto help\n\t\t{to}udp sport {ports} goto help\n")
}

/// The chain that ours go to, if there may be some. `look` leaves out those of flows
/// that were let go.
fn help(config: &Config, forward: &str, look: &str) -> String {
    match forward.is_empty() {
        true => String::new(),
        false => format!("\tchain help {{\n{look}\t\t{}\n\t}}\n\n", queue(config)),
    }
}

/// Packets pass while no daemon is there (`bypass`). The kernel spreads flows over
/// several queues by their two addresses, in both directions alike.
fn queue(config: &Config) -> String {
    let first = config.queue;
    match config.queues {
        0 | 1 => format!("counter queue flags bypass to {first}"),
        many => format!("counter queue flags bypass to {first}-{}", first.saturating_add(many - 1)),
    }
}

fn set(items: impl IntoIterator<Item = impl Display>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    format!("{{ {} }}", items.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(
            text.contains("iifname { \"br-lan\", \"eth1\" } udp dport { 443, 8443 } goto help")
        );
        assert!(
            text.contains("oifname { \"br-lan\", \"eth1\" } udp sport { 443, 8443 } goto help")
        );
        assert!(text.contains("counter queue flags bypass to 5443\n"));
        let text = ruleset(&Config { queue: 7, queues: 3, ..config() });
        assert!(text.contains("bypass to 7-9\n"), "{text}");
    }

    #[test]
    fn a_network_without_a_device_has_no_packets() {
        let nobody = ruleset(&Config { device: vec![], ..config() });
        assert!(!nobody.contains("help"), "{nobody}");
        let all = ruleset(&Config { device: vec![], network: vec![], ..config() });
        assert!(all.contains("\t\tudp sport { 443, 8443 } goto help"), "{all}");
    }

    #[test]
    fn a_flow_is_either_helped_or_let_go() {
        let text = ruleset(&Config { bypass_mark: 0x100, helped_mark: 0x200, ..config() });
        assert!(text.contains("ct mark & 0x00000100 != 0 return"), "{text}");
        assert!(text.contains("ct mark set ct mark | 0x00000200"), "{text}");
        assert!(text.contains("ct mark set ct mark & 0xfffffcff | 0x00000100"), "{text}");
        let fw4 = no_offload(&Config { helped_mark: 0x200, ..config() });
        assert!(fw4.contains("inet fw4 forward ct mark & 0x00000200 != 0 ct state"), "{fw4}");
    }

    #[test]
    fn bridged_rules_know_ports_and_whole_bridges() {
        let text = ruleset(&Config { mode: Mode::Bridged, port: vec![443], ..config() });
        assert!(text.starts_with("add table bridge pemi\n"));
        for part in [
            "oifname { \"br-lan\", \"eth1\" } udp sport { 443 } goto help",
            "meta ibrname { \"br-lan\", \"eth1\" } udp dport { 443 } goto help",
            "ip saddr . ip daddr . udp sport . udp dport @bypassed4 return",
            "add @bypassed6 { ip6 daddr . ip6 saddr . udp dport . udp sport }",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
