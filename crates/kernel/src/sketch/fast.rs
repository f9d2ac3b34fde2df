//! Fast similarity sketching (Dahlgaard, Knudsen, Thorup 2017): one permutation hashing that goes on, round by round, until
//! no bin is empty. The chance that a slot of two sets agrees is exactly their Jaccard similarity.

use super::bins::{PLACE_BITS, Round};
use super::{Scheme, Slot as _};

/// Elements per slot above which repeated elements are removed before a third round. So many distinct elements hardly
/// ever need one; so many repeated ones (a page of zeros) would need all the rounds there are, each over all of them.
const DEDUPLICATE_ABOVE: usize = 4;

/// Rounds of bins; a slot is the least (round, hash) it saw.
#[derive(Clone, Debug)]
pub struct FastSketch {
    rounds: Box<[Round]>,
}

impl FastSketch {
    /// A scheme of `slots` slots under `seed`.
    #[must_use]
    pub fn new(slots: usize, seed: u64) -> Self {
        Self { rounds: (0..2 * slots as u64).map(|number| Round::new(seed, number)).collect() }
    }

    fn first_round(&self, elements: &[u64], out: &mut [u64]) -> usize {
        let (round, slots) = (self.rounds[0], out.len());
        for &element in elements {
            let (bin, place) = round.place(element, slots);
            out[bin] = out[bin].min(place);
        }
        out.iter().filter(|&&slot| slot == u64::EMPTY).count()
    }

    /// Sends every element to its bin of round `number`; earlier rounds win. Returns how many bins stay empty.
    fn spread(&self, number: usize, elements: &[u64], out: &mut [u64], mut empty: usize) -> usize {
        let (round, slots) = (self.rounds[number], out.len());
        let tag = (number as u64) << PLACE_BITS;
        for &element in elements {
            let (bin, place) = round.place(element, slots);
            empty -= usize::from(out[bin] == u64::EMPTY);
            out[bin] = out[bin].min(tag | place);
        }
        empty
    }

    /// Round `slots + bin`, which sends every element to `bin`.
    fn fill(&self, bin: usize, elements: &[u64], slots: usize) -> u64 {
        let round = self.rounds[slots + bin];
        let least = elements.iter().map(|&element| round.fraction(element)).min().unwrap_or(u64::EMPTY);
        ((slots + bin) as u64) << PLACE_BITS | least
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
        let slots = out.len();
        let mut empty = self.first_round(elements, out);
        for number in 1..slots {
            if empty == 0 {
                return;
            }
            if number == 2 && elements.len() > DEDUPLICATE_ABOVE * slots {
                elements.sort_unstable();
                elements.dedup();
            }
            empty = self.spread(number, elements, out, empty);
        }
        for (bin, slot) in out.iter_mut().enumerate().filter(|(_, slot)| **slot == u64::EMPTY) {
            *slot = self.fill(bin, elements, slots);
        }
    }
}
