//! Exact intersection size and Jaccard similarity of two sets.
//!
//! A set is an ascending slice of distinct 64-bit elements. There are three ways to count the common elements of two
//! sets:
//!
//! - merging both, the default;
//! - binary search of each element of the shorter set, if the longer one has 32 times as many elements;
//! - [`ProbeTable`], if one set is compared with several others.
//!
//! [`SetBitmap`] rules out a pair before any of these.

/// Length ratio above which searching each element of the shorter set in the longer one is faster than merging both.
const SEARCH_RATIO: usize = 32;

/// Return the number of common elements of two sets.
#[must_use]
pub fn intersection_size(left: &[u64], right: &[u64]) -> usize {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    if short.len() * SEARCH_RATIO < long.len() { count_by_search(short, long) } else { count_by_merge(short, long) }
}

/// Return the Jaccard similarity of two sets if it is at least `threshold`.
///
/// The comparison stops as soon as too many elements of one set are unmatched.
#[must_use]
pub fn similarity_at_least(left: &[u64], right: &[u64], threshold: f64) -> Option<f64> {
    let total = left.len() + right.len();
    let needed = needed_overlap(total, threshold);
    if needed > left.len().min(right.len()) {
        return None;
    }
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    let shared = if short.len() * SEARCH_RATIO < long.len() {
        count_by_search(short, long)
    } else {
        count_by_merge_at_least(short, long, needed)?
    };
    (shared >= needed).then(|| jaccard(shared, total))
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

/// Words of a bitmap: a cache line of 64 bytes less the size of the set.
const BITMAP_WORDS: usize = 7;

impl SetBitmap {
    /// Create the bitmap of a set.
    #[must_use]
    pub fn of(set: &[u64]) -> Self {
        let mut bits = [0; BITMAP_WORDS];
        for &element in set {
            let bit = (u128::from(element) * (64 * BITMAP_WORDS as u128)) >> 64;
            bits[bit as usize / 64] |= 1 << (bit % 64);
        }
        Self { size: set.len() as u64, bits }
    }

    /// Return false if the similarity of two sets is certainly below `threshold`.
    #[inline(always)]
    #[must_use]
    pub fn may_reach(&self, other: &Self, threshold: f64) -> bool {
        let differing: u32 = self.bits.iter().zip(&other.bits).map(|(left, right)| (left ^ right).count_ones()).sum();
        let total = (self.size + other.size) as usize;
        // Sets with equal bitmaps differ at least by the difference of their sizes.
        let difference = (differing as usize).max(self.size.abs_diff(other.size) as usize);
        jaccard((total - difference) / 2, total) >= threshold
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

    /// Return the Jaccard similarity with another set if it is at least `threshold`.
    #[must_use]
    pub fn similarity_at_least(&self, other: &[u64], threshold: f64) -> Option<f64> {
        let total = self.elements.len() + other.len();
        let needed = needed_overlap(total, threshold);
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
        (shared >= needed).then(|| jaccard(shared, total))
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
                    assert_eq!(probe.similarity_at_least(&r, threshold), reached, "threshold {threshold}");
                }
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
                    let may = SetBitmap::of(&l).may_reach(&SetBitmap::of(&r), threshold);
                    let does = similarity_at_least(&l, &r, threshold).is_some();
                    assert!(may || !does, "{size} {other} {shared} {threshold}");
                    undecided += usize::from(may && !does);
                    ruled_out += usize::from(!may);
                }
            }
        }
        // Sets of 3,000 elements set all bits of their bitmaps.
        assert!(ruled_out > undecided / 4, "{ruled_out} pairs ruled out, {undecided} not");
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
                assert_eq!(probe.similarity_at_least(right, 0.0), Some(expected));
            }
        }
    }
}
