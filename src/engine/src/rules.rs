// SPDX-License-Identifier: GPL-2.0-or-later
//! Rules that can be switched off to measure what each is worth. Only with the
//! feature `ablation`; without it every rule is on and nothing is asked at run time.

/// A rule of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Rule {
    /// Two bytes more in a reply are a sign of a gap ([`crate::infer::sizes`]).
    Size,
    /// The rhythm of decimating clients ([`crate::infer::rhythm`]).
    Rhythm,
    /// One packet more than a steady count ([`crate::infer::rhythm`]).
    Skip,
    /// Two bytes above the smallest recent size ([`crate::infer::sizes`]).
    Floor,
    /// Gaps between two packets that were acknowledged one by one are not the hop's
    /// ([`crate::infer::rhythm`]).
    Adjacent,
    /// A fourth gap while three stay open is a queue's overflow before the router, a storm
    /// ([`crate::repair::governor`]).
    Overflow,
    /// What fails four times in a short time is a storm ([`crate::repair::governor`]).
    Storm,
    /// A copy that is acknowledged while the gap stays is the end of a longer run
    /// ([`crate::repair::gap`]).
    Run,
    /// Packets are tried more than once ([`crate::repair::plan`], [`crate::repair::gap`]).
    Retry,
    /// Copies for the ends of bursts ([`crate::repair::tail`]).
    Tail,
    /// Only what may be the sender's last packet is sent again on mere suspicion
    /// ([`crate::repair::tail`]).
    End,
    /// The first flight goes twice ([`crate::repair::start`]).
    FirstFlight,
    /// Replies that tell of a gap are held ([`crate::repair::conceal`]).
    Conceal,
    /// The reply that shows the gap closed goes first, then the held ones ([`crate::repair::conceal`]).
    NewestFirst,
    /// After a gap is abandoned, the next reply is waited for ([`crate::repair::conceal`]).
    NextReply,
    /// What the copy overtakes is not held on a hop not known to lose packets
    /// ([`crate::repair::plan`]).
    Overtake,
    /// A client's own data is neither read nor held ([`crate::repair::conceal`]).
    OwnData,
    /// Probes bound the round trip ([`crate::measure::rtt`]).
    Probe,
    /// Losses in a standing queue are congestion ([`crate::measure::guard`]).
    Guard,
    /// Needless copies have to be earned ([`crate::repair::budget`]).
    Budget,
    /// Attempts in vain put off the next one ([`crate::measure::doubt`]).
    Doubt,
    /// Where holding replies was in vain the sender sees them ([`crate::measure::worth`]).
    Worth,
    /// Only what cannot be chance proves a repair ([`crate::repair::proof`]).
    Proof,
    /// After a stall a gap is where the replies stopped ([`crate::infer::stall`]).
    Stall,
    /// Where replies keep no time no gap has a place ([`crate::measure::rtt`]), unless attempts find it.
    Blur,
    /// Storms are told in packets and last for the sender's round trip, at any rate
    /// ([`crate::repair::governor`]).
    Packets,
    /// No reply to a copy comes before the copy's round trip ([`crate::repair::gaps`]).
    Soonest,
    /// A reply that is no longer than usual before any copy can have been answered has shed
    /// ranges, and no gap has closed ([`crate::infer::sizes`]).
    Prune,
    /// Only gaps whose first attempt should have been answered make a storm
    /// ([`crate::repair::gaps`]).
    InVain,
    /// Where packets follow each other closely a reply names a window ([`crate::repair::gaps`]).
    Window,
    /// ... and where the host is later than packets are apart ([`crate::flow::window`]).
    Late,
    /// Until copies have told, probes bound the round trip more closely where packets are close
    /// ([`crate::measure::rtt`]).
    Handshake,
    /// Which of two packets that are close replies are about, what copies took tells
    /// ([`crate::measure::rtt`]).
    Alias,
    /// The replies to a train of packets tell which estimate of the round trip is too long
    /// ([`crate::measure::train`]).
    Train,
    /// Where losses hold up what follows, what may have been lost is told by the reply before, and answers to
    /// copies come later
    /// ([`crate::measure::retries`]).
    Retries,
    /// Packets count as sent when the hop takes them up, where its queue is known
    /// ([`crate::measure::link`]).
    Link,
    /// Where packets are close, those of a window are named before a copy has repaired anything as well
    /// ([`crate::flow::window`]).
    Next,
    /// Where a reply names a window because the host is or may be late, packets earn what that costs
    /// ([`crate::repair::budget`]).
    Earn,
    /// The second attempt of a window is for what was lost when the gap closed as well
    /// ([`crate::flow::window`]).
    Hidden,
    /// Where replies keep time, how long probes wait says nothing ([`crate::measure::rtt`]).
    Punctual,
    /// A copy that is answered at once has repaired what sizes do not show
    /// ([`crate::flow::read`]).
    Answer,
    /// A rhythm has to be regular before it may speak ([`crate::infer::rhythm`]).
    Regular,
    /// Where all replies are of one size any steady count is a rhythm ([`crate::infer::rhythm`]).
    Count,
    /// Frames of a client's own that wait while there is a gap ([`crate::infer::sizes`]).
    Shorter,
    /// Where sizes vary for other reasons a second reply has to show a gap as well
    /// ([`crate::infer::sizes`]).
    Repeat,
    /// After lost acknowledgements a gap may be before each of them ([`crate::repair::unheard`]).
    Behind,
    /// Further attempts are for all that can be missing, and for a gap that opened when the other
    /// closed ([`crate::repair::unheard`]).
    Again,
    /// Who does not heed losses is left alone ([`crate::measure::sender`]).
    Sender,
    /// Nothing is held of losses that make the sender no slower ([`crate::measure::tolerance`]).
    Tolerance,
    /// What a hop missed while it was away goes again in its order ([`crate::repair::missed`]).
    Missed,
    /// A client's next flow takes up the habit of the one before ([`crate::measure::habit`]).
    Habit,
    /// Packets change places two by two, so that a client replies to each
    /// ([`crate::repair::pairs`]).
    Pairs,
    /// Where attempts for the packet before the one that triggered a reply are in vain, another one
    /// near it is taken for lost ([`crate::repair::naming`]).
    Place,
}

#[cfg(feature = "ablation")]
impl Rule {
    /// All rules with their names.
    pub const ALL: [(Rule, &'static str); 53] = [
        (Rule::Size, "size"),
        (Rule::Rhythm, "rhythm"),
        (Rule::Skip, "skip"),
        (Rule::Floor, "floor"),
        (Rule::Adjacent, "adjacent"),
        (Rule::Overflow, "overflow"),
        (Rule::Storm, "storm"),
        (Rule::Run, "run"),
        (Rule::Retry, "retry"),
        (Rule::Tail, "tail"),
        (Rule::End, "end"),
        (Rule::FirstFlight, "first-flight"),
        (Rule::Conceal, "conceal"),
        (Rule::NewestFirst, "newest-first"),
        (Rule::NextReply, "next-reply"),
        (Rule::Overtake, "overtake"),
        (Rule::OwnData, "own-data"),
        (Rule::Probe, "probe"),
        (Rule::Guard, "guard"),
        (Rule::Budget, "budget"),
        (Rule::Doubt, "doubt"),
        (Rule::Worth, "worth"),
        (Rule::Proof, "proof"),
        (Rule::Stall, "stall"),
        (Rule::Blur, "blur"),
        (Rule::Packets, "packets"),
        (Rule::Soonest, "soonest"),
        (Rule::Prune, "prune"),
        (Rule::InVain, "in-vain"),
        (Rule::Window, "window"),
        (Rule::Late, "late"),
        (Rule::Handshake, "handshake"),
        (Rule::Alias, "alias"),
        (Rule::Train, "train"),
        (Rule::Retries, "retries"),
        (Rule::Link, "link"),
        (Rule::Next, "next"),
        (Rule::Earn, "earn"),
        (Rule::Hidden, "hidden"),
        (Rule::Punctual, "punctual"),
        (Rule::Answer, "answer"),
        (Rule::Regular, "regular"),
        (Rule::Count, "count"),
        (Rule::Shorter, "shorter"),
        (Rule::Repeat, "repeat"),
        (Rule::Behind, "behind"),
        (Rule::Again, "again"),
        (Rule::Sender, "sender"),
        (Rule::Tolerance, "tolerance"),
        (Rule::Missed, "missed"),
        (Rule::Habit, "habit"),
        (Rule::Pairs, "pairs"),
        (Rule::Place, "place"),
    ];
}

/// A set of rules.
#[cfg(feature = "ablation")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules(u64);

#[cfg(feature = "ablation")]
impl Rules {
    /// The same set with one more rule.
    #[must_use]
    pub fn with(self, rule: Rule) -> Rules {
        Rules(self.0 | 1 << rule as u64)
    }

    /// Whether a rule is in it.
    pub fn has(self, rule: Rule) -> bool {
        self.0 & 1 << rule as u64 != 0
    }
}
