//! Assignment of an element to a bin, and to an offset in the bin, in one round of hashing.

use crate::hash::{Domain, fold, key};

/// Bits of an offset in a bin. The bits below them are zero whenever the number of bins is a power of two, and
/// therefore useless for a signature that keeps only low bits; the bits above them hold the round.
pub const OFFSET_BITS: u32 = 48;

/// Keys of one round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    mask: u64,
    factor: u64,
}

impl Round {
    /// Create the keys of round `number` under `seed`.
    pub const fn new(seed: u64, number: u64) -> Self {
        Self { mask: key(seed, Domain::Bins, 2 * number), factor: key(seed, Domain::Bins, 2 * number + 1) | 1 }
    }

    /// Return the hash of `element` in this round.
    #[inline(always)]
    pub const fn hash(self, element: u64) -> u64 {
        fold(element ^ self.mask, self.factor)
    }
}

/// Partition of the range of a hash into bins, and of each bin into offsets of [`OFFSET_BITS`].
pub trait Bins: Copy {
    /// Return the bin of a hash and its offset in the bin.
    fn locate(self, hash: u64) -> (usize, u64);
}

/// Any number of bins.
#[derive(Clone, Copy, Debug)]
pub struct AnyBins(pub usize);

impl Bins for AnyBins {
    #[inline(always)]
    fn locate(self, hash: u64) -> (usize, u64) {
        let product = u128::from(hash) * self.0 as u128;
        ((product >> 64) as usize, product as u64 >> (64 - OFFSET_BITS))
    }
}

/// Two to this power bins, at least 2. The same as [`AnyBins`] with shifts instead of a multiplication, which makes the
/// rounds of [`super::FastSketch`] a tenth faster.
#[derive(Clone, Copy, Debug)]
pub struct PowerOfTwoBins(pub u32);

impl Bins for PowerOfTwoBins {
    #[inline(always)]
    fn locate(self, hash: u64) -> (usize, u64) {
        ((hash >> (64 - self.0)) as usize, (hash << self.0) >> (64 - OFFSET_BITS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn power_of_two_bins_equal_any_bins() {
        for power in 1..=14 {
            for hash in (0..1000).map(mix).chain([0, 1, u64::MAX, 1 << 63]) {
                assert_eq!(PowerOfTwoBins(power).locate(hash), AnyBins(1 << power).locate(hash));
            }
        }
    }
}
