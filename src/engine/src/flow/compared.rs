// SPDX-License-Identifier: GPL-2.0-or-later
//! Flows that are left alone, so that those that are helped can be compared with them, and what
//! came of either. Of a flow that is left alone every packet is seen, and none held, copied or
//! sent in another way.

use super::Flow;
use crate::api::{Knowledge, Outcome, Verdict};
use crate::flow::context::Context;
use crate::measure::transfer::{Done, Transfer};
use crate::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Helped,
    /// Chosen by chance when it began.
    Control,
    /// Nobody of its network is helped now, so it tells nothing about help.
    Apart,
}

/// To whom a flow is compared.
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    network: u8,
    group: Group,
    transfer: Transfer,
}

impl Compared {
    pub fn new(network: u8, control: bool, apart: bool) -> Compared {
        let group = match (apart, control) {
            (true, _) => Group::Apart,
            (false, true) => Group::Control,
            (false, false) => Group::Helped,
        };
        Compared { network, group, transfer: Transfer::new() }
    }

    pub fn network(&self) -> u8 {
        self.network
    }
}

impl Flow {
    /// Says to whom it is compared, before anything is seen of it.
    pub fn compare(mut self, compared: Compared) -> Flow {
        self.compared = compared;
        self
    }

    /// Its network, by the caller's number.
    pub fn network(&self) -> u8 {
        self.compared.network()
    }

    /// Its network's number, to be changed where it has another.
    pub fn network_mut(&mut self) -> &mut u8 {
        &mut self.compared.network
    }

    /// Nobody of its network is helped any more. What is held goes on.
    pub fn stand_apart(&mut self, cx: &mut Context<'_>) {
        if self.compared.group == Group::Helped {
            self.release_all(cx);
            self.compared.group = Group::Apart;
        }
    }

    /// Whether nothing is done for it.
    pub(super) fn is_left_alone(&self) -> bool {
        self.compared.group != Group::Helped
    }

    /// A packet that only passes.
    pub(super) fn pass(&mut self, cx: &mut Context<'_>, reply: bool, packet: &[u8]) -> Verdict {
        self.note(cx.now, reply, packet.len());
        self.tell_start(cx);
        if self.clean_for_long(cx) {
            self.let_go(cx);
            return Verdict::Bypass;
        }
        Verdict::Forward
    }

    /// Takes note of a packet of so many bytes; `asks` if it is the receiver's and no
    /// acknowledgement.
    pub(super) fn compare_packet(
        &mut self,
        cx: &mut Context<'_>,
        reply: bool,
        asks: bool,
        size: usize,
    ) {
        match (reply, asks) {
            (true, true) => self.compared.transfer.asked(),
            (true, false) => {}
            (false, _) => {
                let done = self.compared.transfer.came(cx.now, size);
                self.tell_outcome(cx, done);
            }
        }
    }

    /// Whether its download is over by now, without another packet.
    pub fn is_over(&self, now: Time) -> bool {
        self.compared.transfer.is_over(now)
    }

    /// Nothing more is seen of its download.
    pub fn end_download(&mut self, cx: &mut Context<'_>) {
        let done = self.compared.transfer.finish();
        self.tell_outcome(cx, done);
    }

    fn tell_outcome(&self, cx: &mut Context<'_>, done: Option<Done>) {
        let (Some(done), Some(_)) = (done, self.hop_slot) else { return };
        let helped = match self.compared.group {
            Group::Helped => true,
            Group::Control => false,
            Group::Apart => return,
        };
        // What would tell of its losses if it were helped.
        let reported = cx.config.reports && cx.hop.reports.proven() == Some(true);
        let knowledge = match reported {
            true => Knowledge::Reports,
            false if cx.hop.counts.told() => Knowledge::Counts,
            false => Knowledge::Replies,
        };
        let Done { bytes, busy, stalls } = done;
        let network = self.compared.network;
        cx.out.outcome(Outcome { network, helped, knowledge, bytes, busy, stalls });
    }
}
