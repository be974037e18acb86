// SPDX-License-Identifier: GPL-2.0-or-later
//! The round-trip time from end to end, by times that both sides send back.

use super::packet::Header;

/// One side's view. Times are nanoseconds of its own clock, but for what the other said.
#[derive(Debug, Default)]
pub struct Rtt {
    /// The other side's time and when it came.
    last: Option<(u64, u64)>,
    smoothed: Option<u64>,
}

impl Rtt {
    /// What to say now.
    pub fn header(&self, now: u64, session: u64) -> Header {
        let (echo, came) = self.last.unwrap_or((0, now));
        Header { session, time: now, echo, held: now.saturating_sub(came) }
    }

    /// The other side said something.
    pub fn take(&mut self, now: u64, header: &Header) {
        if self.last.is_none_or(|(time, _)| time < header.time) {
            self.last = Some((header.time, now));
        }
        if header.echo == 0 {
            return;
        }
        let sample = now.saturating_sub(header.echo).saturating_sub(header.held);
        self.smoothed = Some(match self.smoothed {
            None => sample,
            Some(smoothed) => smoothed - smoothed / 8 + sample / 8,
        });
    }

    /// In nanoseconds, if it is known.
    pub fn get(&self) -> Option<u64> {
        self.smoothed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_need_not_agree_and_waiting_does_not_count() {
        let (mut near, mut far) = (Rtt::default(), Rtt::default());
        far.take(1_000_030, &near.header(500, 1));
        // 30 there, 400 held, 30 back.
        near.take(960, &far.header(1_000_430, 1));
        assert_eq!((near.get(), far.get()), (Some(60), None));
        far.take(1_000_500, &near.header(970, 1));
        assert_eq!(far.get(), Some(60));
    }
}
