// SPDX-License-Identifier: GPL-2.0-or-later
//! The last few of something, without allocation.

/// Keeps the last `N` values pushed, at most 254: every flow has a dozen of these, so that
/// the counters' own size counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recent<T, const N: usize> {
    items: [T; N],
    len: u8,
    next: u8,
}

impl<T: Copy + Default, const N: usize> Recent<T, N> {
    const LEN: u8 = {
        assert!(N > 0 && N < u8::MAX as usize);
        N as u8
    };

    pub fn new() -> Self {
        Recent { items: [T::default(); N], len: 0, next: 0 }
    }

    pub fn push(&mut self, item: T) {
        self.items[usize::from(self.next)] = item;
        self.next = (self.next + 1) % Self::LEN;
        self.len = (self.len + 1).min(Self::LEN);
    }

    /// The value that has to make room for the next one.
    pub fn leaves_next(&self) -> Option<T> {
        (self.len == Self::LEN).then(|| self.items[usize::from(self.next)])
    }

    pub fn clear(&mut self) {
        self.len = 0;
        self.next = 0;
    }

    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// In no particular order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.items[..self.len()].iter().copied()
    }

    /// The value pushed last.
    pub fn last(&self) -> Option<T> {
        (self.len > 0).then(|| self.items[(usize::from(self.next) + N - 1) % N])
    }
}

impl<T: Copy + Default + Ord, const N: usize> Recent<T, N> {
    /// The value that `numerator / denominator` of the others are not above.
    pub fn quantile(&self, numerator: usize, denominator: usize) -> Option<T> {
        let mut sorted = self.items;
        let sorted = &mut sorted[..self.len()];
        sorted.sort_unstable();
        let at = (self.len() * numerator / denominator).min(self.len().wrapping_sub(1));
        sorted.get(at).copied()
    }

    pub fn min(&self) -> Option<T> {
        self.iter().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_n() {
        let mut r = Recent::<i32, 3>::new();
        assert_eq!((r.last(), r.quantile(1, 2), r.min()), (None, None, None));
        let left = [5, 1, 4, 2].map(|i| {
            let leaves = r.leaves_next();
            r.push(i);
            leaves
        });
        assert_eq!((left, r.leaves_next()), ([None, None, None, Some(5)], Some(1)));
        assert_eq!(r.len(), 3);
        assert_eq!((r.last(), r.quantile(1, 2), r.min()), (Some(2), Some(2), Some(1)));
        assert_eq!(r.quantile(1, 1), Some(4));
        r.clear();
        assert_eq!(r.last(), None);
    }
}
