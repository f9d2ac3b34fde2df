//! Fast similarity sketching (Dahlgaard, Knudsen, Thorup 2017): one permutation hashing that is repeated, round by
//! round, until no bin is empty. The probability that a slot of two sets is equal is exactly their Jaccard similarity.

use super::bins::{AnyBins, Bins, OFFSET_BITS, PowerOfTwoBins, Round};
use super::{Scheme, Slot as _};

/// Elements per slot above which repeated elements are removed before the third round. That many distinct elements
/// hardly ever need one; that many repeated ones (a page of zeros) would need every round, each over all of them.
const DEDUPLICATE_ABOVE: usize = 4;
/// Round before which repeated elements are removed from any set: only small sets need many rounds, and sorting them is
/// cheap.
const DEDUPLICATE_LATE: usize = 16;
/// Elements per slot up to which a slot is written without a branch. In this phase a branch on the change would often
/// be mispredicted; later it hardly ever is, and a loop that seldom writes does not wait for its own writes.
const DENSE_ELEMENTS: usize = 4;
/// The same for later rounds: slots are written without a branch while more than one in four is empty.
const DENSE_EMPTY: usize = 4;

/// Rounds of bins; a slot is the smallest (round, offset) of its bin.
#[derive(Clone, Debug)]
pub struct FastSketch {
    rounds: Box<[Round]>,
    simd: bool,
}

impl FastSketch {
    /// Create a scheme of `slots` slots under `seed`; `simd` false selects the portable code, for tests.
    #[must_use]
    pub fn new(slots: usize, seed: u64, simd: bool) -> Self {
        Self { rounds: (0..2 * slots as u64).map(|number| Round::new(seed, number)).collect(), simd }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn sketch_bmi2(&self, elements: &mut Vec<u64>, out: &mut [u64]) {
        self.sketch_portable(elements, out);
    }

    #[inline(always)]
    fn sketch_portable(&self, elements: &mut Vec<u64>, out: &mut [u64]) {
        let slots = out.len();
        if slots.is_power_of_two() && slots > 1 {
            self.sketch_into(PowerOfTwoBins(slots.trailing_zeros()), elements, out);
        } else {
            self.sketch_into(AnyBins(slots), elements, out);
        }
    }

    #[inline(always)]
    fn sketch_into(&self, bins: impl Bins, elements: &mut Vec<u64>, out: &mut [u64]) {
        let slots = out.len();
        let mut empty = self.first_round(bins, elements, out);
        for number in 1..slots {
            if empty == 0 {
                return;
            }
            if number == DEDUPLICATE_LATE || number == 2 && elements.len() > DEDUPLICATE_ABOVE * slots {
                elements.sort_unstable();
                elements.dedup();
            }
            empty = self.run_round(number, bins, elements, out, empty);
        }
        for (bin, slot) in out.iter_mut().enumerate().filter(|(_, slot)| **slot == u64::EMPTY) {
            *slot = self.fill_bin(slots + bin, elements);
        }
    }

    /// Run round 0, which is one permutation hashing; return the number of empty bins.
    #[inline(always)]
    fn first_round(&self, bins: impl Bins, elements: &[u64], out: &mut [u64]) -> usize {
        let round = self.rounds[0];
        let (early, late) = elements.split_at(elements.len().min(DENSE_ELEMENTS * out.len()));
        for &element in early {
            let (bin, offset) = bins.locate(round.hash(element));
            out[bin] = out[bin].min(offset);
        }
        for &element in late {
            let (bin, offset) = bins.locate(round.hash(element));
            if offset < out[bin] {
                out[bin] = offset;
            }
        }
        out.iter().filter(|&&slot| slot == u64::EMPTY).count()
    }

    /// Run round `number`, in which earlier rounds win; return the number of empty bins.
    #[inline(always)]
    fn run_round(&self, number: usize, bins: impl Bins, elements: &[u64], out: &mut [u64], mut empty: usize) -> usize {
        let round = self.rounds[number];
        let tag = (number as u64) << OFFSET_BITS;
        if empty * DENSE_EMPTY > out.len() {
            for &element in elements {
                let (bin, offset) = bins.locate(round.hash(element));
                empty -= usize::from(out[bin] == u64::EMPTY);
                out[bin] = out[bin].min(tag | offset);
            }
        } else {
            for &element in elements {
                let (bin, offset) = bins.locate(round.hash(element));
                if tag | offset < out[bin] {
                    empty -= usize::from(out[bin] == u64::EMPTY);
                    out[bin] = tag | offset;
                }
            }
        }
        empty
    }

    /// Return the value of a bin in round `number`, which sends all elements to this bin.
    fn fill_bin(&self, number: usize, elements: &[u64]) -> u64 {
        let round = self.rounds[number];
        let least = elements.iter().map(|&element| round.hash(element)).min().unwrap_or(u64::EMPTY);
        (number as u64) << OFFSET_BITS | least >> (64 - OFFSET_BITS)
    }
}

impl Scheme for FastSketch {
    type Slot = u64;

    fn slots(&self) -> usize {
        self.rounds.len() / 2
    }

    fn sketch(&self, elements: &mut Vec<u64>, out: &mut [u64]) {
        out.fill(u64::EMPTY);
        if elements.is_empty() {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if self.simd && crate::simd::available() {
            // SAFETY: the processor has the features that the function is compiled for.
            unsafe { self.sketch_bmi2(elements, out) };
            return;
        }
        self.sketch_portable(elements, out);
    }
}
