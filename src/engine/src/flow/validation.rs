// SPDX-License-Identifier: GPL-2.0-or-later
//! Who has spoken: nothing is sent, held, kept or told for a flow before both
//! ends have, and little before the receiver has replied.
//!
//! Anybody on the Internet can send a packet that looks like QUIC to a client of ours. What
//! is done for such a flow would be done for its sender, and to somebody who never asked for it. RFC 9000, section 8, has the same question and the same limit:
//! three times what came, until the other end has shown that it is there.

/// Copies that may be sent for what came, in parts of it, until the receiver has
/// replied: with the original itself that is three times as much (RFC 9000,
/// section 8).
const COPIES_BEFORE_REPLY: u64 = 2;

/// One flow. The sender is whoever sends the data that is repaired, the receiver
/// the other end; in the mirrored engine the sender is our client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validation {
    mirrored: bool,
    sender: bool,
    receiver: bool,
    /// A client of ours has sent the first packet.
    client_began: bool,
    /// The receiver has spoken after the sender.
    validated: bool,
    /// IP bytes from the sender, and of copies, until then.
    received: u64,
    copied: u64,
}

impl Validation {
    pub fn new(mirrored: bool) -> Validation {
        Validation {
            mirrored,
            sender: false,
            receiver: false,
            client_began: false,
            validated: false,
            received: 0,
            copied: 0,
        }
    }

    /// Takes note of a packet of this size; `reply` if the receiver sent it.
    pub fn heard(&mut self, reply: bool, bytes: usize) {
        if self.validated {
            return;
        }
        if !self.sender && !self.receiver {
            self.client_began = reply != self.mirrored;
        }
        if reply {
            self.receiver = true;
            self.validated |= self.sender;
        } else {
            self.sender = true;
            self.received += bytes as u64;
        }
    }

    /// Whether both ends have spoken.
    pub fn established(&self) -> bool {
        self.sender && self.receiver
    }

    /// Whether a client of ours has sent the first packet that was seen.
    pub fn client_began(&self) -> bool {
        self.client_began
    }

    /// Whether this many bytes more may be sent to the receiver.
    pub fn allows(&self, bytes: usize) -> bool {
        let limit = COPIES_BEFORE_REPLY * self.received;
        self.validated || self.client_began && self.copied + bytes as u64 <= limit
    }

    /// Takes note of bytes that were sent.
    pub fn copied(&mut self, bytes: usize) {
        self.copied += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_not_asked_gets_nothing() {
        let mut v = Validation::new(false);
        for _ in 0..100 {
            v.heard(false, 1200);
        }
        assert!(!v.established() && !v.allows(1));
        v.heard(true, 40);
        assert!(v.established() && v.allows(1_000_000) && !v.client_began());
    }

    #[test]
    fn until_the_client_answers_three_times_as_much_at_most() {
        let mut v = Validation::new(false);
        v.heard(true, 1200);
        assert!(!v.established() && !v.allows(1));
        v.heard(false, 1000);
        v.heard(false, 200);
        assert!(v.established());
        v.copied(1200);
        assert!(v.allows(1200) && !v.allows(1201));
        v.copied(1200);
        assert!(!v.allows(1));
        v.heard(true, 40);
        assert!(v.allows(1_000_000));
    }

    #[test]
    fn a_silent_server_may_be_asked_again_for_a_client_of_ours() {
        let mut v = Validation::new(true);
        v.heard(false, 1200);
        assert!(v.client_began() && !v.established());
        assert!(v.allows(2400) && !v.allows(2401));
        let mut unasked = Validation::new(true);
        unasked.heard(true, 1200);
        unasked.heard(false, 40);
        assert!(!unasked.client_began() && !unasked.allows(40), "the server began");
    }
}
