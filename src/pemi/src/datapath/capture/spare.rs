// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether processors have time to spare: then a wake-up takes it from nobody.

use std::fs::File;
use std::os::unix::fs::FileExt;

use pemi_engine::{MS, Nanos, SEC, Time};

/// How long the router is up, and how long its processors had nothing to do, together, in seconds with
/// two decimals (proc(5)).
const UPTIME: &str = "/proc/uptime";
/// How often it is read: its figures have a grain of 10 ms, and a download has not left its slow start.
const EVERY: Nanos = MS * 100;
/// What was idle before a longer pause than this says nothing of now.
const LATELY: Nanos = SEC;
/// There is time to spare from that many hundredths of a processor on, until it is less than the other:
/// packets that are read one by one take no more than twice what they do together, so this does not swing.
const FROM: u32 = 60;
const UNTIL: u32 = 20;

/// Up and idle, in hundredths of a second, which begin anew after some months.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sums {
    up: u32,
    idle: u32,
}

/// Follows that.
#[derive(Debug)]
pub(super) struct Spare {
    file: Option<File>,
    looked: Option<(Time, Sums)>,
    spare: bool,
}

impl Spare {
    pub fn new() -> Spare {
        Spare { file: File::open(UPTIME).ok(), looked: None, spare: false }
    }

    /// One that always says this.
    #[cfg(test)]
    pub fn always(spare: bool) -> Spare {
        let never_again = Time::ZERO + Nanos::MAX / 2;
        Spare { file: None, looked: Some((never_again, Sums { up: 0, idle: 0 })), spare }
    }

    /// Whether there is time to spare now; no where nothing tells.
    pub fn look(&mut self, now: Time) -> bool {
        if self.looked.is_none_or(|(looked, _)| now.since(looked) >= EVERY) {
            match self.file.as_ref().and_then(sums) {
                Some(sums) => self.judge(now, sums),
                // Nor is it asked again.
                None => (self.file, self.spare) = (None, false),
            }
        }
        self.spare
    }

    fn judge(&mut self, now: Time, sums: Sums) {
        let before = self.looked.replace((now, sums));
        let lately = before.filter(|(looked, _)| now.since(*looked) <= LATELY);
        let Some((_, before)) = lately else {
            self.spare = false;
            return;
        };
        let up = sums.up.wrapping_sub(before.up);
        let idle = sums.idle.wrapping_sub(before.idle);
        let least = if self.spare { UNTIL } else { FROM };
        self.spare = up > 0 && idle.saturating_mul(100) >= up.saturating_mul(least);
    }
}

/// Reads both sums.
fn sums(file: &File) -> Option<Sums> {
    let mut text = [0; 64];
    let len = file.read_at(&mut text, 0).ok()?;
    parse(text.get(..len)?)
}

fn parse(text: &[u8]) -> Option<Sums> {
    let mut sums = [0u32; 2];
    let mut field = 0;
    for byte in text {
        match byte {
            b'0'..=b'9' => {
                let sum = sums.get_mut(field)?;
                *sum = sum.wrapping_mul(10).wrapping_add(u32::from(byte - b'0'));
            }
            b'.' => {}
            b' ' => field += 1,
            b'\n' if field == 1 => return Some(Sums { up: sums[0], idle: sums[1] }),
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_read() {
        let read = |text: &str| parse(text.as_bytes());
        assert_eq!(read("350735.47 234388.90\n"), Some(Sums { up: 35_073_547, idle: 23_438_890 }));
        assert_eq!(read("0.07 0.00\n"), Some(Sums { up: 7, idle: 0 }));
        let months = read("42949673.00 0.00\n").unwrap();
        assert_eq!(months.up, 4, "it has begun anew");
        for odd in ["", "\n", "1.50\n", "1.50 2.00", "-1.50 2.00\n", "1,50 2,00\n", "1 2 3\n"] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }

    #[test]
    fn it_is_spare_from_much_on_until_little() {
        let mut spare = Spare { file: None, looked: None, spare: false };
        let mut sums = Sums { up: 0, idle: 0 };
        let mut judged = |ms: Nanos, up: u32, idle: u32| {
            sums = Sums { up: sums.up + up, idle: sums.idle + idle };
            spare.judge(Time::ZERO + ms * MS, sums);
            spare.spare
        };
        assert!(!judged(0, 0, 1000), "before anything was compared");
        assert!(!judged(100, 10, 5));
        assert!(judged(200, 10, 6));
        assert!(judged(300, 10, 2));
        assert!(!judged(400, 10, 1));
        assert!(judged(500, 10, 40), "four processors");
        assert!(!judged(5_000, 450, 450), "that was before now");
        assert!(!judged(5_000, 0, 0));
    }

    #[test]
    fn without_the_file_nothing_is_spare() {
        let mut spare = Spare { file: None, looked: None, spare: true };
        assert!(!spare.look(Time::ZERO + SEC));
    }
}
