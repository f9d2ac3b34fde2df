//! Fast similarity sketching (Dahlgaard, Knudsen, Thorup 2017): one permutation hashing that goes on, round by round, until
//! no bin is empty. The chance that a slot of two sets agrees is exactly their Jaccard similarity.

use super::bins::{AnyBins, Bins, PLACE_BITS, PowerOfTwoBins, Round};
use super::{Scheme, Slot as _};

/// Elements per slot above which repeated elements are removed before a third round. So many distinct elements hardly
/// ever need one; so many repeated ones (a page of zeros) would need all the rounds there are, each over all of them.
const DEDUPLICATE_ABOVE: usize = 4;
/// The round before which they are removed from any set: few elements need many rounds, and then a sort costs little.
const DEDUPLICATE_LATE: usize = 16;
/// Elements per slot up to which a slot is written whether it changes or not. So early a branch on the change would often
/// be mispredicted; later it hardly ever is, and a loop that seldom writes need not wait for its own writes.
const DENSE: usize = 4;
/// The same for later rounds: more than one slot in so many still empty.
const FEW: usize = 4;

/// Rounds of bins; a slot is the least (round, place) it saw.
#[derive(Clone, Debug)]
pub struct FastSketch {
    rounds: Box<[Round]>,
    simd: bool,
}

impl FastSketch {
    /// A scheme of `slots` slots under `seed`; `simd` false keeps to portable code, for tests.
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
            empty = self.spread(number, bins, elements, out, empty);
        }
        for (bin, slot) in out.iter_mut().enumerate().filter(|(_, slot)| **slot == u64::EMPTY) {
            *slot = self.fill(slots + bin, elements);
        }
    }

    /// Round 0: one permutation hashing. Returns how many bins stay empty.
    #[inline(always)]
    fn first_round(&self, bins: impl Bins, elements: &[u64], out: &mut [u64]) -> usize {
        let round = self.rounds[0];
        let (dense, sparse) = elements.split_at(elements.len().min(DENSE * out.len()));
        for &element in dense {
            let (bin, place) = bins.locate(round.hash(element));
            out[bin] = out[bin].min(place);
        }
        for &element in sparse {
            let (bin, place) = bins.locate(round.hash(element));
            if place < out[bin] {
                out[bin] = place;
            }
        }
        out.iter().filter(|&&slot| slot == u64::EMPTY).count()
    }

    /// Sends every element to its bin of round `number`; earlier rounds win. Returns how many bins stay empty.
    #[inline(always)]
    fn spread(&self, number: usize, bins: impl Bins, elements: &[u64], out: &mut [u64], mut empty: usize) -> usize {
        let round = self.rounds[number];
        let tag = (number as u64) << PLACE_BITS;
        if empty * FEW > out.len() {
            for &element in elements {
                let (bin, place) = bins.locate(round.hash(element));
                empty -= usize::from(out[bin] == u64::EMPTY);
                out[bin] = out[bin].min(tag | place);
            }
        } else {
            for &element in elements {
                let (bin, place) = bins.locate(round.hash(element));
                if tag | place < out[bin] {
                    empty -= usize::from(out[bin] == u64::EMPTY);
                    out[bin] = tag | place;
                }
            }
        }
        empty
    }

    /// The value that round `number`, which sends every element to one and the same bin, gives to that bin.
    fn fill(&self, number: usize, elements: &[u64]) -> u64 {
        let round = self.rounds[number];
        let least = elements.iter().map(|&element| round.hash(element)).min().unwrap_or(u64::EMPTY);
        (number as u64) << PLACE_BITS | least >> (64 - PLACE_BITS)
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
            // SAFETY: the features that the function is compiled for were just seen on this processor.
            unsafe { self.sketch_bmi2(elements, out) };
            return;
        }
        self.sketch_portable(elements, out);
    }
}
