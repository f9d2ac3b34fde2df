//! Bins: where one round of hashing sends an element, and how far into its bin.

use crate::hash::{Domain, fold, key};

/// Bits of a place inside a bin. The bits below them would be zero whenever the number of bins is a power of two, and so
/// worthless to a signature that keeps only low bits; the bits above are free for the round.
pub const PLACE_BITS: u32 = 48;

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
    const fn hash(self, element: u64) -> u64 {
        fold(element ^ self.mask, self.factor)
    }

    /// The bin of `element` among `bins`, and its place inside the bin as a fraction of [`PLACE_BITS`].
    #[inline(always)]
    pub const fn place(self, element: u64, bins: usize) -> (usize, u64) {
        let product = self.hash(element) as u128 * bins as u128;
        ((product >> 64) as usize, product as u64 >> (64 - PLACE_BITS))
    }

    /// The hash of `element` as a fraction of [`PLACE_BITS`].
    #[inline(always)]
    pub const fn fraction(self, element: u64) -> u64 {
        self.hash(element) >> (64 - PLACE_BITS)
    }
}
