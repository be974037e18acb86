// SPDX-License-Identifier: GPL-2.0-or-later
//! The rules for packets that are routed, described once and written down for nft or
//! for iptables.

use std::fmt::Write;

use super::{AFTER_FILTERS, Devices, MET, TABLE, clean_set, queue, queues, set, share};
use crate::config::{Config, Share};

/// The longest TCP segment without data: IPv6's header, TCP's, and as many options as there can be.
const WITHOUT_DATA: u32 = 40 + 20 + 40;

/// Priority of the chains that translate servers' addresses.
const DSTNAT: i32 = -100;

/// Whose connections a rule is about.
#[derive(Clone, Copy)]
enum Flows<'a> {
    /// What may be QUIC, with a server's port that is one of these.
    Quic(&'a [u16]),
    /// Everything over UDP.
    Udp,
    /// TCP; of what clients send only what may begin a connection or tell of a loss. Their data
    /// has no reason to wait for the daemon: nothing of it is sent again or held.
    Tcp,
}

/// The connections whose packets come to the queue.
fn flows(config: &Config) -> Vec<Flows<'_>> {
    if config.others() { vec![Flows::Udp, Flows::Tcp] } else { vec![Flows::Quic(&config.port)] }
}

/// What a rule asks of a packet.
enum Test<'a> {
    /// A client's packet to a server, of a connection that a client began.
    ToServer(Devices<'a>, Flows<'a>),
    /// A server's packet to a client, of such a connection; so both have spoken.
    ToClient(Devices<'a>, Flows<'a>),
    /// A packet for one of these ports of servers.
    ForServers(&'a [u16]),
    /// A packet with this mark.
    Marked(u32),
    /// A packet of a connection with this mark, or without it.
    OfConnection(u32),
    NotOfConnection(u32),
    /// A packet of a connection whose server has the same address for the client and for us.
    NotTranslated,
    /// A packet from one of these clients.
    From(Share, share::Version),
}

/// What becomes of a packet that passes all tests of a rule.
enum Act {
    /// It goes through the rules of [`Chain::Help`].
    Help,
    /// It goes through [`Chain::Short`], and no more rules of this chain.
    Shorten,
    /// No more rules of this chain.
    Return,
    /// The same, in a chain of a hook.
    Accept,
    /// Connection tracking does not look at it.
    Untracked,
    /// Its connection gets this mark.
    Mark(u32),
    /// The same, and the kernel tells us, once.
    Meet(u32),
    /// Its connection loses one mark and gets another, and no more rules.
    Exchange { clear: u32, set: u32 },
    /// It waits for the daemon, in one of the queues with the numbers from this to that.
    Queue(u16, u16),
}

/// The chains, in the order in which they are written down.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    Claim,
    Forward,
    Help,
    /// Empty until [`shortcut`] says by which devices packets come; in nft alone.
    Short,
    Output,
}

struct Rule<'a> {
    tests: Vec<Test<'a>>,
    act: Act,
}

/// Whether the daemon sends packets in the place of those in the queue. They do not come by where
/// the kernel gives a server the address that its client knows, so such flows are left out.
fn sends(config: &Config) -> bool {
    config.reports()
}

/// Tests for the packets that wait for the daemon. What a ring shows does not.
fn queued_of<'a>(config: &'a Config, devices: Devices<'a>) -> impl Iterator<Item = Test<'a>> {
    let seen = config.rings();
    ours_of(config, devices).filter(move |test| !(seen && matches!(test, Test::ToClient(..))))
}

/// Tests for the packets of all connections that may be helped.
fn ours_of<'a>(config: &'a Config, devices: Devices<'a>) -> impl Iterator<Item = Test<'a>> {
    let both = move |flows| [Test::ToServer(devices, flows), Test::ToClient(devices, flows)];
    flows(config).into_iter().flat_map(both)
}

fn rules(config: &Config, chain: Chain) -> Vec<Rule<'_>> {
    let Config { mark, bypass_mark, helped_mark, .. } = *config;
    let devices = Devices::of(config);
    let rule = |tests, act| Rule { tests, act };
    match chain {
        Chain::Claim | Chain::Forward | Chain::Help if devices == Devices::None => Vec::new(),
        // The first rule of fw4's forward chain puts connections into its flowtable, past
        // which no packet comes: they have to be marked before it (`no_offload`).
        Chain::Claim => {
            let claimed = rule(vec![Test::OfConnection(helped_mark)], Act::Return);
            let claim = |test| {
                let mut tests = vec![test, Test::NotOfConnection(bypass_mark)];
                tests.extend(sends(config).then_some(Test::NotTranslated));
                rule(tests, Act::Mark(helped_mark))
            };
            [claimed].into_iter().chain(ours_of(config, devices).map(claim)).collect()
        }
        // All others leave by one test: each costs a small router fifty instructions a packet.
        Chain::Forward => {
            let others = rule(vec![Test::NotOfConnection(helped_mark)], Act::Return);
            // Of which devices they are, `claim` has asked: names take longest to compare.
            let ours = queued_of(config, Devices::Any).map(|test| rule(vec![test], Act::Help));
            let seen = ours_of(config, Devices::Any).filter(|_| config.rings());
            let seen = seen.filter(|test| matches!(test, Test::ToClient(..)));
            let short = seen.map(|test| rule(vec![test], Act::Shorten));
            [others].into_iter().chain(ours).chain(short).collect()
        }
        // The daemon adds bypass_mark to the mark of the packet with whose verdict it lets a flow
        // go, and has the kernel take that packet through this hook once more.
        Chain::Help => {
            let exchange = Act::Exchange { clear: helped_mark, set: bypass_mark };
            let exchange = rule(vec![Test::Marked(bypass_mark)], exchange);
            [exchange].into_iter().chain(to_queues(config)).collect()
        }
        Chain::Short => Vec::new(),
        // Copies are no new packets to connection tracking, except on their way up,
        // where they have to be translated like those before them.
        Chain::Output => vec![
            rule(vec![Test::Marked(mark), Test::ForServers(&config.port)], Act::Accept),
            rule(vec![Test::Marked(mark)], Act::Untracked),
        ],
    }
}

/// The rules that bring packets to the queues. Where rings show what goes to clients, each queue has
/// clients of its own, and who is none of the others' is the last one's.
fn to_queues(config: &Config) -> Vec<Rule<'_>> {
    let (first, last) = queues(config);
    if !config.rings() || first == last {
        return vec![Rule { tests: vec![], act: Act::Queue(first, last) }];
    }
    let rule = |queue, tests| Rule { tests, act: Act::Queue(queue, queue) };
    let own = (first..last).flat_map(|queue| {
        share::VERSIONS.map(|version| rule(queue, vec![Test::From(config.share(queue), version)]))
    });
    own.chain([rule(last, vec![])]).collect()
}

/// The inside of the nft table.
pub fn nft(config: &Config) -> String {
    let mut text = String::new();
    if config.gates() {
        text = clean_set("clean4", "ipv4_addr") + &clean_set("clean6", "ipv6_addr");
    }
    for (chain, head) in [
        (Chain::Claim, format!("claim {{\n\t\t{}", base("filter", "forward", "mangle"))),
        (Chain::Forward, format!("forward {{\n\t\t{}", base("filter", "forward", AFTER_FILTERS))),
        (Chain::Help, "help {".into()),
        (Chain::Short, "short {".into()),
        (Chain::Output, output()),
    ] {
        let rules = rules(config, chain);
        if chain == Chain::Help && rules.is_empty() || chain == Chain::Short && !config.rings() {
            continue;
        }
        let gap = if chain == Chain::Claim { "" } else { "\n" };
        let _ = writeln!(text, "{gap}\tchain {head}");
        if config.gates() && chain == Chain::Claim && !rules.is_empty() {
            text.push_str(&clean(config));
        }
        write_rules(&mut text, &rules);
    }
    text
}

/// Has packets to clients that a ring shows, when they come by one of these devices, go past all
/// chains. What their clients send comes by all of them as before, since it comes by other devices,
/// so it is the queue's, and connection tracking knows of it. A flow that is let go has lost its
/// mark, so that it does not come here again. Without devices, takes that back.
pub fn shortcut(devices: &[String]) -> String {
    let start = format!("flush chain inet {TABLE} short\n");
    let table = format!("flowtable inet {TABLE} {FLOWTABLE}");
    if devices.is_empty() {
        // What is not there cannot be deleted.
        return format!("{start}add {table} {{ hook ingress priority filter; }}\ndelete {table}\n");
    }
    let devices = set(devices.iter().map(|name| format!("\"{name}\"")));
    format!(
        "{start}add {table} {{ hook ingress priority filter; devices = {devices}; }}\n\
         add rule inet {TABLE} short flow add @{FLOWTABLE}\n"
    )
}

/// The rest of a chain.
fn write_rules(text: &mut String, rules: &[Rule]) {
    for rule in rules {
        let tests = rule.tests.iter().map(nft_test);
        let words: Vec<String> = tests.chain([nft_act(&rule.act)]).collect();
        let _ = writeln!(text, "\t\t{}", words.join(" "));
    }
    text.push_str("\t}\n");
}

/// The inside of the table while nobody's packets are to be seen. Of a chain that translates
/// addresses the kernel asks only with the first packet of a connection, and no more once another
/// one has translated it. So where connections whose server is translated are left out this chain
/// comes after `dstnat`.
pub fn resting(config: &Config) -> String {
    let priority = DSTNAT + if sends(config) { 10 } else { -10 };
    let mut text = format!("\tquota {MET} {{\n\t\tover 1 bytes\n\t}}\n\n\tchain sentry {{\n\t\t");
    let _ = writeln!(text, "{}", base("nat", "prerouting", priority));
    if config.gates() {
        text.push_str("\t\tct original ip saddr @clean4 return\n");
        text.push_str("\t\tct original ip6 saddr @clean6 return\n");
    }
    let devices = Devices::of(config);
    let begins = |test: &Test| matches!(test, Test::ToServer(..));
    let tests = ours_of(config, devices).filter(|test| devices != Devices::None && begins(test));
    let claim = |test| Rule { tests: vec![test], act: Act::Meet(config.helped_mark) };
    write_rules(&mut text, &tests.map(claim).collect::<Vec<_>>());
    let _ = writeln!(text, "\n\tchain {}", output());
    write_rules(&mut text, &rules(config, Chain::Output));
    text
}

fn output() -> String {
    format!("output {{\n\t\t{}", base("filter", "output", "raw"))
}

/// The first rules of the first chain, for clean clients, which iptables has no sets of: those who
/// began a connection, whatever the direction of the packet, and before any translation. Their
/// connections have neither mark, so all other chains leave them alone: helped ones go there again,
/// and who was let go is claimed as any other when its client begins to lose. What is never claimed
/// need not be looked up.
fn clean(config: &Config) -> String {
    let unmark = !(config.bypass_mark | config.helped_mark);
    let never = if config.others() { "" } else { "\t\tmeta l4proto != udp return\n" };
    let act = format!("ct mark set ct mark & {unmark:#010x} return");
    format!(
        "{never}\t\tct original ip saddr @clean4 {act}\n\t\tct original ip6 saddr @clean6 {act}\n"
    )
}

fn base(kind: &str, hook: &str, priority: impl std::fmt::Display) -> String {
    format!("type {kind} hook {hook} priority {priority}; policy accept;")
}

fn nft_test(test: &Test) -> String {
    let of = |word: &str, devices: &Devices| match devices {
        Devices::Of(names) => {
            format!("{word} {} ", set(names.iter().map(|name| format!("\"{name}\""))))
        }
        Devices::Any | Devices::None => String::new(),
    };
    match test {
        Test::ToServer(devices, flows) => {
            let flows = match flows {
                Flows::Quic(ports) => format!("udp dport {}", set(*ports)),
                Flows::Udp => "meta l4proto udp".into(),
                Flows::Tcp => {
                    format!("tcp flags & (fin | rst | psh) == 0 meta length <= {WITHOUT_DATA}")
                }
            };
            format!("{}{flows} ct direction original", of("iifname", devices))
        }
        Test::ToClient(devices, flows) => {
            let flows = match flows {
                Flows::Quic(ports) => format!("udp sport {}", set(*ports)),
                Flows::Udp => "meta l4proto udp".into(),
                Flows::Tcp => "meta l4proto tcp".into(),
            };
            format!("{}{flows} ct state established ct direction reply", of("oifname", devices))
        }
        Test::ForServers(ports) => format!("udp dport {}", set(*ports)),
        Test::Marked(mark) => format!("meta mark & {mark:#010x} != 0"),
        Test::OfConnection(mark) => format!("ct mark & {mark:#010x} != 0"),
        Test::NotOfConnection(mark) => format!("ct mark & {mark:#010x} == 0"),
        Test::NotTranslated => "ct status & dnat == 0".into(),
        Test::From(clients, version) => share::nft(*clients, *version),
    }
}

fn nft_act(act: &Act) -> String {
    match act {
        Act::Help => "goto help".into(),
        Act::Shorten => "goto short".into(),
        Act::Return => "return".into(),
        Act::Accept => "accept".into(),
        Act::Untracked => "notrack".into(),
        Act::Mark(set) => format!("ct mark set ct mark | {set:#010x}"),
        Act::Meet(set) => format!("{} quota name \"{MET}\"", nft_act(&Act::Mark(*set))),
        Act::Exchange { clear, set } => {
            format!("ct mark set ct mark & {:#010x} | {set:#010x} return", !clear & !set)
        }
        Act::Queue(first, last) => queue((*first, *last)),
    }
}

/// The name of the flowtable for what a ring shows.
const FLOWTABLE: &str = "shown";

/// Name of our chain beside those of iptables.
const OURS: &str = "pemi";

/// For `iptables-nft-restore --noflush`. The table `security` comes after `filter`.
pub fn iptables(config: &Config) -> String {
    let mut text = String::new();
    for (table, chains) in [
        ("raw", &[(Chain::Output, "OUTPUT")][..]),
        ("mangle", &[(Chain::Claim, "FORWARD")]),
        ("security", &[(Chain::Forward, "FORWARD"), (Chain::Help, OURS)]),
    ] {
        let _ = writeln!(text, "*{table}");
        if table == "security" {
            let _ = writeln!(text, ":{OURS} - [0:0]");
        }
        for (chain, name) in chains {
            for rule in rules(config, *chain) {
                for act in iptables_acts(&rule.act) {
                    for tests in alternatives(&rule.tests) {
                        let _ = writeln!(text, "-A {name}{tests} {act}");
                    }
                }
            }
        }
        text.push_str("COMMIT\n");
    }
    text
}

/// iptables knows no sets: a rule for each combination.
fn alternatives(tests: &[Test]) -> Vec<String> {
    tests.iter().fold(vec![String::new()], |lines, test| {
        let each = iptables_test(test);
        lines
            .iter()
            .flat_map(|line| each.iter().map(move |test| format!("{line} {test}")))
            .collect()
    })
}

fn iptables_test(test: &Test) -> Vec<String> {
    let ports = |side: &str, ports: &[u16]| -> Vec<String> {
        ports.iter().map(|port| format!("-p udp {side} {port}")).collect()
    };
    let each = |flag: &str, devices: &Devices, flows: Vec<String>, tracked: &str| {
        let devices: Vec<String> = match devices {
            Devices::Of(names) => names.iter().map(|name| format!("{flag} {name} ")).collect(),
            Devices::Any | Devices::None => vec![String::new()],
        };
        let with = |device: &String| -> Vec<String> {
            flows.iter().map(|flow| format!("{device}{flow}{tracked}")).collect()
        };
        devices.iter().flat_map(with).collect()
    };
    match test {
        Test::ToServer(devices, flows) => {
            let flows = match flows {
                Flows::Quic(of) => ports("--dport", of),
                Flows::Udp => vec!["-p udp".into()],
                Flows::Tcp => vec![format!(
                    "-p tcp --tcp-flags FIN,RST,PSH NONE -m length --length 0:{WITHOUT_DATA}"
                )],
            };
            each("-i", devices, flows, " -m conntrack --ctdir ORIGINAL")
        }
        Test::ToClient(devices, flows) => {
            let flows = match flows {
                Flows::Quic(of) => ports("--sport", of),
                Flows::Udp => vec!["-p udp".into()],
                Flows::Tcp => vec!["-p tcp".into()],
            };
            each("-o", devices, flows, " -m conntrack --ctstate ESTABLISHED --ctdir REPLY")
        }
        Test::ForServers(of) => ports("--dport", of),
        Test::Marked(mark) => vec![format!("-m mark --mark {mark:#010x}/{mark:#010x}")],
        Test::OfConnection(mark) => vec![format!("-m connmark --mark {mark:#010x}/{mark:#010x}")],
        Test::NotOfConnection(mark) => {
            vec![format!("-m connmark ! --mark {mark:#010x}/{mark:#010x}")]
        }
        Test::NotTranslated => vec!["-m conntrack ! --ctstate DNAT".into()],
        Test::From(clients, version) => share::iptables(*clients, *version),
    }
}

/// An act is one rule or several after each other, all with the same tests.
fn iptables_acts(act: &Act) -> Vec<String> {
    let marked =
        |clear: u32, set: u32| format!("-j CONNMARK --set-xmark {set:#010x}/{clear:#010x}");
    vec![match act {
        Act::Help => format!("-g {OURS}"),
        Act::Return => "-j RETURN".into(),
        Act::Accept => "-j ACCEPT".into(),
        Act::Untracked => "-j CT --notrack".into(),
        // There the rules never rest.
        Act::Mark(set) | Act::Meet(set) => marked(*set, *set),
        Act::Exchange { clear, set } => {
            return vec![marked(clear | set, *set), "-j RETURN".into()];
        }
        // There is no flowtable.
        Act::Shorten => return Vec::new(),
        Act::Queue(first, last) if first == last => {
            format!("-j NFQUEUE --queue-num {first} --queue-bypass")
        }
        Act::Queue(first, last) => {
            format!("-j NFQUEUE --queue-balance {first}:{last} --queue-bypass")
        }
    }]
}
