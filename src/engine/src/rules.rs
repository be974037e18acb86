//! Rules that can be switched off to measure what each is worth. Only with the
//! feature `ablation`; without it every rule is on and nothing is asked at run time.

/// A rule of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Rule {
    /// Two bytes more in a reply are a hole ([`crate::gap`]).
    Size,
    /// The rhythm of decimating clients ([`crate::habit`]).
    Rhythm,
    /// One packet more than a steady count ([`crate::habit`]).
    Skip,
    /// Two bytes above the smallest size of late ([`crate::gap`]).
    Floor,
    /// Holes between two packets that were answered one by one are not the hop's.
    Adjacent,
    /// A fourth hole while three stay open is an overflow before the router.
    Overflow,
    /// What fails four times in a short time is a storm ([`crate::governor`]).
    Storm,
    /// Without hope only now and then a sign is tried ([`crate::governor`]).
    Hope,
    /// A copy that is answered while the hole stays is the end of a longer run.
    Run,
    /// Packets are tried more than once.
    Retry,
    /// Copies for the ends of bursts ([`crate::tail`]).
    Tail,
    /// The first flight goes twice ([`crate::start`]).
    FirstFlight,
    /// Replies that tell of a hole are held ([`crate::conceal`]).
    Conceal,
    /// The healed reply goes first, then the held ones.
    NewestFirst,
    /// A hole that is given up waits for the next reply.
    NextReply,
    /// What the copy overtakes is not held on a hop not known to lose packets.
    Overtake,
    /// A client's own data is neither read nor held.
    OwnData,
    /// Probes bound the round trip ([`crate::rtt`]).
    Probe,
    /// Losses in a standing queue are congestion ([`crate::guard`]).
    Guard,
    /// Needless copies have to be earned ([`crate::budget`]).
    Budget,
}

#[cfg(feature = "ablation")]
impl Rule {
    /// All rules with their names.
    pub const ALL: [(Rule, &'static str); 20] = [
        (Rule::Size, "size"),
        (Rule::Rhythm, "rhythm"),
        (Rule::Skip, "skip"),
        (Rule::Floor, "floor"),
        (Rule::Adjacent, "adjacent"),
        (Rule::Overflow, "overflow"),
        (Rule::Storm, "storm"),
        (Rule::Hope, "hope"),
        (Rule::Run, "run"),
        (Rule::Retry, "retry"),
        (Rule::Tail, "tail"),
        (Rule::FirstFlight, "first-flight"),
        (Rule::Conceal, "conceal"),
        (Rule::NewestFirst, "newest-first"),
        (Rule::NextReply, "next-reply"),
        (Rule::Overtake, "overtake"),
        (Rule::OwnData, "own-data"),
        (Rule::Probe, "probe"),
        (Rule::Guard, "guard"),
        (Rule::Budget, "budget"),
    ];
}

/// A set of rules.
#[cfg(feature = "ablation")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules(u32);

#[cfg(feature = "ablation")]
impl Rules {
    /// The same with one more.
    #[must_use]
    pub fn with(self, rule: Rule) -> Rules {
        Rules(self.0 | 1 << rule as u32)
    }

    /// Whether a rule is in it.
    pub fn has(self, rule: Rule) -> bool {
        self.0 & 1 << rule as u32 != 0
    }
}
