//! Densification: empty bins of one permutation hashing borrow from full ones, so that slots can be banded or packed.

use super::Slot as _;
use crate::hash::{Domain, GOLDEN, key, mix};

/// Where an empty bin borrows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Densify {
    /// From the next full bin to the right (Shrivastava, Li 2014). Neighbours borrow alike, which costs variance.
    Rotation,
    /// From a full bin chosen at random for each empty one (Shrivastava 2017).
    Optimal,
}

impl Densify {
    /// Fills the empty slots; a signature that is empty altogether stays so.
    pub fn fill(self, seed: u64, slots: &mut [u64]) {
        let full: Vec<bool> = slots.iter().map(|&slot| slot != u64::EMPTY).collect();
        if !full.contains(&true) {
            return;
        }
        match self {
            Self::Rotation => rotate(slots, &full),
            Self::Optimal => choose(seed, slots, &full),
        }
    }
}

fn rotate(slots: &mut [u64], full: &[bool]) {
    let bins = slots.len();
    let nearest = full.iter().position(|&full| full).expect("one bin is full");
    // Walking leftwards from a full bin meets every empty bin after its donor.
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

fn choose(seed: u64, slots: &mut [u64], full: &[bool]) {
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
