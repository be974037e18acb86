// SPDX-License-Identifier: GPL-2.0-or-later
//! What the access point tells: reports of packets, whose they are, and those that do not come;
//! counts and stations.

use alloc::vec::Vec;
use core::net::IpAddr;

use super::Engine;
use crate::api::{Fate, Radio, Station, Ticket};
use crate::flow::Flow;
use crate::measure::hop::Hop;
use crate::store::tickets::Sent;
use crate::time::Time;

impl Engine {
    /// A report has come of a packet that [`Action::Send`](crate::Action::Send) was about. One
    /// that comes late, twice, or of a packet that nobody knows is none.
    pub fn on_report(&mut self, now: Time, ticket: Ticket, fate: Fate) {
        self.give_up_reports(now);
        let Some((sent, in_time)) = self.tickets.settle(ticket) else { return };
        if let Some(hop) = self.hop_of(&sent) {
            hop.reports.came(now, sent.at, in_time);
        }
        if in_time {
            self.tell(now, &sent, Some(fate));
        }
    }

    /// What [`Action::Send`](crate::Action::Send) was about could not be sent.
    pub fn on_unsent(&mut self, now: Time, ticket: Ticket) {
        let Some((sent, true)) = self.tickets.settle(ticket) else { return };
        if let Some(hop) = self.hop_of(&sent) {
            hop.reports.withdrawn();
        }
        self.tell(now, &sent, None);
    }

    /// The access point was asked what it has counted of this client's packets. From then on
    /// losses are believed, and copies sent, as far as that allows; for about a second.
    pub fn on_radio(&mut self, client: IpAddr, radio: Radio) {
        if let Some(hop) = self.hops.find(&client).and_then(|slot| self.hops.get_mut(slot)) {
            hop.counts.tell(&radio);
        }
    }

    /// The client's station came, went or is elsewhere.
    pub fn on_station(&mut self, now: Time, client: IpAddr, station: Station) {
        let Some(hop) = self.hops.find(&client).and_then(|slot| self.hops.get_mut(slot)) else {
            return;
        };
        match station {
            Station::Joined => hop.reports.try_again(),
            Station::Gone => hop.counts.forget(),
            Station::Moved => {
                hop.moved(now);
                let its =
                    |flow: &Flow| flow.hop_slot.is_some() && flow.receiver_address() == client;
                let slots: Vec<u32> =
                    self.flows.iter().filter(|(_, flow)| its(flow)).map(|(slot, _)| slot).collect();
                for slot in slots {
                    self.with_flow(now, slot, |flow, _| flow.moved());
                }
            }
        }
    }

    /// Stops waiting for reports that are overdue.
    pub(super) fn give_up_reports(&mut self, now: Time) {
        while let Some(sent) = self.tickets.overdue(now) {
            self.stats.reports_missing += 1;
            if let Some(hop) = self.hop_of(&sent) {
                hop.reports.missed(now, sent.at);
            }
            self.tell(now, &sent, None);
        }
    }

    fn hop_of(&mut self, sent: &Sent) -> Option<&mut Hop> {
        self.hops.find(&sent.client).and_then(|slot| self.hops.get_mut(slot))
    }

    /// Tells the flow, unless another one is in its place by now.
    fn tell(&mut self, now: Time, sent: &Sent, fate: Option<Fate>) {
        if self.flows.get(sent.flow).is_some_and(|flow| flow.created == sent.born) {
            self.with_flow(now, sent.flow, |flow, cx| flow.on_report(cx, sent, fate));
        }
    }
}
