// SPDX-License-Identifier: GPL-2.0-or-later
//! Keeps our table in the kernel's ruleset while the daemon runs.
//!
//! `service firewall stop` of OpenWrt deletes every table there is, and only
//! those who listen to the notifications of nf_tables learn of it. So the daemon listens.
//! Rules are loaded by `nft`, which every router with a firewall has.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::config::Config;
use crate::firewall::batch;
use crate::firewall::clean::{self, Member};
use crate::firewall::nft::{self, nft};
use crate::firewall::recall::recall;
use crate::firewall::rest::Calm;
use crate::firewall::rules::{self, Family, TABLE};
use crate::sys::socket::{self, Buffer};

/// From the kernel's headers; not in every libc's.
const NFNLGRP_NFTABLES: u32 = 7;
const NFNL_SUBSYS_NFTABLES: u8 = 10;
const NFT_MSG_NEWTABLE: u8 = 0;
const NFT_MSG_DELTABLE: u8 = 2;
const NFT_MSG_NEWOBJ: u8 = 18;
/// Of a table's name, in messages about tables and about what is in them.
const NFTA_TABLE_NAME: u16 = 1;
/// Notifications of large sets of other tables come by here, too.
const RECEIVE_BUFFER: u32 = 256 << 10;
/// The time until our table is put back: whoever removed it may be about to stop us as well.
const PATIENCE: Duration = Duration::from_millis(300);
/// The times between two attempts: the first one, and the longest.
const RETRY: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];

/// Our table.
#[derive(Debug)]
pub struct Firewall {
    family: Family,
    ruleset: String,
    notifications: File,
    buffer: Box<[u8]>,
    /// For the sets of clean clients, and who is in them; none where there are no sets.
    sets: File,
    clean: Vec<Member>,
    gates: bool,
    /// The devices, with their indexes, by which packets come that a ring shows.
    short: Vec<(u32, String)>,
    /// Flows that were let go beside a ring.
    let_go: u32,
    /// The rules at rest, if they may; since when it is calm, and how many of netfilter's
    /// sockets are our own.
    resting: Option<String>,
    calm: Calm,
    sockets: usize,
    is_resting: bool,
    /// When to load the rules again.
    due: Option<Instant>,
    retry: Duration,
    error: Option<String>,
}

impl Firewall {
    /// Loads the rules. If they cannot be loaded that is no error here: the reason may pass,
    /// and [`Firewall::error`] gives it.
    pub fn start(config: &Config) -> io::Result<Firewall> {
        let fd = socket::netlink(libc::NETLINK_NETFILTER, NFNLGRP_NFTABLES)?;
        socket::set_buffer(fd.as_fd(), Buffer::Receive, RECEIVE_BUFFER);
        let family = Family::of(config.mode);
        // A table that a killed daemon of the other mode left behind. Kernels
        // without that family refuse, and have none.
        let _ = nft(&rules::removal(family.other()));
        let mut firewall = Firewall {
            family,
            ruleset: rules::ruleset(config),
            notifications: File::from(fd),
            buffer: vec![0; 32 << 10].into_boxed_slice(),
            sets: File::from(socket::raw(libc::AF_NETLINK, libc::NETLINK_NETFILTER)?),
            clean: Vec::new(),
            gates: config.gates(),
            short: Vec::new(),
            let_go: 0,
            resting: rules::resting(config),
            calm: Calm::default(),
            sockets: sockets(config),
            is_resting: false,
            due: None,
            retry: RETRY[0],
            error: None,
        };
        firewall.load();
        Ok(firewall)
    }

    /// Changes the rules if `config` asks for other ones.
    pub fn configure(&mut self, config: &Config) {
        self.gates = config.gates();
        self.resting = rules::resting(config);
        self.sockets = sockets(config);
        let ruleset = rules::ruleset(config);
        if ruleset != self.ruleset {
            self.ruleset = ruleset;
            self.retry = RETRY[0];
            self.load();
        }
    }

    /// Lets the packets of these clients pass as they are, and of nobody else. Those of who is
    /// none of them any more come by the rules again, also if they were offloaded; and those of who
    /// has become one, once, to lose the mark of flows that were let go: with it nobody would claim
    /// them when their client begins to lose something.
    pub fn let_pass(&mut self, clean: Vec<Member>) {
        let changed = self.clean != clean;
        self.clean = clean;
        if changed && self.is_resting {
            self.load();
        } else {
            self.fill();
        }
        if changed {
            call_back();
        }
    }

    /// Has packets that a ring shows come by the shortest way, where they come by these devices.
    pub fn shorten(&mut self, devices: Vec<(u32, String)>) {
        if self.short != devices {
            self.short = devices;
            self.cut();
        }
    }

    /// So many flows were let go beside rings. They are to come by the rules once, since others that
    /// forward them faster, hardware even, get them there.
    pub fn let_go(&mut self, flows: u32) {
        if flows != self.let_go && !self.short.is_empty() {
            call_back();
        }
        self.let_go = flows;
    }

    fn cut(&self) {
        let names: Vec<String> = self.short.iter().map(|(_, name)| name.clone()).collect();
        if self.error.is_none()
            && !self.is_resting
            && let Err(error) = nft(&rules::shortcut(&names))
        {
            log::debug!("what a ring shows comes by all rules: {error}");
        }
    }

    /// One more second is over, in which nobody came, nor a packet by the queue, or they did. Where
    /// clients pass that lose nothing, and for long nobody else was there, the rules rest.
    pub fn second(&mut self, calm: bool) {
        if self.is_resting && !calm {
            self.load();
        }
        let calm = calm && !self.passing().is_empty() && !self.is_resting;
        let may_rest = self.calm.second(calm, self.sockets);
        if let Some(rules) = self.resting.as_ref().filter(|_| may_rest) {
            match nft(rules) {
                Ok(()) => self.is_resting = true,
                // They stay as they are, which costs packets time and nothing else.
                Err(error) => log::debug!("the firewall rules cannot rest: {error}"),
            }
        }
    }

    /// Whether the rules rest, so that nobody's packets come by the queue.
    pub fn is_resting(&self) -> bool {
        self.is_resting
    }

    /// Who passes: nobody where the rules have no sets, or are not there.
    pub fn passing(&self) -> &[Member] {
        if self.gates && self.error.is_none() { &self.clean } else { &[] }
    }

    /// Fills the sets. Where the table has just gone it is put back, and they with it.
    fn fill(&self) {
        if self.gates
            && self.error.is_none()
            && let Err(error) = clean::write(&self.sets, self.family, &self.clean)
        {
            log::debug!("clients without losses pass by the queue: {error}");
        }
    }

    /// Why the rules are not there.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Takes the rules out, so that no more packets come by a queue. The table goes with the value,
    /// when nothing waits in a queue any more.
    pub fn retire(&self) {
        if self.error.is_none()
            && let Err(error) = batch::flush(&self.sets, self.family)
        {
            log::debug!("packets come by the queue until the table is removed: {error}");
        }
    }

    /// When [`Firewall::work`] is to be called, even without a notification.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes notifications and does what is due.
    pub fn work(&mut self) {
        let (mut there, mut met) = (None, false);
        loop {
            match self.notifications.read(&mut self.buffer) {
                Ok(len) => {
                    there = table_change(&self.buffer[..len], self.family).or(there);
                    met |= has_met(&self.buffer[..len]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Notifications were lost, and our table may have been among them.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    (there, met) = (Some(false), true);
                }
                Err(_) => break,
            }
        }
        if met && self.is_resting {
            self.load();
        }
        match there {
            Some(true) => self.due = None,
            Some(false) => self.due = Some(Instant::now() + PATIENCE),
            None => {}
        }
        if self.due.is_some_and(|due| due <= Instant::now()) {
            self.due = None;
            if self.error.is_some() {
                self.load();
            } else if !self.is_there() {
                log::warn!("the firewall table of pemi was removed; it is put back");
                self.load();
            }
        }
    }

    fn is_there(&self) -> bool {
        nft(&format!("list table {} {TABLE}\n", self.family)).is_ok()
    }

    /// Loads the rules into the table that is there, which a killed daemon may have left: with a
    /// chain the kernel would drop every packet that waits in any queue. Into a new one if they
    /// do not fit what is in it, as after an upgrade.
    fn load(&mut self) {
        self.is_resting = false;
        let loaded = match nft(&self.ruleset) {
            Err(nft::Error::Refused(_)) => nft(&(rules::removal(self.family) + &self.ruleset)),
            other => other,
        };
        match loaded {
            Ok(()) => {
                (self.error, self.due, self.retry) = (None, None, RETRY[0]);
                self.fill();
                if !self.short.is_empty() {
                    self.cut();
                }
            }
            Err(error) => {
                let error = format!("firewall rules cannot be loaded: {error}");
                if self.error.as_ref() != Some(&error) {
                    log::error!("{error}; packets pass unhelped");
                }
                self.error = Some(error);
                self.due = Some(Instant::now() + self.retry);
                self.retry = (self.retry * 2).min(RETRY[1]);
            }
        }
    }
}

/// Has offloaded flows come by the rules once.
fn call_back() {
    if let Err(error) = recall() {
        log::debug!("offloaded flows stay where they are: {error}");
    }
}

impl Drop for Firewall {
    fn drop(&mut self) {
        if let Err(error) = nft::within(nft::FAREWELL, &rules::removal(self.family)) {
            log::error!("table {} {TABLE} cannot be removed: {error}", self.family);
        }
    }
}

impl AsFd for Firewall {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.notifications.as_fd()
    }
}

/// One for each queue, one for what changes in the tables and one for the sets.
fn sockets(config: &Config) -> usize {
    usize::from(config.queues) + 2
}

/// Whether there is a notification in a datagram that our quota is exceeded. The kernel itself
/// says so; of one that somebody has made a program has its number there.
fn has_met(mut datagram: &[u8]) -> bool {
    let mut met = false;
    while let Some((message, rest)) = message(datagram) {
        datagram = rest;
        met |=
            message.kind == NFT_MSG_NEWOBJ && message.sender == 0 && names_us(message.attributes);
    }
    met
}

/// Whether the notifications of one datagram end with our table there or gone;
/// `None` if they are not about it.
fn table_change(mut datagram: &[u8], family: Family) -> Option<bool> {
    let mut there = None;
    while let Some((message, rest)) = message(datagram) {
        datagram = rest;
        let is_there = match message.kind {
            NFT_MSG_NEWTABLE => true,
            NFT_MSG_DELTABLE => false,
            _ => continue,
        };
        if message.family == family.number() && names_us(message.attributes) {
            there = Some(is_there);
        }
    }
    there
}

struct Message<'a> {
    kind: u8,
    sender: u32,
    family: u8,
    attributes: &'a [u8],
}

/// The first nf_tables message, and what follows it.
fn message(data: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let len = u32::from_ne_bytes(*data.first_chunk()?) as usize;
    let whole = data.get(..len)?;
    let rest = data.get((len + 3) & !3..).unwrap_or_default();
    let kind = u16::from_ne_bytes(*whole.get(4..)?.first_chunk()?).to_be_bytes();
    let kind = if kind[0] == NFNL_SUBSYS_NFTABLES { kind[1] } else { u8::MAX };
    let sender = u32::from_ne_bytes(*whole.get(12..)?.first_chunk()?);
    Some((Message { kind, sender, family: *whole.get(16)?, attributes: whole.get(20..)? }, rest))
}

fn names_us(mut attributes: &[u8]) -> bool {
    while let (Some(len), Some(kind)) = (word(attributes, 0), word(attributes, 2)) {
        let Some(value) = attributes.get(4..usize::from(len)) else { return false };
        if kind == NFTA_TABLE_NAME {
            let name = CStr::from_bytes_until_nul(value);
            return name.is_ok_and(|name| name.to_bytes() == TABLE.as_bytes());
        }
        attributes = attributes.get((usize::from(len) + 3) & !3..).unwrap_or_default();
    }
    false
}

fn word(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notification(kind: u8, family: u8, name: &str) -> Vec<u8> {
        let mut attributes = vec![];
        for (kind, value) in [(2u16, vec![0; 4]), (1, [name.as_bytes(), &[0]].concat())] {
            attributes.extend((value.len() as u16 + 4).to_ne_bytes());
            attributes.extend(kind.to_ne_bytes());
            attributes.extend(&value);
            attributes.resize((attributes.len() + 3) & !3, 0);
        }
        let mut bytes = (20 + attributes.len() as u32).to_ne_bytes().to_vec();
        bytes.extend((u16::from(NFNL_SUBSYS_NFTABLES) << 8 | u16::from(kind)).to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend([family, 0, 0, 0]);
        bytes.extend(attributes);
        bytes
    }

    #[test]
    fn the_last_word_about_our_table_counts() {
        let (new, gone) = (notification(0, 1, "pemi"), notification(2, 1, "pemi"));
        let others =
            [notification(2, 7, "pemi"), notification(2, 1, "fw4"), notification(6, 1, "")];
        let change = |parts: &[&[u8]]| table_change(&parts.concat(), Family::Inet);
        assert_eq!(change(&[&gone]), Some(false));
        assert_eq!(change(&[&gone, &new]), Some(true));
        assert_eq!(change(&[&new, &gone, &others.concat()]), Some(false));
        assert_eq!(change(&[&others.concat()]), None);
        assert_eq!(table_change(&notification(2, 7, "pemi"), Family::Bridge), Some(false));
    }

    #[test]
    fn the_kernel_tells_of_whom_it_has_met() {
        // By the family of the packet.
        let met = notification(18, 2, "pemi");
        assert!(has_met(&[notification(0, 1, "fw4"), met.clone()].concat()));
        let mut made = met.clone();
        made[12] = 7;
        for other in [made, notification(18, 2, "fw4"), notification(0, 1, "pemi")] {
            assert!(!has_met(&other));
        }
        (0..met.len()).for_each(|cut| assert!(!has_met(&met[..cut])));
    }

    #[test]
    fn cut_and_nonsensical_notifications_are_survived() {
        let whole = notification(2, 1, "pemi");
        for cut in 0..whole.len() {
            assert_eq!(table_change(&whole[..cut], Family::Inet), None);
        }
        for (at, value) in (0..whole.len()).flat_map(|at| [0, 1, 0x7f, 0xff].map(|v| (at, v))) {
            let mut bytes = whole.clone();
            bytes[at] = value;
            table_change(&bytes, Family::Inet);
        }
        assert_eq!(table_change(&[0; 64], Family::Inet), None);
    }
}
