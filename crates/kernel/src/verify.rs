//! Exact intersection size, Jaccard similarity and containment of two sets.
//!
//! A set is an ascending slice of distinct 64-bit elements. There are three ways to count the common elements of two
//! sets:
//!
//! - merging both, the default;
//! - binary search of each element of the shorter set, if the longer one has 32 times as many elements;
//! - [`ProbeTable`], if one set is compared with several others.
//!
//! [`SetBitmap`] rules out a pair before any of these.

use crate::weights::{ONE, Weigh};

/// Length ratio above which searching each element of the shorter set in the longer one is faster than merging both.
const SEARCH_RATIO: usize = 32;

/// Return the number of common elements of two sets.
#[must_use]
pub fn intersection_size(left: &[u64], right: &[u64]) -> usize {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    if short.len() * SEARCH_RATIO < long.len() { count_by_search(short, long) } else { count_by_merge(short, long) }
}

/// Return the Jaccard similarity of two sets if it is at least `threshold`.
#[must_use]
pub fn similarity_at_least(left: &[u64], right: &[u64], threshold: f64) -> Option<f64> {
    Measure::Jaccard.at_least(left, right, threshold)
}

/// Measure of two sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measure {
    /// |X ∩ Y| / |X ∪ Y|.
    #[default]
    Jaccard,
    /// |X ∩ Y| / |X|, X being the set with fewer elements.
    Containment,
}

impl Measure {
    /// Return the measure given the sizes of the intersection and of both sets; 0 if the intersection is empty.
    #[must_use]
    pub fn of(self, shared: usize, left: usize, right: usize) -> f64 {
        match self {
            Self::Jaccard => jaccard(shared, left + right),
            Self::Containment if shared == 0 => 0.0,
            Self::Containment => shared as f64 / left.min(right) as f64,
        }
    }

    /// Return the measure of two sets if it is at least `threshold`.
    ///
    /// The comparison stops as soon as too many elements of one set are unmatched.
    #[must_use]
    pub fn at_least(self, left: &[u64], right: &[u64], threshold: f64) -> Option<f64> {
        let needed = self.needed_overlap(left.len(), right.len(), threshold);
        if needed > left.len().min(right.len()) {
            return None;
        }
        let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
        let shared = if short.len() * SEARCH_RATIO < long.len() {
            count_by_search(short, long)
        } else {
            count_by_merge_at_least(short, long, needed)?
        };
        (shared >= needed).then(|| self.of(shared, left.len(), right.len()))
    }

    /// Return the smallest intersection for which sets of these sizes reach `threshold`.
    fn needed_overlap(self, left: usize, right: usize, threshold: f64) -> usize {
        match self {
            Self::Jaccard => needed_overlap(left + right, threshold),
            Self::Containment if threshold <= 0.0 => 0,
            Self::Containment => least_overlap(left.min(right), threshold),
        }
    }
}

/// Size of a set and a 448-bit bitmap of its elements, in one cache line.
///
/// Each element sets one bit. A bit that is set for only one of two sets belongs to an element of only this set, so
/// sets that differ in d bits differ in at least d elements. A comparison takes 15 ns and reads no elements, which may
/// be anywhere in memory or in a file. It separates sets of a hundred elements that share half of them; it is useless
/// for sets of thousands, which set all bits.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct SetBitmap {
    size: u64,
    bits: [u64; BITMAP_WORDS],
}

/// Weight of a heavy element.
const HEAVY: u32 = ONE / 2;
/// Words of a bitmap: a cache line of 64 bytes less the size of the set.
const BITMAP_WORDS: usize = 7;

impl SetBitmap {
    /// Create the bitmap of a set.
    #[must_use]
    pub fn of(set: &[u64]) -> Self {
        let mut bitmap = Self { size: set.len() as u64, bits: [0; BITMAP_WORDS] };
        for &element in set {
            bitmap.insert(element);
        }
        bitmap
    }

    #[inline(always)]
    fn insert(&mut self, element: u64) {
        let bit = (u128::from(element) * (64 * BITMAP_WORDS as u128)) >> 64;
        self.bits[bit as usize / 64] |= 1 << (bit % 64);
    }

    /// Create the bitmap of the heavy elements of a set, those of a weight of at least a half; its size is the weight
    /// of the set.
    #[must_use]
    pub fn of_weighted(set: &[u64], weights: &impl Weigh) -> Self {
        let mut bitmap = Self { size: 0, bits: [0; BITMAP_WORDS] };
        for &element in set {
            let weight = weights.weight(element);
            bitmap.size += u64::from(weight);
            // An element that both sets have differs by less than its weight if each has its own.
            if weight >= HEAVY && !weights.is_own() {
                bitmap.insert(element);
            }
        }
        bitmap
    }

    /// Return the number of elements of the set, or its weight.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size as usize
    }

    /// Return false if the weighted similarity of two sets is certainly below `threshold`.
    #[inline(always)]
    #[must_use]
    pub fn may_reach_weighted(&self, other: &Self, threshold: f64) -> bool {
        let differing = self.count_bits(other, |left, right| left ^ right) * HEAVY as usize;
        let total = (self.size + other.size) as usize;
        let difference = differing.max(self.size.abs_diff(other.size) as usize);
        jaccard((total - difference) / 2, total) >= threshold
    }

    /// Return false if the measure of two sets is certainly below `threshold`.
    #[inline(always)]
    #[must_use]
    pub fn may_reach(&self, other: &Self, measure: Measure, threshold: f64) -> bool {
        match measure {
            Measure::Jaccard => {
                let differing = self.count_bits(other, |left, right| left ^ right);
                let total = (self.size + other.size) as usize;
                // Sets with equal bitmaps differ at least by the difference of their sizes.
                let difference = differing.max(self.size.abs_diff(other.size) as usize);
                jaccard((total - difference) / 2, total) >= threshold
            }
            Measure::Containment => {
                let (small, large) = if self.size <= other.size { (self, other) } else { (other, self) };
                let size = small.size as usize;
                let missing = small.count_bits(large, |left, right| left & !right);
                measure.of(size - missing, size, size) >= threshold
            }
        }
    }

    #[inline(always)]
    fn count_bits(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> usize {
        self.bits.iter().zip(&other.bits).map(|(&left, &right)| combine(left, right).count_ones() as usize).sum()
    }
}

/// Hash table of one set that is compared with many others.
///
/// An element is stored in the slot of its low bits or in the next one; the few elements that find both occupied go to
/// an overflow list. A lookup is two comparisons without a branch, and consecutive lookups are independent, unlike the
/// steps of a merge: sets of a hundred elements take 0.1 µs instead of 0.4 to 0.5.
#[derive(Debug, Default)]
pub struct ProbeTable {
    /// A free slot s holds s + 2, an element that is never looked up in slot s.
    slots: Vec<u64>,
    mask: usize,
    elements: Vec<u64>,
    overflow: Vec<u64>,
    /// Weight of the element in each slot, and of those that overflow; of sets that are compared by weight.
    weights: Vec<u32>,
    overflow_weights: Vec<u32>,
}

/// Slots per element: at a load of a quarter few elements go to the overflow list.
const SLOTS_PER_ELEMENT: usize = 4;

impl ProbeTable {
    /// Replace the set of the table.
    pub fn load(&mut self, set: &[u64]) {
        for slot in self.elements.iter().map(|&element| element as usize & self.mask) {
            self.slots[slot] = slot as u64 + 2;
            self.slots[slot + 1] = slot as u64 + 3;
        }
        let size = (SLOTS_PER_ELEMENT * set.len()).next_power_of_two().max(16);
        self.slots.extend((self.slots.len() as u64..=size as u64).map(|slot| slot + 2));
        self.mask = size - 1;
        self.elements.clear();
        self.elements.extend_from_slice(set);
        self.overflow.clear();
        for &element in set {
            let slot = element as usize & self.mask;
            match [slot, slot + 1].into_iter().find(|&slot| self.slots[slot] == slot as u64 + 2) {
                Some(free) => self.slots[free] = element,
                None => self.overflow.push(element),
            }
        }
    }

    /// Replace the set of the table by one whose elements have weights.
    pub fn load_weighted(&mut self, set: &[u64], weights: &impl Weigh) {
        if weights.is_own() {
            let keys: Vec<u64> = set.iter().map(|&element| weights.key(element)).collect();
            self.load(&keys);
        } else {
            self.load(set);
        }
        self.weights.resize(self.slots.len(), 0);
        self.overflow_weights.clear();
        for &element in set {
            let (key, weight) = (weights.key(element), weights.weight(element));
            let slot = key as usize & self.mask;
            match [slot, slot + 1].into_iter().find(|&slot| self.slots[slot] == key) {
                Some(slot) => self.weights[slot] = weight,
                None => self.overflow_weights.push(weight),
            }
        }
    }

    /// Return the weighted similarity with another set if it is at least `threshold`, given the weights of both sets.
    ///
    /// The table must have been filled by [`Self::load_weighted`] with the same weights.
    #[inline(always)]
    #[must_use]
    pub fn weighted_at_least(
        &self,
        (other, weights): (&[u64], &impl Weigh),
        total: usize,
        other_total: usize,
        threshold: f64,
    ) -> Option<f64> {
        let needed = needed_overlap(total + other_total, threshold);
        if needed > total.min(other_total) {
            return None;
        }
        let shared = if weights.is_own() { self.shared_own(other, weights) } else { self.shared_weight(other) };
        (shared >= needed).then(|| jaccard(shared, total + other_total))
    }

    /// Return the weight of the elements that another set has, too.
    #[inline(always)]
    fn shared_weight(&self, other: &[u64]) -> usize {
        let (slots, weights) = (&self.slots[..self.mask + 2], &self.weights[..self.mask + 2]);
        let mut shared = 0;
        for &element in other {
            let slot = element as usize & self.mask;
            shared += usize::from(slots[slot] == element) * weights[slot] as usize;
            shared += usize::from(slots[slot + 1] == element) * weights[slot + 1] as usize;
        }
        for (element, &weight) in self.overflow.iter().zip(&self.overflow_weights) {
            shared += usize::from(other.binary_search(element).is_ok()) * weight as usize;
        }
        shared
    }

    /// Return the same if every set has its own weights: the sum of the smaller ones.
    fn shared_own(&self, other: &[u64], weights: &impl Weigh) -> usize {
        let mut shared = 0;
        for &element in other {
            let (key, weight) = (weights.key(element), weights.weight(element));
            let slot = key as usize & self.mask;
            let stored = match [slot, slot + 1].into_iter().find(|&slot| self.slots[slot] == key) {
                Some(slot) => self.weights[slot],
                None => self.overflow.binary_search(&key).map_or(0, |at| self.overflow_weights[at]),
            };
            shared += stored.min(weight) as usize;
        }
        shared
    }

    /// Return the measure with another set if it is at least `threshold`.
    #[must_use]
    pub fn measure_at_least(&self, other: &[u64], measure: Measure, threshold: f64) -> Option<f64> {
        let needed = measure.needed_overlap(self.elements.len(), other.len(), threshold);
        if needed > self.elements.len().min(other.len()) {
            return None;
        }
        let slots = &self.slots[..self.mask + 2];
        let (mut shared, mut left) = (0, other.len());
        for chunk in other.chunks(CHECK_INTERVAL) {
            for &element in chunk {
                let slot = element as usize & self.mask;
                // At most one comparison is true: the elements of a set are distinct.
                shared += usize::from(slots[slot] == element) + usize::from(slots[slot + 1] == element);
            }
            left -= chunk.len();
            if shared + self.overflow.len() + left < needed {
                return None;
            }
        }
        shared += self.overflow.iter().filter(|element| other.binary_search(element).is_ok()).count();
        (shared >= needed).then(|| measure.of(shared, self.elements.len(), other.len()))
    }
}

/// Return |X ∩ Y| / |X ∪ Y| given the intersection and the sum of both sizes; 0 if both sets are empty.
#[must_use]
pub fn jaccard(shared: usize, total: usize) -> f64 {
    if shared == 0 { 0.0 } else { shared as f64 / (total - shared) as f64 }
}

/// Return the smallest intersection for which sets with `total` elements in sum reach `threshold`.
fn needed_overlap(total: usize, threshold: f64) -> usize {
    let guess = threshold / (1.0 + threshold) * total as f64;
    let mut needed = (guess as usize).min(total / 2);
    // The definition divides, so the division decides; the guess can be off by one because of rounding.
    while needed > 0 && jaccard(needed - 1, total) >= threshold {
        needed -= 1;
    }
    while needed <= total / 2 && jaccard(needed, total) < threshold {
        needed += 1;
    }
    needed
}

/// Return the smallest intersection for which a set of `size` elements can reach `threshold` with any other set.
#[must_use]
pub fn least_overlap(size: usize, threshold: f64) -> usize {
    let reached = |overlap: usize| overlap as f64 / size as f64 >= threshold;
    let mut least = ((threshold * size as f64) as usize).clamp(usize::from(size > 0), size.max(1));
    // The definition divides, so the division decides; the product can be off by one because of rounding.
    while least > 1 && reached(least - 1) {
        least -= 1;
    }
    while least <= size && !reached(least) {
        least += 1;
    }
    least
}

/// Steps between two checks whether `needed` can still be reached.
const CHECK_INTERVAL: usize = 32;

/// Merge two sets; stop with none when the intersection cannot reach `needed`.
fn count_by_merge_at_least(left: &[u64], right: &[u64], needed: usize) -> Option<usize> {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i + CHECK_INTERVAL <= left.len() && j + CHECK_INTERVAL <= right.len() {
        for _ in 0..CHECK_INTERVAL {
            let (l, r) = (left[i], right[j]);
            shared += usize::from(l == r);
            i += usize::from(l <= r);
            j += usize::from(r <= l);
        }
        if shared + (left.len() - i).min(right.len() - j) < needed {
            return None;
        }
    }
    Some(shared + count_by_merge(&left[i..], &right[j..]))
}

/// Merge two sets without a branch on which element is smaller.
fn count_by_merge(left: &[u64], right: &[u64]) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < left.len() && j < right.len() {
        let (l, r) = (left[i], right[j]);
        shared += usize::from(l == r);
        i += usize::from(l <= r);
        j += usize::from(r <= l);
    }
    shared
}

/// Search each element of `short` in the rest of `long`.
fn count_by_search(short: &[u64], mut long: &[u64]) -> usize {
    let mut shared = 0;
    for element in short {
        let start = long.partition_point(|other| other < element);
        long = &long[start..];
        shared += usize::from(long.first() == Some(element));
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn all_methods_agree_with_the_intersection_of_the_standard_library() {
        let multiples = |step: u64, below: u64| (0..below).step_by(step as usize).collect::<BTreeSet<u64>>();
        let mut probe = ProbeTable::default();
        let sets = [multiples(1, 0), multiples(7, 8), multiples(3, 100), multiples(2, 2000), multiples(1, 9000)];
        for left in &sets {
            for right in &sets {
                let (l, r): (Vec<u64>, Vec<u64>) = (left.iter().copied().collect(), right.iter().copied().collect());
                let expected = left.intersection(right).count();
                assert_eq!(intersection_size(&l, &r), expected);
                assert_eq!(count_by_merge(&l, &r), expected);
                let similarity = jaccard(expected, l.len() + r.len());
                for threshold in [0.0, 0.1, 0.25, 1.0 / 3.0, 0.5, 0.8, 1.0, similarity] {
                    let reached = (similarity >= threshold).then_some(similarity);
                    assert_eq!(similarity_at_least(&l, &r, threshold), reached, "threshold {threshold}");
                    probe.load(&l);
                    for measure in [Measure::Jaccard, Measure::Containment] {
                        let value = measure.of(expected, l.len(), r.len());
                        let reached = (value >= threshold).then_some(value);
                        assert_eq!(measure.at_least(&l, &r, threshold), reached, "{measure:?} {threshold}");
                        assert_eq!(probe.measure_at_least(&r, measure, threshold), reached, "{measure:?} {threshold}");
                    }
                }
            }
        }
    }

    #[test]
    fn least_overlap_is_the_first_for_which_the_division_reaches_the_threshold() {
        for size in 0..300 {
            for threshold in [0.05, 0.1, 1.0 / 3.0, 0.5, 0.7, 0.8, 0.9, 0.99, 1.0] {
                let expected = (1..=size).find(|&o| o as f64 / size as f64 >= threshold).unwrap_or(size + 1);
                assert_eq!(least_overlap(size, threshold), expected, "{size} {threshold}");
            }
        }
    }

    #[test]
    fn a_bitmap_never_rules_out_a_pair_that_reaches_the_threshold() {
        let shuffled = |from: u64, to: u64| (from..to).map(crate::hash::mix).collect::<BTreeSet<u64>>();
        let (mut ruled_out, mut undecided) = (0, 0);
        for (size, other) in [(0, 0), (0, 5), (1, 1), (40, 50), (100, 100), (100, 90), (3000, 3000)] {
            for shared in (0..=size.min(other)).step_by(3) {
                let (left, right) = (shuffled(0, size), shuffled(size - shared, size - shared + other));
                let (l, r): (Vec<u64>, Vec<u64>) = (left.iter().copied().collect(), right.iter().copied().collect());
                for threshold in [0.0, 0.3, 0.5, 0.75, 0.8, 1.0] {
                    for measure in [Measure::Jaccard, Measure::Containment] {
                        let may = SetBitmap::of(&l).may_reach(&SetBitmap::of(&r), measure, threshold);
                        let does = measure.at_least(&l, &r, threshold).is_some();
                        assert!(may || !does, "{measure:?} {size} {other} {shared} {threshold}");
                        undecided += usize::from(may && !does);
                        ruled_out += usize::from(!may);
                    }
                }
            }
        }
        // Sets of 3,000 elements set all bits of their bitmaps.
        assert!(ruled_out > undecided / 4, "{ruled_out} pairs ruled out, {undecided} not");
    }

    #[test]
    fn weighted_similarities_equal_their_definition() {
        let frequencies = crate::weights::Frequencies::new(14, false);
        let shuffled = |from: u64, to: u64| (from..to).map(crate::hash::mix).collect::<BTreeSet<u64>>();
        for set in 0..200 {
            frequencies.add(&shuffled(set, 60 + set % 7).into_iter().collect::<Vec<_>>());
        }
        let weights = crate::weights::WeightTable::by_rarity(&frequencies.counts(), 200).unwrap();
        let colliding: BTreeSet<u64> = (0..40).map(|i| i << 32 | 7).collect();
        let sets = [shuffled(0, 0), shuffled(0, 50), shuffled(10, 60), shuffled(55, 400), colliding.clone()];
        let (mut probe, mut ruled_out) = (ProbeTable::default(), 0);
        for left in sets.iter().chain([&colliding]) {
            for right in &sets {
                let (l, r): (Vec<u64>, Vec<u64>) = (left.iter().copied().collect(), right.iter().copied().collect());
                let common: Vec<u64> = left.intersection(right).copied().collect();
                let union: Vec<u64> = left.union(right).copied().collect();
                let (shared, all) = (weights.total(&common), weights.total(&union));
                let similarity = if shared == 0 { 0.0 } else { shared as f64 / all as f64 };
                let (total, other) = (weights.total(&l) as usize, weights.total(&r) as usize);
                probe.load_weighted(&l, &weights);
                for threshold in [0.0, 0.1, 0.5, 0.8, 1.0, similarity] {
                    let reached = (similarity >= threshold).then_some(similarity);
                    assert_eq!(
                        probe.weighted_at_least((&r, &weights), total, other, threshold),
                        reached,
                        "threshold {threshold}"
                    );
                    let (left, right) = (SetBitmap::of_weighted(&l, &weights), SetBitmap::of_weighted(&r, &weights));
                    let may = left.may_reach_weighted(&right, threshold);
                    assert!(may || reached.is_none(), "threshold {threshold}");
                    ruled_out += usize::from(!may);
                }
            }
        }
        assert!(ruled_out > 20, "{ruled_out}");
    }

    /// The elements collide in one slot, equal the marks of free slots, or both.
    #[test]
    fn a_probe_table_is_exact_for_colliding_elements() {
        let mut probe = ProbeTable::default();
        let colliding: Vec<u64> = (0..40).map(|i| i << 32 | 7).collect();
        let like_free_slots: Vec<u64> = (0..300).collect();
        let mut last: Vec<u64> = (0..30).map(|i| i << 20 | 0xFFFF).chain(u64::MAX - 9..=u64::MAX).collect();
        last.sort_unstable();
        let sets = [colliding, like_free_slots, last];
        for left in sets.iter().chain(&sets) {
            probe.load(left);
            for right in &sets {
                let expected = jaccard(count_by_merge(left, right), left.len() + right.len());
                assert_eq!(probe.measure_at_least(right, Measure::Jaccard, 0.0), Some(expected));
            }
        }
    }
}
