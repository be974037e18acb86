// SPDX-License-Identifier: GPL-2.0-or-later
//! What access points tell, on its way to the engine.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use pemi_engine::{Count, Direction, MS, Radio, SEC, Station, Time};

use super::scripted::{Wire, cue};
use super::{Bench, packet, with_reports};
use crate::config::{Config, Repair};
use crate::datapath::teller::{Teller, Told};

/// Tells what a test puts in, and remembers who was asked about.
#[derive(Clone, Debug, Default)]
struct Gossip {
    told: Arc<Mutex<Vec<Told>>>,
    watched: Arc<Mutex<Vec<IpAddr>>>,
}

impl Teller for Gossip {
    fn watch(&self, client: IpAddr) {
        self.watched.lock().unwrap().push(client);
    }

    fn take(&self) -> Option<Told> {
        let mut told = self.told.lock().unwrap();
        (!told.is_empty()).then(|| told.remove(0))
    }
}

/// What becomes of a packet, copies aside.
fn way_of(bench: &mut Bench, n: u32) -> Wire {
    let mut wire = with_reports(bench, n..n + 1);
    wire.retain(|wire| matches!(wire, Wire::Went(..) | Wire::Gone(_)));
    assert_eq!(wire.len(), 1, "{wire:?}");
    wire.remove(0)
}

#[test]
fn clients_whose_losses_are_counted_are_sent_to_with_reports() {
    let config = Config { repair: Repair::Auto, ..Config::default() };
    let client = IpAddr::from([192, 0, 2, 9]);
    let initial = cue(Time::ZERO + 2 * SEC, Some(1), packet(Direction::Up, true, 1200, 1));
    let mut bench = Bench::new(&config, vec![initial]);
    let gossip = Gossip::default();
    bench.worker.line.teller = Some(Box::new(gossip.clone()));
    bench.play();
    assert_eq!(with_reports(&mut bench, 0..0), [Wire::Went(1, None)]);
    assert_eq!(way_of(&mut bench, 2), Wire::Went(2, None), "nobody counts so far");
    assert_eq!(*gossip.watched.lock().unwrap(), [client], "somebody is asked to");

    let (from, to) = (bench.world.borrow().now, bench.world.borrow().now + MS);
    let radio =
        Radio { from, to, sent: 9, lost: 0, lost_is: Count::Exact, queued: 0, queue_drops: 0 };
    let tell = |bench: &mut Bench, told: Told| {
        gossip.told.lock().unwrap().push(told);
        bench.waker.wake();
        assert!(bench.worker.turn().unwrap().is_continue());
        // Nothing is on its way any more.
        let mut world = bench.world.borrow_mut();
        world.now = world.now + 100 * MS;
    };
    tell(&mut bench, Told::Counted(client, radio));
    assert_eq!(way_of(&mut bench, 3), Wire::Gone(3), "sent by the worker itself");

    tell(&mut bench, Told::Station(client, to, Station::Gone));
    assert_eq!(way_of(&mut bench, 4), Wire::Went(4, None));
}
