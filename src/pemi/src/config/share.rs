// SPDX-License-Identifier: GPL-2.0-or-later
//! Whose clients a queue's are where there are several beside rings. The kernel's own way to share
//! flows out goes by a number that nobody else knows, so no ring could show a queue's clients alone;
//! the ends of their addresses everybody can see.

/// Bits at the end of a client's address that tell (chosen: with up to eight queues none has more
/// than twice as many clients as another; the addresses of a network are given out in turn, or by
/// chance, and both use these bits evenly).
pub(crate) const BITS: u8 = 0b1111;

/// The clients of one of several queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// How many queues there are; at least one.
    pub queues: u8,
    /// Which of them it is, from 0 on.
    pub index: u8,
}

impl Share {
    /// The bits that have to be looked at.
    pub fn bits(self) -> u8 {
        if self.queues.is_power_of_two() { self.queues - 1 } else { BITS }
    }

    /// What these bits are of its clients' addresses.
    pub fn ends(self) -> impl Iterator<Item = u8> {
        (0..=self.bits()).filter(move |end| end % self.queues == self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_one_queue_and_none_has_most() {
        for queues in 1..=8 {
            let shares = (0..queues).map(|index| Share { queues, index });
            let mut clients = vec![0; queues.into()];
            for address in 0..=u8::MAX {
                let has = |share: &Share| share.ends().any(|end| end == address & share.bits());
                let its: Vec<Share> = shares.clone().filter(has).collect();
                assert_eq!(its.len(), 1, "{address} of {queues}: {its:?}");
                assert_eq!(its[0].index, (address & BITS) % queues, "as a ring's filter has it");
                clients[usize::from(its[0].index)] += 1;
            }
            let (most, least) = (clients.iter().max().unwrap(), clients.iter().min().unwrap());
            assert!(most <= &(2 * least), "{clients:?}");
        }
    }
}
