// SPDX-License-Identifier: GPL-2.0-or-later
//! Network devices, and which of them belong together.

use crate::netlink::{Message, Question, number32, text};

/// Messages: a device is new or another, it is gone, tell of it (RTM_NEWLINK and so on).
const NEW: u16 = 16;
const GONE: u16 = 17;
const GET: u16 = 18;
/// Attribute: its name (IFLA_IFNAME).
const NAME: u16 = 3;
/// Attribute: the device under this one, that of a VLAN for instance (IFLA_LINK).
const LOWER: u16 = 5;
/// Attribute: the bridge that it is a port of (IFLA_MASTER).
const MASTER: u16 = 10;
/// Attribute: what to tell beside the usual (IFLA_EXT_MASK), here less: no counters
/// (RTEXT_FILTER_SKIP_STATS).
const EXTENT: u16 = 29;
const NO_COUNTERS: u32 = 1 << 3;

/// A network device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// The number of the bridge whose port it is.
    pub master: Option<u32>,
    /// The number of the device under it.
    pub lower: Option<u32>,
}

impl Link {
    /// The question for a device: whether there is one of this name, and what.
    pub fn question(name: &str, sequence: u32) -> Vec<u8> {
        asked(0, sequence).with(NAME, &[name.as_bytes(), b"\0"].concat()).finish()
    }

    /// The same for one of this number.
    pub fn question_for(index: u32, sequence: u32) -> Vec<u8> {
        asked(index, sequence).finish()
    }

    /// From an answer.
    pub fn read(message: &Message<'_>) -> Option<Link> {
        if message.kind != NEW {
            return None;
        }
        // struct ifinfomsg: family, type, number, flags.
        let (head, attributes) = message.headed::<16>()?;
        let index = number32(&head[4..8])?;
        let mut link = Link { index, name: String::new(), master: None, lower: None };
        for (kind, payload) in attributes {
            match kind {
                NAME => link.name = text(payload),
                MASTER => link.master = number32(payload),
                LOWER => link.lower = number32(payload),
                _ => {}
            }
        }
        Some(link)
    }

    /// Whether this says that a device is another than before, or gone.
    pub fn is_news(message: &Message<'_>) -> bool {
        matches!(message.kind, NEW | GONE)
    }
}

fn asked(index: u32, sequence: u32) -> Question {
    let mut head = [0; 16];
    head[4..8].copy_from_slice(&index.to_ne_bytes());
    Question::one_headed(GET, sequence, &head).with(EXTENT, &NO_COUNTERS.to_ne_bytes())
}
