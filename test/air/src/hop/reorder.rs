// SPDX-License-Identifier: GPL-2.0-or-later
//! A receiver's reorder buffer, as mac80211 keeps one for each block ack session.
//!
//! A frame that came after a hole waits for the hole to be filled. What ends the
//! waiting otherwise: the sender's block ack request, a frame beyond the window, or
//! the timer. Frames from before the window are dropped.

use crate::{MS, Nanos};

/// Sequence numbers that may wait at once.
const WINDOW: u16 = 64;
/// `HT_RX_REORDER_BUF_TIMEOUT`, and the tick that is added to it.
const TIMEOUT: Nanos = 104 * MS;
/// The kernel's timers run with its ticks: 250 a second.
const TICK: Nanos = 4 * MS;
/// Sequence numbers have twelve bits.
const MASK: u16 = 0xfff;

/// The frames that wait.
#[derive(Debug)]
pub struct Reorder<T> {
    /// The number to be handed up next.
    head: u16,
    stored: [Option<(Nanos, T)>; WINDOW as usize],
    count: u16,
}

impl<T> Reorder<T> {
    /// A session that begins with the number 0.
    pub fn new() -> Reorder<T> {
        Reorder { head: 0, stored: [const { None }; WINDOW as usize], count: 0 }
    }

    /// A frame arrives: hands up what is in order now, or gives it back when its
    /// number has been passed by.
    pub fn arrive(
        &mut self,
        now: Nanos,
        sequence: u16,
        item: T,
        mut up: impl FnMut(T),
    ) -> Result<(), T> {
        if is_before(sequence, self.head) {
            return Err(item);
        }
        let beyond = ahead(self.head, sequence) >= WINDOW;
        if beyond {
            self.go_to((sequence + 1).wrapping_sub(WINDOW) & MASK, &mut up);
        }
        let slot = &mut self.stored[index(sequence)];
        if slot.is_none() {
            self.count += 1;
        }
        // The timer's own tick, and that up to the next one.
        *slot = Some(((now + TIMEOUT).next_multiple_of(TICK), item));
        self.hand_up(&mut up);
        Ok(())
    }

    /// The sender will send nothing before `start` any more.
    pub fn request(&mut self, start: u16, mut up: impl FnMut(T)) {
        if !is_before(start, self.head) {
            self.go_to(start, &mut up);
            self.hand_up(&mut up);
        }
    }

    /// When [`Reorder::expire`] is wanted.
    pub fn deadline(&self) -> Option<Nanos> {
        if self.count == 0 {
            return None;
        }
        self.ahead_of_head().find_map(|n| self.stored[n].as_ref().map(|(at, _)| *at))
    }

    /// Goes past holes before frames that have waited long enough.
    pub fn expire(&mut self, now: Nanos, mut up: impl FnMut(T)) {
        while self.deadline().is_some_and(|at| at <= now) {
            while self.stored[index(self.head)].is_none() {
                self.head = (self.head + 1) & MASK;
            }
            self.hand_up(&mut up);
        }
    }

    /// Ends the session; what waited is dropped.
    pub fn end(&mut self) -> impl Iterator<Item = T> {
        self.count = 0;
        let dropped = std::mem::take(self).stored;
        dropped.into_iter().flatten().map(|(_, item)| item)
    }

    fn ahead_of_head(&self) -> impl Iterator<Item = usize> + use<T> {
        let head = self.head;
        (0..WINDOW).map(move |n| index(head.wrapping_add(n)))
    }

    fn go_to(&mut self, head: u16, up: &mut impl FnMut(T)) {
        let skipped = ahead(self.head, head).min(WINDOW);
        for n in 0..skipped {
            self.take(index(self.head.wrapping_add(n)), up);
        }
        self.head = head;
    }

    fn hand_up(&mut self, up: &mut impl FnMut(T)) {
        while self.stored[index(self.head)].is_some() {
            self.take(index(self.head), up);
            self.head = (self.head + 1) & MASK;
        }
    }

    fn take(&mut self, slot: usize, up: &mut impl FnMut(T)) {
        if let Some((_, item)) = self.stored[slot].take() {
            self.count -= 1;
            up(item);
        }
    }
}

impl<T> Default for Reorder<T> {
    fn default() -> Reorder<T> {
        Reorder::new()
    }
}

fn index(sequence: u16) -> usize {
    usize::from(sequence % WINDOW)
}

/// How far `to` is ahead of `from`.
fn ahead(from: u16, to: u16) -> u16 {
    to.wrapping_sub(from) & MASK
}

/// Half of the numbers count as before.
fn is_before(a: u16, b: u16) -> bool {
    ahead(b, a) > MASK / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of a buffer's frames are their items.
    struct Bench {
        reorder: Reorder<u16>,
        up: Vec<u16>,
    }

    impl Bench {
        fn new(numbers: impl IntoIterator<Item = u16>) -> Bench {
            let mut bench = Bench { reorder: Reorder::new(), up: Vec::new() };
            for number in numbers {
                bench.arrive(0, number).unwrap();
            }
            bench
        }

        fn arrive(&mut self, now: Nanos, number: u16) -> Result<(), u16> {
            self.reorder.arrive(now, number & MASK, number, |item| self.up.push(item))
        }
    }

    #[test]
    fn hands_up_in_order() {
        let bench = Bench::new([0, 2, 1, 4, 3]);
        assert_eq!(bench.up, [0, 1, 2, 3, 4]);
        assert_eq!((bench.reorder.count, bench.reorder.deadline()), (0, None));
    }

    #[test]
    fn a_hole_holds_what_follows_until_the_request() {
        let mut bench = Bench::new([0, 2, 3, 5]);
        assert_eq!((&bench.up[..], bench.reorder.count), (&[0][..], 3));
        let Bench { reorder, up } = &mut bench;
        reorder.request(2, |item| up.push(item));
        assert_eq!(bench.up, [0, 2, 3]);
        assert_eq!(bench.arrive(0, 1), Err(1), "its number has been passed by");
    }

    #[test]
    fn or_until_the_window_moves() {
        let mut bench = Bench::new(1..64);
        assert_eq!(bench.up, []);
        bench.arrive(0, 64).unwrap();
        assert_eq!(bench.up, (1..65).collect::<Vec<_>>());
    }

    #[test]
    fn or_until_the_timer_ends_which_counts_for_each_frame() {
        let mut bench = Bench::new([0]);
        bench.arrive(MS, 2).unwrap();
        bench.arrive(50 * MS, 4).unwrap();
        assert_eq!(bench.reorder.deadline(), Some(108 * MS));
        let Bench { reorder, up } = &mut bench;
        reorder.expire(107 * MS, |item| up.push(item));
        assert_eq!(up, &[0]);
        reorder.expire(108 * MS, |item| up.push(item));
        assert_eq!(up, &[0, 2]);
        assert_eq!(reorder.deadline(), Some(156 * MS));
    }

    #[test]
    fn numbers_wrap() {
        let bench = Bench::new(0..4_200);
        assert_eq!(bench.up.len(), 4_200);
        let mut bench = Bench::new(0..4_095);
        bench.arrive(0, 4_096).unwrap();
        assert_eq!(bench.reorder.count, 1);
        bench.arrive(0, 4_095).unwrap();
        assert_eq!(bench.up.len(), 4_097);
    }

    #[test]
    fn a_session_that_ends_drops_what_waited() {
        let mut bench = Bench::new([0, 2, 3]);
        assert_eq!(bench.reorder.end().collect::<Vec<_>>(), [2, 3]);
        bench.arrive(0, 0).unwrap();
        assert_eq!(bench.up, [0, 0]);
    }
}
