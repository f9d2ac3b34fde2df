//! One permutation hashing (Li, Owen, Zhang 2012) and its densification.
//!
//! One hash per element selects a bin; a slot is the minimum of its bin. Bins of a small set stay empty and are marked.
//! Densification fills them from full bins, so that the slots can be banded or packed.

use super::bins::{AnyBins, Bins as _, Round};
use super::{Scheme, Slot as _};
use crate::hash::{Domain, GOLDEN, key, mix};

/// One hash function that selects a bin; a slot is the smallest offset in its bin.
#[derive(Clone, Debug)]
pub struct OnePermutation {
    bins: usize,
    seed: u64,
    round: Round,
    densify: Option<Densify>,
}

impl OnePermutation {
    /// Create a scheme of `bins` slots under `seed`.
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
            let (bin, offset) = AnyBins(self.bins).locate(self.round.hash(element));
            out[bin] = out[bin].min(offset);
        }
        if let Some(densify) = self.densify {
            densify.fill(self.seed, out);
        }
    }

    fn merges(&self) -> bool {
        self.densify.is_none()
    }
}

/// Source of the value of an empty bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Densify {
    /// The next full bin to the right (Shrivastava, Li 2014). Adjacent empty bins use the same donor, which increases
    /// the variance.
    Rotation,
    /// A random full bin for each empty one (Shrivastava 2017).
    Optimal,
}

impl Densify {
    /// Fill the empty slots; a signature with all slots empty stays empty.
    pub fn fill(self, seed: u64, slots: &mut [u64]) {
        let full: Vec<bool> = slots.iter().map(|&slot| slot != u64::EMPTY).collect();
        if !full.contains(&true) {
            return;
        }
        match self {
            Self::Rotation => borrow_from_next(slots, &full),
            Self::Optimal => borrow_from_random(seed, slots, &full),
        }
    }
}

fn borrow_from_next(slots: &mut [u64], full: &[bool]) {
    let bins = slots.len();
    let nearest = full.iter().position(|&full| full).expect("at least one bin is full");
    // Going left from a full bin reaches every empty bin after its donor.
    let (mut donor, mut distance) = (slots[nearest], 0u64);
    for step in 1..bins {
        let bin = (nearest + bins - step) % bins;
        if full[bin] {
            (donor, distance) = (slots[bin], 0);
        } else {
            distance += 1;
            slots[bin] = donor.wrapping_add(distance.wrapping_mul(GOLDEN)).min(u64::EMPTY - 1);
        }
    }
}

fn borrow_from_random(seed: u64, slots: &mut [u64], full: &[bool]) {
    let bins = slots.len() as u64;
    let base = key(seed, Domain::Densify, 0);
    for bin in (0..slots.len()).filter(|&bin| !full[bin]) {
        let donor_at = |attempt: u64| {
            let hash = mix(base.wrapping_add((attempt * bins + bin as u64).wrapping_mul(GOLDEN)));
            ((u128::from(hash) * u128::from(bins)) >> 64) as usize
        };
        let mut attempt = 1;
        while !full[donor_at(attempt)] {
            attempt += 1;
        }
        slots[bin] = slots[donor_at(attempt)];
    }
}
