//! `MinHash` (Broder 1997): `k` independent hash functions; each slot is the minimum of its function.

use super::{Scheme, Slot as _};
use crate::hash::{Domain, key};

/// Elements hashed together: the keys of a function are loaded once per batch, and eight minima fit the registers.
const BATCH: usize = 8;
/// Odd multiplier with good avalanche in 32 bits.
const FACTOR: u32 = 0x7FEB_352D;

/// `k` independent 32-bit hash functions.
#[derive(Clone, Debug)]
pub struct MinHash {
    masks: Box<[u32]>,
    factors: Box<[u32]>,
    simd: bool,
}

impl MinHash {
    /// Create a scheme of `slots` functions under `seed`; `simd` false selects the portable code, for tests.
    #[must_use]
    pub fn new(slots: usize, seed: u64, simd: bool) -> Self {
        let keys = || (0..slots as u64).map(|i| key(seed, Domain::MinHash, i));
        Self {
            masks: keys().map(|key| key as u32).collect(),
            factors: keys().map(|key| (key >> 32) as u32 | 1).collect(),
            simd,
        }
    }

    #[inline(always)]
    fn update_all(&self, elements: &[u64], out: &mut [u32]) {
        let (groups, rest) = elements.as_chunks::<BATCH>();
        for group in groups {
            self.update_slots(group, out);
        }
        for &element in rest {
            self.update_slots(&[element], out);
        }
    }

    #[inline(always)]
    fn update_slots<const N: usize>(&self, elements: &[u64; N], out: &mut [u32]) {
        let halves = elements.map(|element| (element as u32, (element >> 32) as u32));
        for ((slot, &mask), &factor) in out.iter_mut().zip(&self.masks).zip(&self.factors) {
            let mut least = *slot;
            for (lo, hi) in halves {
                let mut u = (lo ^ mask).wrapping_mul(FACTOR);
                u ^= u >> 15;
                u = (u ^ hi).wrapping_mul(factor);
                least = least.min(u ^ u >> 16);
            }
            *slot = least;
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn update_all_avx2(&self, elements: &[u64], out: &mut [u32]) {
        self.update_all(elements, out);
    }
}

impl Scheme for MinHash {
    type Slot = u32;

    fn slots(&self) -> usize {
        self.masks.len()
    }

    fn sketch(&self, elements: &mut Vec<u64>, out: &mut [u32]) {
        out.fill(u32::EMPTY);
        if elements.is_empty() {
            return;
        }
        out.fill(u32::EMPTY - 1);
        #[cfg(target_arch = "x86_64")]
        if self.simd && crate::simd::available() {
            // SAFETY: the processor has the feature that the function is compiled for.
            unsafe { self.update_all_avx2(elements, out) };
            return;
        }
        self.update_all(elements, out);
    }
}
