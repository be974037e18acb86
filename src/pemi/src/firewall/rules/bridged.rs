// SPDX-License-Identifier: GPL-2.0-or-later
//! The rules for packets that pass between the ports of a bridge.
//!
//! Connection tracking does not see them unless asked to, so flows that are let go
//! are remembered in sets, and that both ends of a flow have spoken is for the engine
//! to see. Copies are sent out of a port and meet no hook.

use std::fmt::Write;

use super::{AFTER_FILTERS, Devices, clean_set, queue, queues, set};
use crate::config::Config;

/// Flows remembered as let go, each of them in both directions.
const BYPASSED: u32 = 4096;
/// After this a flow that was let go is looked at again.
const BYPASSED_FOR: &str = "5m";

/// The inside of the table.
pub fn nft(config: &Config) -> String {
    let bypass_mark = config.bypass_mark;
    let (mut sets, mut look, mut learn) = (String::new(), String::new(), String::new());
    if config.gates() {
        // Of stations, whose addresses on the internet a bridge need not know.
        sets = clean_set("clean", "ether_addr");
    }
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
            let _ = writeln!(learn, "\t\tadd @bypassed{version} {{ {tuple} }}");
        }
    }
    let forward = forward(config);
    // The packet with whose verdict the daemon lets a flow go comes through this hook once more.
    let help = match forward.is_empty() {
        true => String::new(),
        false => format!(
            "\tchain learn {{\n{learn}\t}}\n\n\tchain help {{
\t\tmeta mark & {bypass_mark:#010x} != 0 goto learn\n{look}\t\t{}\n\t}}\n",
            queue(queues(config))
        ),
    };
    format!(
        "{sets}{help}
\tchain forward {{
\t\ttype filter hook forward priority {AFTER_FILTERS}; policy accept;
{forward}\t}}
"
    )
}

/// Which packets are ours. A device may be a port of a bridge, or a bridge: then all of
/// its ports.
fn forward(config: &Config) -> String {
    let ports = set(&config.port);
    let [from_clean, to_clean] = match config.gates() {
        true => ["ether saddr != @clean ", "ether daddr != @clean "],
        false => ["", ""],
    };
    let both = |from: &str, to: &str| {
        format!(
            "\t\t{from}udp dport {ports} {from_clean}goto help\n\
             \t\t{to}udp sport {ports} {to_clean}goto help\n"
        )
    };
    match Devices::of(config) {
        Devices::None => String::new(),
        Devices::Any => both("", ""),
        Devices::Of(devices) => {
            let devices = set(devices.iter().map(|name| format!("\"{name}\"")));
            let of = |from, to| both(&format!("{from} {devices} "), &format!("{to} {devices} "));
            of("iifname", "oifname") + &of("meta ibrname", "meta obrname")
        }
    }
}
