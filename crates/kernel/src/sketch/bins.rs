//! Bins: where one round of hashing sends an element, and how far into its bin.

use crate::hash::{Domain, fold, key};

/// The keys of one round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    mask: u64,
    factor: u64,
}

impl Round {
    /// The keys of round `number` under `seed`.
    pub const fn new(seed: u64, number: u64) -> Self {
        Self { mask: key(seed, Domain::Bins, 2 * number), factor: key(seed, Domain::Bins, 2 * number + 1) | 1 }
    }

    /// The hash of `element` in this round.
    #[inline(always)]
    pub const fn hash(self, element: u64) -> u64 {
        fold(element ^ self.mask, self.factor)
    }

    /// The bin of `element` among `bins`, and its place inside the bin as a 64-bit fraction.
    #[inline(always)]
    pub const fn place(self, element: u64, bins: usize) -> (usize, u64) {
        let product = self.hash(element) as u128 * bins as u128;
        ((product >> 64) as usize, product as u64)
    }
}
