// SPDX-License-Identifier: GPL-2.0-or-later
//! Carries what the radio's thread knows to a worker, in the engine's words.

use std::net::IpAddr;
use std::sync::Arc;

use pemi_engine::{Count, Radio, Station};
use pemi_radio::meter::Worth;

use crate::datapath::teller::{Teller, Told};
use crate::radio::news::{Change, Inbox, News, RadioSample};
use crate::radio::share::Share;
use crate::sys::poll::Waker;

/// One worker's share of the news.
#[derive(Debug)]
pub(crate) struct Subscription {
    share: Arc<Share>,
    inbox: Arc<Inbox>,
}

impl Subscription {
    /// Everything that is new from now on; the worker waits for `waker`.
    pub fn new(share: Arc<Share>, waker: Arc<Waker>) -> Subscription {
        Subscription { inbox: share.subscribe(waker), share }
    }
}

impl Teller for Subscription {
    fn watch(&self, client: IpAddr) {
        self.share.helping(client);
    }

    fn take(&self) -> Option<Told> {
        self.inbox.take().map(told)
    }
}

fn told(news: News) -> Told {
    match news {
        News::Station { client, at, change } => {
            let station = match change {
                Change::Joined => Station::Joined,
                Change::Left => Station::Gone,
                Change::Moved => Station::Moved,
            };
            Told::Station(client, at, station)
        }
        News::Sample(sample) => {
            let RadioSample { client, from, to, sent, lost, quality, queued, drops } = sample;
            let lost_is = match quality {
                Worth::Exact => Count::Exact,
                Worth::AtMost => Count::AtMost,
                Worth::Display | Worth::Nothing => Count::Nothing,
            };
            let queue_drops = drops;
            Told::Counted(client, Radio { from, to, sent, lost, lost_is, queued, queue_drops })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pemi_engine::{MS, Time};

    #[test]
    fn only_what_a_driver_counts_for_certain_is_exact() {
        let client = IpAddr::from([192, 0, 2, 9]);
        let (from, to) = (Time::ZERO, Time::ZERO + 100 * MS);
        for (quality, lost_is) in [
            (Worth::Exact, Count::Exact),
            (Worth::AtMost, Count::AtMost),
            (Worth::Display, Count::Nothing),
            (Worth::Nothing, Count::Nothing),
        ] {
            let sample =
                RadioSample { client, from, to, sent: 90, lost: 3, quality, queued: 2, drops: 1 };
            let radio = Radio { from, to, sent: 90, lost: 3, lost_is, queued: 2, queue_drops: 1 };
            assert_eq!(told(News::Sample(sample)), Told::Counted(client, radio));
        }
    }
}
