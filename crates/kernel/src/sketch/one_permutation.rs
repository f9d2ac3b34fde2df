//! One permutation hashing (Li, Owen, Zhang 2012): one hash per element, `bins` slots, empty bins marked.

use super::bins::{AnyBins, Bins as _, Round};
use super::densify::Densify;
use super::{Scheme, Slot as _};

/// One hash sends each element to a bin; a slot is the least place in its bin.
#[derive(Clone, Debug)]
pub struct OnePermutation {
    bins: usize,
    seed: u64,
    round: Round,
    densify: Option<Densify>,
}

impl OnePermutation {
    /// A scheme of `bins` slots under `seed`.
    #[must_use]
    pub const fn new(bins: usize, seed: u64, densify: Option<Densify>) -> Self {
        Self { bins, seed, round: Round::new(seed, 0), densify }
    }
}

impl Scheme for OnePermutation {
    type Slot = u64;

    fn slots(&self) -> usize {
        self.bins
    }

    fn sketch(&self, elements: &mut Vec<u64>, out: &mut [u64]) {
        out.fill(u64::EMPTY);
        for &element in elements.iter() {
            let (bin, place) = AnyBins(self.bins).locate(self.round.hash(element));
            out[bin] = out[bin].min(place);
        }
        if let Some(densify) = self.densify {
            densify.fill(self.seed, out);
        }
    }
}
