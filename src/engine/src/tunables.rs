// SPDX-License-Identifier: GPL-2.0-or-later
//! The constants that somebody may want to vary, to see what they are worth.
//!
//! In the product they are constants and this type is empty. With the feature `sweep`,
//! which only the simulator asks for, [`Config`](crate::Config) carries other values:
//! `sim sweep SCENARIO --vary tunables.NAME=V1,V2`. A constant that follows from a format, a
//! standard or the size of an array is not here but beside the rule that uses it.
//!
//! Each value is followed by its reason. "Chosen" means that nobody has measured it alone.

use crate::time::{MS, Nanos, SEC, US};

macro_rules! tunables {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $default:expr;)*) => {
        #[cfg(not(feature = "sweep"))]
        impl Tunables {
            $($(#[$doc])* #[inline(always)] pub const fn $name(self) -> $kind { $default })*
        }

        #[cfg(feature = "sweep")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        struct Values { $($name: $kind,)* }

        #[cfg(feature = "sweep")]
        static DEFAULT: Values = Values { $($name: $default,)* };

        #[cfg(feature = "sweep")]
        impl Tunables {
            /// All of them.
            pub const ALL: &'static [Tunable] = &[$(Tunable {
                name: stringify!($name),
                default: $default as i64,
                is_time: matches!(stringify!($kind).as_bytes(), b"Nanos"),
            },)*];

            $($(#[$doc])* pub(crate) fn $name(self) -> $kind { self.0.$name })*
        }

        #[cfg(feature = "sweep")]
        impl Values {
            fn set(&mut self, name: &str, value: i64) -> Result<(), TunableError> {
                match name {
                    $(stringify!($name) => {
                        let value = <$kind>::try_from(value);
                        self.$name = value.map_err(|_| TunableError::OutOfRange)?;
                    })*
                    _ => return Err(TunableError::Unknown),
                }
                Ok(())
            }
        }
    };
}

/// The values in use: nothing at all, as each is a constant.
#[cfg(not(feature = "sweep"))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tunables;

/// The values in use.
#[cfg(feature = "sweep")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables(&'static Values);

/// One constant that can be varied.
#[cfg(feature = "sweep")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunable {
    /// Its name.
    pub name: &'static str,
    /// Its value in the product.
    pub default: i64,
    /// It is a time in nanoseconds.
    pub is_time: bool,
}

/// Why a value cannot be used.
#[cfg(feature = "sweep")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunableError {
    /// There is no constant of this name.
    Unknown,
    /// The value is negative, or so large that sums of it would overflow.
    OutOfRange,
}

#[cfg(not(feature = "sweep"))]
impl Tunables {
    pub const DEFAULT: Tunables = Tunables;
}

#[cfg(feature = "sweep")]
impl Default for Tunables {
    fn default() -> Self {
        Tunables::DEFAULT
    }
}

#[cfg(feature = "sweep")]
impl Tunables {
    pub(crate) const DEFAULT: Tunables = Tunables(&DEFAULT);

    /// The largest value of any: as a time a quarter of an hour, and far from any overflow.
    const LARGEST: i64 = 1_000 * SEC;

    /// The same with another value for one of them. The values are never freed: one copies
    /// this type freely, and a sweep has few combinations.
    pub fn with(self, name: &str, value: i64) -> Result<Tunables, TunableError> {
        let mut values = self.0.clone();
        if !(0..=Tunables::LARGEST).contains(&value) {
            return Err(TunableError::OutOfRange);
        }
        values.set(name, value)?;
        Ok(Tunables(alloc::boxed::Box::leak(alloc::boxed::Box::new(values))))
    }
}

tunables! {
    // What is on time: see `measure::margin`.

    /// Fixed part of [`Margin::Same`](crate::measure::margin::Margin::Same). Chosen: what a
    /// scheduler with high-resolution timers usually adds on both sides.
    margin_same: Nanos = 150 * US;
    /// Fixed part of [`Margin::Near`](crate::measure::margin::Margin::Near). Chosen: twice
    /// the one before, as a wrong guess is only one candidate more.
    margin_near: Nanos = 300 * US;
    /// Fixed part of [`Margin::Expected`](crate::measure::margin::Margin::Expected). Chosen:
    /// wider than near, because something was expected at that moment.
    margin_expected: Nanos = 400 * US;
    /// Fixed part of [`Margin::Overdue`](crate::measure::margin::Margin::Overdue). Chosen: an
    /// attempt too early costs a copy, one too late only as much time.
    margin_overdue: Nanos = 500 * US;
    /// Fixed part of [`Margin::Related`](crate::measure::margin::Margin::Related). Chosen:
    /// about the time between two packets at 10 Mbit/s.
    margin_related: Nanos = 1000 * US;
    /// Replies that deviate by less than this name their packet. Chosen: packets of 1,200
    /// bytes at 10 Mbit/s are 1 ms apart, and [`margin_same`](Self::margin_same) with two
    /// deviations has to stay below half of that to both sides.
    sharp_deviation: Nanos = 180 * US;

    /// Replies that deviate by more than this share of the round trip, in percent, keep no time.
    /// Measured: `sim run scenarios/train.toml --set wifi.air=crowded --set flow.bytes=2000000
    /// --set flow.client=quic_go --set wan.queue_bdp=4.0 --seeds 20`, unneeded copies 9.1, 1.5,
    /// 1.3 and 1.0 % with nothing, 80, 50 and 30 of it; rows with jitter hold at 30.
    blurred_percent: i64 = 30;
    /// ... unless it is less than this. Measured: the retries of a radio that loses one frame in a
    /// hundred make replies vary by half a millisecond to one. There (`--set wifi.air=lossy1 --set
    /// wan.queue_bdp=1.5`, 5 MB, quinn, 24 seeds) 4.5, 5.1, 5.9, 6.3 and 6.3 Mbit/s with 0.5, 0.7,
    /// 1, 1.5 and 2 ms, of 2.9 without help and 9.1 without losses; on one that loses nothing
    /// (`wifi.air=crowded`) 0.7, 0.7, 0.7, 0.8 and 1.0 % needless copies.
    blurred_deviation: Nanos = 1500 * US;

    // Windows: see `repair::gaps`.

    /// Packets that follow each other more closely than this are not named by a reply, but a window
    /// of them is. Measured, 12 seeds, 1 % both ways, 20 MB: at 50 Mbit/s prompt hosts with quic-go get
    /// 36 Mbit/s without a window and 28 with it; at 100 quinn on hosts that are
    /// 0.5 ms late gets 17 and 25.
    window_spacing: Nanos = 200 * US;
    /// ... nor are those on a host of which replies to copies show that it is later than this share of the
    /// distance of packets, in percent. Measured, 12 seeds, 1 % both ways, 20 MB, 50 Mbit/s: quinn on
    /// a host that is 0.5 ms late gets 0.95, 0.95, 0.82 and 0.73 of lossless with 100, 130, 160 and 200,
    /// quic-go on a prompt one 0.76, 0.96, 0.98 and 0.98.
    late_percent: i64 = 130;
    /// Packets of the time in which a gap closed that go with the second attempt of a window. Measured,
    /// 12 seeds, 1 % both ways, 20 MB, 50 Mbit/s, quinn on a host that is 0.5 ms late: 0.67 of
    /// lossless with none, 0.84, 0.95 and 0.89 with 4, 6 and 8 (with [`late_percent`](Self::late_percent)
    /// at 100).
    hidden_width: usize = 6;

    // Rhythm: see `infer::rhythm`.

    /// From this many packets a reply on, a client is decimating. Chosen: between the two
    /// of most stacks and the ten of Chromium.
    decimating_from: u64 = 6;
    /// This many short counts or early replies in a row show that a client has stopped
    /// decimating. Chosen: more than a run of losses causes.
    decimating_forgotten_after: u32 = 24;
    /// Share of replies in clumps, in 1024ths, from which on a client's replies clump.
    /// Chosen: with two packets a reply half of them would be the second of a pair.
    clumped_share: i32 = 400;
    /// From this deviation on, a count that is one too high means nothing. Chosen: a little
    /// above what is still sharp.
    skip_deviation: Nanos = 200 * US;
    /// From this deviation on, two single replies at the beginning mean nothing. Chosen: a
    /// little below what is still sharp, as the rhythm is hardly known then.
    singles_deviation: Nanos = 150 * US;

    // Congestion of the hop: see `measure::guard`.

    /// A queue shorter than this, in time, is what a Wi-Fi hop shows unloaded. Chosen:
    /// a few frame exchanges of other stations.
    queue_allowed: Nanos = 3 * MS;
    /// Packets of its own that a flow may have standing in the hop's queue. Paper: 1 / δ of
    /// Copa (NSDI '18) with δ = 0.5, as PEMI uses it.
    queue_own_packets: i64 = 2;
    /// A reply this much after its time has waited in a queue of the flow's own. Chosen: as
    /// above, and room for the client's scheduler.
    late_reply: Nanos = 5 * MS;
    /// Share of late replies that shows such a queue, in 1024ths. Chosen: a tenth.
    late_share: i32 = 100;

    // What is known of the hop: see `measure::hop`.

    /// Time between probes while packets flow. Chosen: four in a second are no load for any
    /// hop.
    probe_gap: Nanos = 250 * MS;
    /// Time between probes when losses ask for a fresh look at the queue. Chosen: a fifth.
    probe_gap_after_loss: Nanos = 50 * MS;
    /// How long a repair makes the hop lossy for new flows. Chosen: about as long as people
    /// stay where they are.
    lossy_memory: Nanos = 120 * SEC;
    /// Packets without a repair, of those that a repair could have shown, that make a hop clean.
    /// Chosen: less than a download of 2 MB, and on a hop that loses 0.3 % one in twenty such
    /// stretches is without a loss.
    clean_packets: u64 = 1000;

    // Doubt: see `measure::doubt`.

    /// Attempts that may be in vain over a hop of which nothing is known. Measured: `sim sweep
    /// scenarios/train.toml --set flow.bytes=1000000 --set wan.queue_bdp=4.0 --set flow.cc=newreno
    /// --seeds 100 --vary tunables.doubt_credit=0,3,8`, 10th percentile 6.96, 7.55, 7.55 Mbit/s:
    /// the end of a slow start causes a few before the first loss of the hop. With 5 ms of delay
    /// and 30 % of jitter 5 MB need eight: 5.9, 6.6, 6.1 Mbit/s with 4, 8, 12 (40 seeds).
    doubt_credit: u32 = 8;
    /// Attempts in vain that a repair makes up for. Chosen: at 5 % with Cubic none, two and four
    /// are alike (6.0 Mbit/s in the worst tenth).
    doubt_per_repair: u32 = 2;
    /// No more are made up for. Chosen: so that a hop that was lossy is clean after some seconds.
    doubt_credit_cap: u32 = 16;
    /// The first wait. Chosen: below a round trip of most paths.
    doubt_shortest: Nanos = 20 * MS;
    /// The longest wait. Chosen: one needless copy in two seconds is no load, and a hop that
    /// begins to lose packets is noticed before a person does.
    doubt_longest: Nanos = 2 * SEC;

    // Worth: see `measure::worth`.

    /// What attempts may take in vain over a hop of which nothing is known, in thousandths of the
    /// sender's round trip. Measured: of the 400 cases in `test/sim/README.md`, "What nobody has chosen",
    /// 600, 1200, 2400 and 3600 harm 19, 22, 28 and 28 (without this rule 37), and the hops that lose
    /// packets are at 1.19 x off with all.
    vain_parts: i64 = 1200;
    /// What a repair earns at least. Chosen: a third of that.
    vain_parts_per_repair: i64 = 400;

    // The model of the uplink's queue: see `measure::bottleneck`.

    /// A round trip this much off the smallest shows that the model is wrong. Chosen: two
    /// packets of 1,250 bytes at 10 Mbit/s.
    uplink_margin: Nanos = 2 * MS;
    /// On a shorter way, there and back, nothing is done: the sender's own repair is nearly as
    /// good, and a reply held without need costs a whole round trip. Measured:
    /// `sim sweep scenarios/upload.toml --set wan.delay_ms=5.0 --seeds 40
    /// --vary tunables.uplink_shortest=0ms,15ms`, 7.93 Mbit/s with 0 and 8.04 with 15.
    uplink_shortest: Nanos = 15 * MS;
    /// A wait this long before the slow link, above half the round trip, is congestion.
    /// Chosen: as for the hop's queue.
    uplink_congested: Nanos = 3 * MS;

    // Budget: see `repair::budget` and `repair::ceiling`.

    /// Copies that a flow may send at first over a hop of which nothing is known. Measured on
    /// a radio that loses nothing (`--set wifi.air=clean`): with twelve more than 1 % of a
    /// download of 5 MB went twice, and a lossy hop was proven no sooner than with six.
    budget_new: i32 = 6;
    /// Copies that a first attempt may send over a hop of which nothing is known when all of
    /// those are spent. Measured as above: on a hop that loses nothing the signs are those of
    /// a queue that overflows before the router, dozens in a download, and one copy for each
    /// proves a lossy hop as well as three.
    free_copies: usize = 1;
    /// Thousandths of a copy earned with each forwarded packet. Chosen: one copy for 500
    /// packets is no load where nothing is lost.
    budget_per_packet: i32 = 2;
    /// The same on a proven hop where the host is so late that a reply names a window. Chosen: with one
    /// loss in a hundred a window of four and a second one now and then. Measured as
    /// [`hidden_width`](Self::hidden_width): 0.74, 0.81 and 0.95 of lossless with 2, 30 and 60.
    budget_per_late_packet: i32 = 60;
    /// Copies earned with each repair. Chosen: more than two attempts of the usual width.
    budget_per_repair: i32 = 8;
    /// Copies that can be saved up. Chosen: sixteen attempts of the usual width.
    budget_cap: i32 = 48;
    /// A repair within this many packets proves the hop lossy. Chosen: so that one loss in 600
    /// is enough to stay proven.
    proven_packets: u64 = 600;
    /// This many copies may be sent at a time on a proven hop, whatever was saved up. Chosen: as
    /// many as one repair earns.
    proven_copies: usize = 8;
    /// ... until this many more were sent than earned. Chosen: the same once more.
    proven_debt: i32 = 8;
    /// This many repairs within the packets below make a hop very lossy: about 1.5 %. Chosen:
    /// there wide attempts gain more than their copies cost.
    very_lossy_repairs: usize = 6;
    /// See the one above.
    very_lossy_packets: u64 = 400;
    /// Copies allowed beyond the configured share. Chosen: a flow of a few packets needs
    /// its first flight repaired as well.
    share_allowance: u64 = 48;
    /// Copies on mere suspicion are sent while all that repaired nothing are below this share,
    /// in percent. Chosen: a little below the configured share's default.
    suspicion_percent: u32 = 9;
    /// Bytes of copies of all flows in a second, whatever else goes by. Chosen: the first
    /// flights of nine connections that begin at once on an idle router.
    ceiling_floor: u64 = 128 * 1024;

    // Harm: see `repair::governor`.

    /// Within so many packets have gaps to be abandoned for a storm. Chosen: four of them are 4.4 %,
    /// more than a hop loses and no copy repairs.
    storm_packets: u64 = 90;
    /// A storm lasts this long after its last sign. Chosen: about a round trip, after which the
    /// sender has reacted.
    storm_span: Nanos = 40 * MS;
    /// Open gaps of which none was repaired that are a storm. Chosen: three losses of the hop
    /// in a row are rare, three of a full queue are not.
    storm_gaps: usize = 3;
    /// Worth of a sign, in 256ths, below which it gets a single attempt. Chosen: two failures
    /// in a row from the start, or repairs of less than about a third.
    weak_worth: u16 = 80;
    /// For this long. Chosen: a few seconds later the hop may be another one.
    weak_for: Nanos = 2 * SEC;

    // Attempts: see `repair::plan`, `repair::gaps` and `repair::gap`.

    /// Attempts for a gap that size revealed. Chosen: a copy is lost as easily as a packet.
    attempts: u32 = 2;
    /// Attempts for a gap that rhythm revealed. Chosen: it names the packet more surely.
    attempts_by_rhythm: u32 = 3;
    /// Packets in the first attempt when nothing better is known. Chosen: the packet before
    /// the trigger and its two neighbours.
    usual_width: usize = 3;
    /// Packets in the first attempt at most when several may have triggered the reply. Chosen:
    /// twice the usual width.
    ambiguous_width: usize = 6;
    /// How often a run of losses may turn out to be longer. Chosen: with three packets each
    /// time that is a burst of thirteen.
    run_extensions: u32 = 4;
    /// Local round trips for which replies are held in a row before the hop is proven. Chosen:
    /// a copy's reply takes one, and a second attempt another one and a half.
    unproven_rtts: i64 = 4;

    // Beginning and end: see `repair::start` and `repair::conceal`.

    /// Server datagrams that are sent twice at the beginning of a connection. Measured:
    /// `sim sweep scenarios/train.toml --set flow.bytes=1000000 --seeds 40
    /// --vary tunables.first_flight_copies=0,12,30`, 10th percentile 7.49, 7.53, 7.53 Mbit/s,
    /// unneeded copies 4.3, 5.7, 8.4 %.
    first_flight_copies: u32 = 12;
    /// A client that says nothing for this long after the server's first flight is sent it
    /// again, while no round trip is known. Chosen: longer than almost any hop's.
    first_flight_timeout: Nanos = 30 * MS;
    /// A server that says nothing for this long after a client's first flight gets a copy.
    /// Chosen: longer than almost any round trip, and well before the client's own timeout of
    /// most of a second (RFC 9002, section 6.2.2).
    server_timeout: Nanos = 200 * MS;
    /// When a gap is abandoned, how long to wait for one more reply, so that the newest can go
    /// first. Chosen: the time between two replies of a slow flow.
    last_reply_wait: Nanos = 5 * MS;
    /// Packets older than this are not resent. Chosen: by then the sender has done it.
    copy_max_age: Nanos = 500 * MS;
    /// ... but where the hop was away, older than this. Chosen: the sender asks twice or three times
    /// meanwhile, and takes nothing for lost before it is answered.
    missed_max_age: Nanos = 3 * SEC;
}

#[cfg(all(test, feature = "sweep"))]
mod tests {
    use super::*;

    #[test]
    fn one_value_changes_and_the_others_do_not() {
        let changed = Tunables::default().with("attempts", 5).unwrap();
        assert_eq!((changed.attempts(), changed.attempts_by_rhythm()), (5, 3));
        assert_ne!(changed, Tunables::default());
        assert_eq!(changed.with("attempts", 2), Ok(Tunables::default()));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let with = |name, value| Tunables::default().with(name, value);
        assert_eq!(with("no_such_name", 1), Err(TunableError::Unknown));
        assert_eq!(with("weak_worth", 1 << 16), Err(TunableError::OutOfRange));
        assert_eq!(with("attempts", -1), Err(TunableError::OutOfRange));
        assert_eq!(with("probe_gap", i64::MAX), Err(TunableError::OutOfRange));
    }

    #[test]
    fn times_are_told_from_counts() {
        let kind = |name| Tunables::ALL.iter().find(|t| t.name == name).map(|t| t.is_time);
        assert_eq!((kind("probe_gap"), kind("attempts")), (Some(true), Some(false)));
    }
}
