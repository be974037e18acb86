// SPDX-License-Identifier: GPL-2.0-or-later
//! Clients whose replies show by their size whether anything is missing: what was called lost by
//! mistake makes nothing wait, and neither does one loss what does not show it.

use pemi_engine::{Direction, Fate, MS};
use pemi_engine_tests::packets::short;

use super::bench::{Bench, config};
use super::often::lose_one_of_three;

/// Without a hole, and with one.
const WHOLE: usize = 36;
const HOLE: usize = 38;

fn reply(bench: &mut Bench, number: u64, size: usize) {
    bench.show(0, Direction::Up, &short(2, number, size));
}

/// Replies of the first size come while nothing is missing, and of the second while something is.
/// Two losses were repaired since.
fn after_two_losses(whole: usize, hole: usize) -> Bench {
    let mut bench = Bench::new(config(), 1);
    for n in 0..130 {
        bench.show(0, Direction::Down, &short(1, n, 1200));
        bench.pass(MS);
        bench.all_arrived();
        reply(&mut bench, n, whole);
    }
    for n in [200, 210] {
        let copy = lose_one_of_three(&mut bench, n);
        bench.pass(MS);
        reply(&mut bench, n, hole);
        bench.pass(MS);
        bench.report(copy, Fate::Arrived);
        bench.pass(MS);
        reply(&mut bench, n + 1, whole);
        bench.pass(20 * MS);
    }
    bench.done.clear();
    bench
}

#[test]
fn a_reply_that_shows_no_hole_does_not_wait() {
    let mut bench = after_two_losses(WHOLE, HOLE);
    // It may have arrived.
    let copy = lose_one_of_three(&mut bench, 220);
    bench.pass(3 * MS);
    reply(&mut bench, 20, WHOLE);
    assert_eq!(bench.wire(Direction::Up).0, [20]);
    let other = lose_one_of_three(&mut bench, 223);
    reply(&mut bench, 21, HOLE);
    bench.pass(MS);
    assert_eq!(bench.wire(Direction::Up).0, [], "one of them was lost");
    bench.report(copy, Fate::Arrived);
    reply(&mut bench, 22, WHOLE);
    assert_eq!(bench.wire(Direction::Up).0, [22, 21]);
    bench.report(other, Fate::Arrived);
    bench.pass(MS);
    reply(&mut bench, 23, WHOLE);
    bench.pass(20 * MS);
    assert_eq!(bench.wire(Direction::Up).0, [23]);
    assert_eq!(bench.router.stats(bench.now).held_now, 0);
}

#[test]
fn where_size_tells_nothing_all_wait() {
    let mut bench = after_two_losses(HOLE, HOLE);
    let copy = lose_one_of_three(&mut bench, 220);
    bench.pass(3 * MS);
    reply(&mut bench, 20, HOLE);
    bench.pass(MS);
    assert_eq!(bench.wire(Direction::Up).0, [], "it may show the hole");
    bench.report(copy, Fate::Arrived);
    bench.pass(MS);
    reply(&mut bench, 21, HOLE);
    bench.pass(20 * MS);
    assert_eq!(bench.wire(Direction::Up).0, [21, 20]);
}
