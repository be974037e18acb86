// SPDX-License-Identifier: GPL-2.0-or-later
//! Rows that do not hold yet, and why.

/// Beginning and end of the names of rows, and the reason.
const REASONS: [(&str, &str, &str); 53] = [
    ("cubic 1 MB", "unneeded resends", OVERFLOW),
    ("newreno 1 MB", "unneeded resends", OVERFLOW),
    ("cubic", "recall", OVERFLOW),
    ("cubic", " 2 %: of lossless, 10th percentile", TWO),
    ("cubic", " 5 %: of lossless", FIVE),
    ("newreno", " 2 %: of lossless", TWO),
    ("newreno", " 2 %: of lossless, 10th percentile", TWO),
    ("newreno", " 5 %: of lossless", FIVE),
    ("lossy both ways", " 5 %: of lossless", FIVE),
    ("clean hop", "1 MB: held", LATE),
    ("WAN 50 Mbit/s", "", FAST),
    ("fast, ", "of lossless", FAST),
    ("equal links", "", EQUAL),
    ("hop half as fast", "", SLOWER),
    ("Wi-Fi RTT 10 ms", "", LONG),
    ("client two-way call, 1 %", "", WAY_UP),
    ("call 30 fps, 1 %", "", LATE_FRAMES),
    ("newreno", "recall", OVERFLOW),
    ("clean hop", "1 MB: unneeded resends", FIRST_FLIGHT),
    ("bbr, ", "WAN drops", BBR),
    ("bbr, ", "WAN drops, 95th percentile", BBR),
    ("bbr3, 1 %", "WAN drops", HELPED),
    ("HyStart", "", HYSTART),
    ("cuts taken back, 50 Mbit/s", "times off", UNKNOWN),
    ("bursts of", "times off", NO_ROOM),
    ("Wi-Fi RTT 20 ms", "", JITTER),
    ("client power save", "1 %: times off", CLUMPS),
    ("Wi-Fi bottleneck", "1 %, helped + unhelped + TCP: hop delay p95", FILLED),
    ("call 30 fps, 3.6 %", "", TAIL),
    ("client Chromium, wakes", "1 %: times off", SMALL_MARGIN),
    ("air crowded, call", "", NEIGHBOURS),
    ("air far, call", "", FULL),
    ("counted crowded, call", "", NEIGHBOURS),
    ("counted far, call", "", FULL),
    ("trace wifi-cafe, call", "", SLOW),
    ("late counts, 2 % wrong, poor-no-bar", "mean times off", FEW_LOSSES),
    ("late counts, 2 % wrong, 1 %, 100 Mbit/s", "of lossless", CLOSE),
    ("captures: Chromium", "noticed", TAILS),
    ("captures: Chromium", "false marks", BEFORE),
    ("captures: quinn", "noticed", TAILS),
    ("captures: quinn", "no tails", TAILS),
    ("habit every 4th", "0 %: unneeded resends", COUNTS),
    ("habit busy Firefox", "1 %: of lossless", BUSY),
    ("habit patient", "unneeded resends", VARY),
    ("habit times of packets", "unneeded resends", VARY),
    ("habit sizes vary", "unneeded resends", VARY),
    ("habit asked for", "", ASKED),
    ("habit tquic", "0 %: unneeded resends", LATER),
    ("habit aioquic", "0 %: unneeded resends", LATER),
    ("habit aioquic", "1 %: of lossless", RESONANCE),
    ("tails, six connections", "unneeded resends", SHARED),
    ("numbers left out, ", "unneeded resends", LEFT_OUT),
    ("numbers left out, Chromium", "of lossless", LEFT_OUT),
];

const LATER: &str = "what overflows the queue before the router shows a packet later than with other clients, so \
    that no reply tells that it was lost there: 2.0 and 2.2 %";
const RESONANCE: &str = "its timer of 1 ms ends just when the second packet comes: replies are for one packet or \
    two, and the field with their delay is of one byte or two, so that gaps and their ends are missed: 0.65";
const OVERFLOW: &str = "losses while slow start overflows the WAN's queue: hundreds of holes \
    from before the router hide them, and acknowledgements at their limit of ranges do not grow; \
    the sender's window is cut once for all of them";
const TWO: &str = "with acknowledgements lost as well the worst tenth of the runs gets 0.54 to 0.90 of \
    lossless at 2 %, and newreno over 20 MB 0.94 in the middle";
const FIVE: &str = "one loss that is told in slow start decides, and newreno grows slowly after each of the few \
    that are told later: 0.87 and 0.80 of lossless over 5 and 20 MB, cubic 0.99 and 0.95, \
    quic-go with newreno 0.80";
const LATE: &str = "a host that is 0.5 ms late keeps a short flow's replies waiting, 2.7 %, until its rhythm \
    is known";
const FAST: &str = "a host that is 0.5 ms late is two packets late at 50 Mbit/s and four at 100, and one loss that \
    is told in slow start decides: 0.91 and 0.66 of lossless at 50 with quinn and quic-go, 0.77 and 0.61 \
    at 100; after the queue before the router has overflowed quic-go's replies have all the ranges that \
    they may have, so that one more does not show";
const EQUAL: &str = "the hop's queue is not known before some probes have waited in it, and one loss told in slow start \
    decides: 0.95, 0.92 and 0.89 of lossless at 10, 20 and 50 Mbit/s";
const SLOWER: &str = "while the slow start fills the hop's queue a copy waits in it for as long as everything else, \
    and losses there are congestion: 0.82, 0.72 and 0.54 of lossless with quinn at 10, 20 and 50 Mbit/s, \
    0.61, 0.61 and 0.52 with quic-go";
const LONG: &str = "a reply may belong to any of three packets, and one in a hundred is lost: 0.84";
const WAY_UP: &str = "what the client itself sends and the hop loses nobody repairs, so its window is cut, its \
    frames wait, and its acknowledgements travel with them, whose size tells nothing: 8.8 s later, and \
    hardly less than without help";
const LATE_FRAMES: &str = "a repair takes half a millisecond more at either end of a round trip: lossless + \
    5.3 ms";
const FIRST_FLIGHT: &str = "the first 12 packets of a new client go twice, which is 1.6 % of a \
    download of 1 MB; fewer make the worst of a hundred lossy downloads worse";
const BBR: &str = "quinn's BBR adds what was acknowledged at once to its window and takes short \
    distances of acknowledgements for bandwidth; it is left alone once its first flight shows it, but \
    the first copies and what is repaired within its first 40 packets remain";
const HELPED: &str = "it heeds losses, so it is helped, 1.24 x off, and fills the queue before the router \
    for as long as one without losses does";
const HYSTART: &str = "losses that are told while the window still grows end slow start early in the worst \
    tenth";
const UNKNOWN: &str = "replies are held in vain for seven round trips before the sender is tried, and some of them end \
    the growth of its window: 0.96 x off in the middle of 24 downloads, 1.03 in the mean";
const NO_ROOM: &str = "without losses it would be less than 2 x off";
const FEW_LOSSES: &str = "the air loses so few that a download without help has 8.7 Mbit/s and one without losses \
    8.8; where 1 % is lost (test/wifi, lossy1-no-bar) it is 1.9 x off";
const JITTER: &str = "a reply may belong to any of seven packets, an attempt takes 35 ms, and two \
    of them are longer than replies may be held";
const CLUMPS: &str = "a packet waits up to 20 ms for the radio: a reply may belong to any of 20";
const FILLED: &str = "without its losses the helped flow fills its queue as it does on a hop that \
    loses nothing, and 1 % of loss keeps the others from it";
const TAIL: &str = "at 3.6 % one frame in thirty loses its last packet, and one copy in thirty is \
    lost as well";
const SMALL_MARGIN: &str = "decimation and late wake-ups together leave neither rhythm nor time";
const CLOSE: &str = "a loss each 11 ms: while replies wait for one copy the next packet is lost, so the \
    moments in which a reply shows no hole are rare and some wait for as long as anything may";
const NEIGHBOURS: &str = "the copies of the first flight delay the first frames among other clients' \
    aggregates";
const FULL: &str = "the hop carries hardly what is asked of it: the copies of the first flight delay \
    the first frames";
const SLOW: &str = "a copy takes such a hop 1.5 ms, as a packet of the call does: those of the first \
    flight delay the first frames, and three frames of 300 decide";
const TAILS: &str = "no packet follows that a reply could tell of the loss with";
const BEFORE: &str = "packet numbers that the sender skips, and its slow start's losses before the \
    router, look like losses of the hop until a copy fails";

const COUNTS: &str = "1.7: the first 12 packets of a new client, which go twice, are 0.3 of it; what the others are \
    was not looked into";
const BUSY: &str =
    "a count that scatters hides where a reply belongs to when the host is late as well";
const VARY: &str = "one reply in four to twenty is longer by just what a gap makes, until enough attempts \
    have been in vain";
const ASKED: &str = "the client's timer comes before its count of sixteen, so that the count is not learned and a reply \
    before it is no sign, 59 % of the losses with the third packet beyond a gap; 23 % are seen, but what goes again is \
    the packet before the one that is replied to, not the third before. With threshold 0 no reply comes early";

const LEFT_OUT: &str = "each number that the sender leaves out looks like a loss, and no copy repairs it: 5.1 to 7.2 % needless, \
    and Chromium, whose early replies are no sign for a while after a few in vain, at 0.64";
const SHARED: &str =
    "3.6: without any copy for the end of a burst it would be 3.0, and without second attempts 2.4";

/// Why a row does not hold, as far as it is known.
pub fn reason(name: &str) -> Option<&'static str> {
    let known =
        |(start, end, _): &&(&str, &str, &str)| name.starts_with(start) && name.ends_with(end);
    REASONS.iter().find(known).map(|(_, _, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_rows_meant_have_a_reason() {
        assert_eq!(reason("cubic 5 MB 1 %: recall"), Some(OVERFLOW));
        assert_eq!(reason("cubic 5 MB 1 %: of lossless"), None);
        assert_eq!(reason("bbr 5 MB 1 %: of lossless"), None);
        assert_eq!(reason("trace wifi-cafe, call: frame delay p99 times off"), Some(SLOW));
        assert_eq!(reason("trace wifi-cafe, quinn 1 %: mean times off"), None);
        assert_eq!(reason("bbr, 1 BDP queue, 5 MB 1 %: times off"), None);
    }
}
