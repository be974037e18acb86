// SPDX-License-Identifier: GPL-2.0-or-later
//! Losses so close to each other that replies come between two of them, and replies that come so
//! late that they show one which is repaired.

use pemi_engine::{Direction, Fate, MS, Nanos, Ticket, US};
use pemi_engine_tests::packets::short;

use super::bench::{Bench, config};

/// A padded client, so that sizes tell nothing.
const REPLY: usize = 38;

fn reply(bench: &mut Bench, number: u64) {
    bench.show(0, Direction::Up, &short(2, number, REPLY));
}

/// Sends three packets, and reports that the second is lost and the others have arrived; the
/// ticket of its copy.
pub fn lose_one_of_three(bench: &mut Bench, first: u64) -> Ticket {
    for n in first..first + 3 {
        bench.show(0, Direction::Down, &short(1, n, 1200));
    }
    bench.pass(500 * US);
    let tickets: Vec<Ticket> = bench.router.tickets.drain(..).map(|(ticket, _)| ticket).collect();
    bench.report(tickets[0], Fate::Arrived);
    bench.report(tickets[1], Fate::Lost);
    bench.report(tickets[2], Fate::Arrived);
    bench.router.tickets.pop().expect("the copy may get lost as well").0
}

/// A loss was repaired so long ago, and its hole is shown by a reply that waits.
fn repaired_before(span: Nanos) -> Bench {
    let mut bench = Bench::new(config(), 1);
    bench.all_arrived();
    bench.done.clear();
    let copy = lose_one_of_three(&mut bench, 0);
    bench.pass(500 * US);
    reply(&mut bench, 10);
    bench.pass(MS);
    bench.report(copy, Fate::Arrived);
    bench.pass(span);
    assert_eq!(bench.wire(Direction::Up).0, [], "another may come that shows the hole");
    bench
}

fn repaired() -> Bench {
    repaired_before(5 * MS)
}

#[test]
fn a_reply_between_two_losses_goes_while_the_second_is_open() {
    let mut bench = repaired();
    reply(&mut bench, 11);
    bench.pass(100 * US);
    let copy = lose_one_of_three(&mut bench, 3);
    bench.pass(500 * US);
    reply(&mut bench, 12);
    assert_eq!(bench.wire(Direction::Up).0, [], "others of the same clump may come");
    bench.pass(MS);
    bench.report(copy, Fate::Arrived);
    assert_eq!(bench.wire(Direction::Up).0, [11, 10], "it came before the second could be seen");
    reply(&mut bench, 13);
    bench.pass(20 * MS);
    assert_eq!(bench.wire(Direction::Up).0, [13, 12]);
    let stats = bench.router.stats(bench.now);
    assert_eq!((stats.losses_repaired, stats.held_now), (2, 0));
}

#[test]
fn soon_after_a_repair_the_newest_of_those_that_waited_goes_first() {
    let mut bench = repaired();
    reply(&mut bench, 11);
    bench.pass(20 * MS);
    assert_eq!(bench.wire(Direction::Up).0, [11, 10]);
    // Nobody knows yet what became of this.
    bench.show(0, Direction::Down, &short(1, 3, 1200));
    bench.pass(2 * MS);
    (12..15).for_each(|number| reply(&mut bench, number));
    bench.pass(6 * MS);
    assert_eq!(bench.wire(Direction::Up).0, [14, 13, 12], "the others may have waited for the air");
}

/// Packets that arrive, one a millisecond.
fn arrive(bench: &mut Bench, numbers: std::ops::Range<u64>) {
    for n in numbers {
        bench.show(0, Direction::Down, &short(1, n, 1200));
        bench.pass(MS);
        bench.all_arrived();
    }
}

#[test]
fn replies_that_show_a_hole_wait_for_one_that_is_kept_from_the_air() {
    let mut bench = repaired_before(100 * US);
    // It was sent before the client had read the copy.
    reply(&mut bench, 11);
    arrive(&mut bench, 3..23);
    assert_eq!(bench.wire(Direction::Up).0, [], "the client has twenty packets and owes a reply");
    reply(&mut bench, 12);
    bench.pass(2 * MS);
    assert_eq!(bench.wire(Direction::Up).0, [12, 11, 10]);
}

#[test]
fn where_no_more_replies_come_they_do_not_wait_for_ever() {
    let mut bench = repaired_before(100 * US);
    reply(&mut bench, 11);
    arrive(&mut bench, 3..123);
    assert_eq!(bench.wire(Direction::Up).0, [11, 10]);
    assert_eq!(bench.router.stats(bench.now).held_now, 0);
}

#[test]
fn where_no_reply_is_due_they_do_not_wait_for_it() {
    let mut bench = repaired_before(100 * US);
    reply(&mut bench, 11);
    bench.pass(15 * MS);
    assert_eq!(bench.wire(Direction::Up).0, [11, 10]);
}
