//! The classic (Broder 1997): `k` independent functions, each slot the least value of its function.

use super::{Scheme, Slot as _};
use crate::hash::{Domain, key};

/// Elements hashed together: their functions' keys are loaded once, and eight minima fit the registers.
const TOGETHER: usize = 8;
/// An odd multiplier with good avalanche in 32 bits.
const FACTOR: u32 = 0x7FEB_352D;

/// `k` independent 32-bit functions.
#[derive(Clone, Debug)]
pub struct MinHash {
    masks: Box<[u32]>,
    factors: Box<[u32]>,
    simd: bool,
}

impl MinHash {
    /// A scheme of `slots` functions under `seed`; `simd` false keeps to portable code, for tests.
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
    fn lower_with(&self, elements: &[u64], out: &mut [u32]) {
        let (groups, rest) = elements.as_chunks::<TOGETHER>();
        for group in groups {
            self.lower(group, out);
        }
        for &element in rest {
            self.lower(&[element], out);
        }
    }

    #[inline(always)]
    fn lower<const N: usize>(&self, elements: &[u64; N], out: &mut [u32]) {
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
    fn lower_avx2(&self, elements: &[u64], out: &mut [u32]) {
        self.lower_with(elements, out);
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
            // SAFETY: the feature that the function is compiled for was just seen on this processor.
            unsafe { self.lower_avx2(elements, out) };
            return;
        }
        self.lower_with(elements, out);
    }
}
