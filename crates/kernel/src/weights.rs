//! Weights of elements, for similarities in which common elements count less.
//!
//! The weighted similarity of two sets is the weight of their intersection divided by that of their union. A weight is
//! a whole number of 2⁻²⁰, so sums are exact and do not depend on the order in which they are added up.
//!
//! The weight of an element is its rarity ln(N / f) / ln N, at least 1/64, where f of N sets have the element. Elements
//! are counted in a table of slots instead of one by one: elements that share a slot are counted together, so that a
//! frequency is never too low, and the memory is bounded.
//!
//! If sets have weights of their own, an element holds its weight in its lowest 24 bits, and [`own_key`] identifies it by
//! the other 40. The similarity is then the sum of the smaller weights divided by that of the larger ones.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use crate::hash::GOLDEN;
use crate::ln::ln;
use crate::verify::{jaccard, similarity_at_least};

/// The weight 1.
pub const ONE: u32 = 1 << 20;
/// The smallest weight, that of an element that every set has.
pub const MIN: u32 = ONE / 64;
/// Counts stop here; the rest up to 2³² leaves room for threads that increment at the same time.
const MAX_COUNT: u32 = u32::MAX - 1024;
/// Elements per task of a thread that counts.
const TASK_ELEMENTS: usize = 1 << 16;

/// The weight 1 of an element that holds its weight: weights up to 1,000 fit into 32 bits.
pub const OWN_ONE: u32 = 1 << 22;
/// Bits of an element that hold its weight: 4 by which the other 20 are shifted.
const OWN_BITS: u32 = 24;
const OWN_DIGITS: u32 = 20;

/// Return what identifies an element that holds its weight: the upper bits, repeated where the weight was, so that every
/// part of it is as random as a hash. Keys are ordered as elements are.
#[inline(always)]
#[must_use]
pub const fn own_key(element: u64) -> u64 {
    (element >> OWN_BITS) << OWN_BITS | element >> (64 - OWN_BITS)
}

/// Return the weight that an element holds, at least 1.
#[inline(always)]
const fn own_weight(element: u64) -> u32 {
    let digits = element as u32 & ((1 << OWN_DIGITS) - 1);
    let weight = digits << (element as u32 >> OWN_DIGITS & 15);
    if weight == 0 { 1 } else { weight }
}

/// Function from elements to weights.
pub trait Weigh: Send + Sync {
    /// Return the weight of an element.
    fn weight(&self, element: u64) -> u32;

    /// Return whether an element holds its weight, so that it can differ between sets.
    #[inline(always)]
    fn is_own(&self) -> bool {
        false
    }

    /// Return what identifies an element in all sets.
    #[inline(always)]
    fn key(&self, element: u64) -> u64 {
        if self.is_own() { own_key(element) } else { element }
    }

    /// Return the weight that two sets share in an element that both have.
    #[inline(always)]
    fn shared(&self, element: u64, other: u64) -> u32 {
        let weight = self.weight(element);
        if self.is_own() { weight.min(self.weight(other)) } else { weight }
    }

    /// Return the weight of a set.
    fn total(&self, set: &[u64]) -> u64 {
        set.iter().map(|&element| u64::from(self.weight(element))).sum()
    }

    /// Return the weighted similarity of two sets of known weights if it is at least `threshold`.
    fn similarity_at_least(
        &self,
        (left, left_total): (&[u64], u64),
        (right, right_total): (&[u64], u64),
        threshold: f64,
    ) -> Option<f64> {
        let (mut rest, mut shared) = (right, 0);
        for &element in left {
            let key = self.key(element);
            rest = &rest[rest.iter().take_while(|&&other| self.key(other) < key).count()..];
            if let Some(&other) = rest.first().filter(|&&other| self.key(other) == key) {
                shared += u64::from(self.shared(element, other));
            }
        }
        let similarity = jaccard(shared as usize, (left_total + right_total) as usize);
        (similarity >= threshold).then_some(similarity)
    }
}

/// The weight 1 for every element.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uniform;

impl Weigh for Uniform {
    #[inline(always)]
    fn weight(&self, _: u64) -> u32 {
        ONE
    }

    fn total(&self, set: &[u64]) -> u64 {
        set.len() as u64 * u64::from(ONE)
    }

    fn similarity_at_least(&self, (left, _): (&[u64], u64), (right, _): (&[u64], u64), threshold: f64) -> Option<f64> {
        similarity_at_least(left, right, threshold)
    }
}

/// Number of sets that have an element; elements that share a slot are counted together.
#[derive(Debug)]
pub struct Frequencies {
    counts: Vec<AtomicU32>,
    shift: u32,
    /// Whether elements hold their weights.
    own: bool,
}

impl Frequencies {
    /// Create a table of 2 to the power of `bits` slots, from 1 to 32, for elements that hold their weights if `own`.
    #[must_use]
    pub fn new(bits: u32, own: bool) -> Self {
        Self { counts: (0..1_usize << bits).map(|_| AtomicU32::new(0)).collect(), shift: 64 - bits, own }
    }

    /// Count the elements of sets.
    pub fn add(&self, elements: &[u64]) {
        elements.par_chunks(TASK_ELEMENTS).for_each(|part| {
            for &element in part {
                let key = if self.own { own_key(element) } else { element };
                let count = &self.counts[slot(key, self.shift)];
                if count.load(Ordering::Relaxed) < MAX_COUNT {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }

    /// Return the count of each slot.
    #[must_use]
    pub fn counts(&self) -> Vec<u32> {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed).min(MAX_COUNT)).collect()
    }
}

/// Weights by rarity, in the slots of [`Frequencies`], times a factor for each class of elements.
#[derive(Debug)]
pub struct WeightTable {
    weights: Vec<u32>,
    shift: u32,
    /// Factor of each class, in units of the weight 1; the lowest byte of an element is its class. Empty without classes.
    factors: Vec<u32>,
    /// Whether elements hold a weight, by which their rarity is multiplied.
    own: bool,
}

/// Number of classes of elements.
pub const CLASSES: usize = 256;

impl WeightTable {
    /// Create the weights of elements of which `counts` are the frequencies among `sets` sets; none if the number of
    /// slots is not a power of two of at least 2.
    #[must_use]
    pub fn by_rarity(counts: &[u32], sets: u64) -> Option<Self> {
        if counts.len() < 2 || !counts.len().is_power_of_two() {
            return None;
        }
        let weights = counts.par_iter().map(|&count| rarity(count, sets)).collect();
        Some(Self { weights, shift: 64 - counts.len().trailing_zeros(), factors: Vec::new(), own: false })
    }

    /// Multiply the weights by the factor of each class; return none if there are more classes than [`CLASSES`].
    #[must_use]
    pub fn with_factors(mut self, factors: &[u32]) -> Option<Self> {
        self.factors = factors.to_vec();
        self.factors.resize(CLASSES, ONE);
        (factors.len() <= CLASSES).then_some(self)
    }

    /// Multiply the weights by those that elements hold.
    #[must_use]
    pub fn with_own(mut self) -> Self {
        self.own = true;
        self
    }
}

impl Weigh for WeightTable {
    #[inline(always)]
    fn weight(&self, element: u64) -> u32 {
        let weight = self.weights[slot(self.key(element), self.shift)];
        let factor = match self.own {
            true => own_weight(element),
            false if self.factors.is_empty() => return weight,
            false => self.factors[element as usize % CLASSES],
        };
        ((u64::from(weight) * u64::from(factor)) >> ONE.trailing_zeros()).max(1) as u32
    }

    #[inline(always)]
    fn is_own(&self) -> bool {
        self.own
    }
}

#[inline(always)]
fn slot(element: u64, shift: u32) -> usize {
    (element.wrapping_mul(GOLDEN) >> shift) as usize
}

/// Return the weight of an element that `count` of `sets` sets have.
fn rarity(count: u32, sets: u64) -> u32 {
    let count = u64::from(count.max(1));
    if count == 1 || sets <= 1 {
        return ONE;
    }
    if count >= sets {
        return MIN;
    }
    let share = ln(count as f64 / sets as f64) / ln(1.0 / sets as f64);
    ((share * f64::from(ONE)).round() as u32).clamp(MIN, ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_fall_with_the_frequency_from_one_to_the_minimum() {
        let weights: Vec<u32> = (0..1000).map(|count| rarity(count, 1000)).collect();
        assert_eq!((weights[0], weights[1], rarity(1000, 1000), rarity(2000, 1000)), (ONE, ONE, MIN, MIN));
        assert!(weights[1..].is_sorted_by(|left, right| left >= right));
        let half = f64::from(rarity(1000, 1_000_000)) / f64::from(ONE);
        assert!((half - 0.5).abs() < 1e-6, "{half}");
        assert_eq!((rarity(1, 1), rarity(5, 0)), (ONE, ONE));
    }

    #[test]
    fn elements_are_counted_alike_by_any_number_of_threads() {
        let elements: Vec<u64> = (0..300_000_u64).map(|number| crate::hash::mix(number % 1000)).collect();
        let frequencies = Frequencies::new(20, false);
        frequencies.add(&elements);
        let counts = frequencies.counts();
        assert_eq!(counts.iter().map(|&count| u64::from(count)).sum::<u64>(), 300_000);
        let table = WeightTable::by_rarity(&counts, 300_000).unwrap();
        assert!(elements.iter().all(|&element| table.weight(element) <= rarity(300, 300_000)));
    }
}
