// SPDX-License-Identifier: GPL-2.0-or-later
//! What was done, in words for the log: after a minute in which something was, and at the end.

use pemi_engine::Stats;

/// The last minute, if something was lost or sent again in it; `before` are the counters when it began.
pub fn minute(now: &Stats, before: &Stats) -> Option<String> {
    // A reset sets the counters back: what they have then has come since.
    let since = |count: fn(&Stats) -> u64| {
        let (now, before) = (count(now), count(before));
        now.checked_sub(before).unwrap_or(now)
    };
    let lost = since(|s| s.losses_inferred);
    let repaired = since(|s| s.losses_repaired);
    let beyond = since(|s| s.losses_upstream + s.losses_congestion);
    let resent = since(|s| s.resent_packets);
    if lost + repaired + beyond + resent == 0 {
        return None;
    }
    let held = since(|s| s.concealed_held);
    Some(format!(
        "last minute: {lost} losses noticed, {repaired} repaired, {beyond} beyond reach; {resent} \
         packets sent again, {held} replies held meanwhile; {} connections known",
        now.flows_active
    ))
}

/// All of it, at the end.
pub fn end(s: &Stats, unhelped: u64, failed: u32) -> String {
    format!(
        "stopped: {} packets to clients and {} from them; {} losses noticed, {} repaired, {} beyond reach; \
         {} packets sent again, {failed} could not be; {} replies held, {} too long; {unhelped} packets \
         passed unhelped",
        s.packets_down,
        s.packets_up,
        s.losses_inferred,
        s.losses_repaired,
        s.losses_upstream + s.losses_congestion,
        s.resent_packets,
        s.concealed_held,
        s.concealed_late
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(losses_inferred: u64, resent_packets: u64) -> Stats {
        let (packets_down, flows_active) = (9000, 3);
        Stats { losses_inferred, resent_packets, packets_down, flows_active, ..Stats::default() }
    }

    #[test]
    fn a_minute_in_which_nothing_was_lost_is_not_told() {
        assert_eq!(minute(&at(7, 9), &Stats { packets_down: 1, ..at(7, 9) }), None);
        let words = minute(&at(7, 9), &at(5, 9)).unwrap();
        assert!(words.starts_with("last minute: 2 losses noticed, 0 repaired, "), "{words}");
        assert!(words.ends_with("; 3 connections known"), "{words}");
        // After a reset.
        assert!(minute(&at(1, 0), &at(5, 9)).unwrap().contains(": 1 losses"));
    }

    #[test]
    fn the_end_tells_all() {
        let words = end(&at(7, 9), 5, 1);
        assert!(words.contains("9 packets sent again, 1 could not be"), "{words}");
        assert!(words.ends_with("5 packets passed unhelped"), "{words}");
    }
}
