// SPDX-License-Identifier: GPL-2.0-or-later
//! Which number nl80211 has in this kernel, and which its groups of events have.

use crate::netlink::{Attributes, Message, Question, number16, number32, text};

/// Its name.
const NAME: &[u8] = b"nl80211\0";
/// The family of the families (GENL_ID_CTRL).
const CONTROLLER: u16 = 16;
/// Command: tell of a family (CTRL_CMD_GETFAMILY).
const GET: u8 = 3;
/// Commands: a family is new, or gone (CTRL_CMD_NEWFAMILY, CTRL_CMD_DELFAMILY).
const CAME: u8 = 1;
const WENT: u8 = 2;
/// The group that hears of families; it has this number in every kernel.
pub(crate) const FAMILIES: u32 = CONTROLLER as u32;
/// Attribute: a family's number (CTRL_ATTR_FAMILY_ID).
const ID: u16 = 1;
/// Attribute: a family's name (CTRL_ATTR_FAMILY_NAME).
const FAMILY_NAME: u16 = 2;
/// Attribute: a list of groups (CTRL_ATTR_MCAST_GROUPS).
const GROUPS: u16 = 7;
/// Attribute of a group: its name (CTRL_ATTR_MCAST_GRP_NAME).
const GROUP_NAME: u16 = 1;
/// Attribute of a group: its number (CTRL_ATTR_MCAST_GRP_ID).
const GROUP_ID: u16 = 2;

/// nl80211 in this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family {
    /// The type of its messages.
    pub id: u16,
    /// The group that hears of interfaces, if there is one.
    pub config: Option<u32>,
    /// The group that hears of stations, if there is one.
    pub mlme: Option<u32>,
}

impl Family {
    /// The question for it.
    pub fn question(sequence: u32) -> Vec<u8> {
        Question::one(CONTROLLER, GET, sequence).with(FAMILY_NAME, NAME).finish()
    }

    /// Whether this says that nl80211 came or went, without being asked.
    pub fn is_news(message: &Message<'_>) -> bool {
        let is_it = |(kind, payload)| kind == FAMILY_NAME && payload == NAME;
        message.kind == CONTROLLER
            && matches!(message.command(), Some(CAME | WENT))
            && message.attributes().any(is_it)
    }

    /// From the answer.
    pub fn read(message: &Message<'_>) -> Option<Family> {
        let mut id = None;
        let mut groups = Attributes(&[]);
        for (kind, payload) in message.attributes() {
            match kind {
                ID => id = number16(payload),
                GROUPS => groups = Attributes(payload),
                _ => {}
            }
        }
        let mut family = Family { id: id?, config: None, mlme: None };
        for (_, group) in groups {
            let (mut name, mut number) = (String::new(), None);
            for (kind, payload) in Attributes(group) {
                match kind {
                    GROUP_NAME => name = text(payload),
                    GROUP_ID => number = number32(payload),
                    _ => {}
                }
            }
            match name.as_str() {
                "config" => family.config = number,
                "mlme" => family.mlme = number,
                _ => {}
            }
        }
        Some(family)
    }
}
