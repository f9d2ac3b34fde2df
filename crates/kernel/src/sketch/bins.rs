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
    pub const fn hash(self, element: u64) -> u64 {
        fold(element ^ self.mask, self.factor)
    }
}

/// Cuts the range of a hash into bins, and each bin into places of [`PLACE_BITS`].
pub trait Bins: Copy {
    /// The bin of a hash, and its place inside the bin.
    fn locate(self, hash: u64) -> (usize, u64);
}

/// Any number of bins.
#[derive(Clone, Copy, Debug)]
pub struct AnyBins(pub usize);

impl Bins for AnyBins {
    #[inline(always)]
    fn locate(self, hash: u64) -> (usize, u64) {
        let product = u128::from(hash) * self.0 as u128;
        ((product >> 64) as usize, product as u64 >> (64 - PLACE_BITS))
    }
}

/// Two to this power, at least 1, bins: the same as [`AnyBins`] with shifts for the multiplication, which makes the
/// rounds of [`super::FastSketch`] a tenth faster.
#[derive(Clone, Copy, Debug)]
pub struct PowerOfTwoBins(pub u32);

impl Bins for PowerOfTwoBins {
    #[inline(always)]
    fn locate(self, hash: u64) -> (usize, u64) {
        ((hash >> (64 - self.0)) as usize, (hash << self.0) >> (64 - PLACE_BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn shifting_is_multiplying_by_a_power_of_two() {
        for power in 1..=14 {
            for hash in (0..1000).map(mix).chain([0, 1, u64::MAX, 1 << 63]) {
                assert_eq!(PowerOfTwoBins(power).locate(hash), AnyBins(1 << power).locate(hash));
            }
        }
    }
}
