//! Verify: two sets in, the size of their intersection out, exactly.

/// Length ratio from which looking each element of the shorter set up in the longer beats walking both.
const GALLOP_RATIO: usize = 32;

/// How many elements two ascending sets of distinct elements share.
#[must_use]
pub fn intersection_size(left: &[u64], right: &[u64]) -> usize {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    if short.len() * GALLOP_RATIO < long.len() { look_up(short, long) } else { walk(short, long) }
}

/// The Jaccard similarity of two ascending sets of distinct elements, if it reaches `threshold`.
///
/// Comparing ends as soon as too many elements of one side have gone unmatched.
#[must_use]
pub fn similarity_at_least(left: &[u64], right: &[u64], threshold: f64) -> Option<f64> {
    let total = left.len() + right.len();
    let needed = needed_overlap(total, threshold);
    if needed > left.len().min(right.len()) {
        return None;
    }
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    let shared =
        if short.len() * GALLOP_RATIO < long.len() { look_up(short, long) } else { walk_until(short, long, needed)? };
    (shared >= needed).then(|| jaccard(shared, total))
}

/// What a look at a set's size and 448 bits tells about it, in one line of the processor's cache.
///
/// Each element sets one bit. A bit that only one of two sets has stands for an element that only it has, so sets that differ in d
/// bits differ in at least d elements. A look takes 15 ns and needs none of the elements, which may be anywhere in memory or in
/// a file. Sets of a hundred that share half are told apart by it; sets of thousands, which set all bits, are not.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Outline {
    size: u64,
    bits: [u64; OUTLINE_WORDS],
}

const OUTLINE_WORDS: usize = 7;

impl Outline {
    /// Of a set of distinct elements.
    #[must_use]
    pub fn of(set: &[u64]) -> Self {
        let mut bits = [0; OUTLINE_WORDS];
        for &element in set {
            let bit = (u128::from(element) * (64 * OUTLINE_WORDS as u128)) >> 64;
            bits[bit as usize / 64] |= 1 << (bit % 64);
        }
        Self { size: set.len() as u64, bits }
    }

    /// Whether two sets may reach `threshold`; false says that they do not.
    #[inline(always)]
    #[must_use]
    pub fn may_reach(&self, other: &Self, threshold: f64) -> bool {
        let differing: u32 = self.bits.iter().zip(&other.bits).map(|(one, other)| (one ^ other).count_ones()).sum();
        let total = (self.size + other.size) as usize;
        // Sets of equal bits may differ by what one has more.
        let apart = (differing as usize).max(self.size.abs_diff(other.size) as usize);
        jaccard((total - apart) / 2, total) >= threshold
    }
}

/// One set laid out for being compared with many.
///
/// An element stands in the slot of its low bits, or in the next; the few that find both taken are kept aside. So looking one up
/// is two comparisons and no branch, and does not wait for the one before, as walking two sets in step does: sets of a hundred
/// elements take 0.1 µs in place of 0.4 to 0.5.
#[derive(Debug, Default)]
pub struct Probe {
    /// A slot s that is free holds s + 2, an element that is never looked for there.
    slots: Vec<u64>,
    mask: usize,
    elements: Vec<u64>,
    aside: Vec<u64>,
}

const SLOTS_PER_ELEMENT: usize = 4;

impl Probe {
    /// Takes another set, ascending and distinct, in place of the one it had.
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
        self.aside.clear();
        for &element in set {
            let slot = element as usize & self.mask;
            match [slot, slot + 1].into_iter().find(|&slot| self.slots[slot] == slot as u64 + 2) {
                Some(free) => self.slots[free] = element,
                None => self.aside.push(element),
            }
        }
    }

    /// The Jaccard similarity with another ascending set of distinct elements, if it reaches `threshold`.
    #[must_use]
    pub fn similarity_at_least(&self, other: &[u64], threshold: f64) -> Option<f64> {
        let total = self.elements.len() + other.len();
        let needed = needed_overlap(total, threshold);
        if needed > self.elements.len().min(other.len()) {
            return None;
        }
        let slots = &self.slots[..self.mask + 2];
        let (mut shared, mut left) = (0, other.len());
        for some in other.chunks(STEPS) {
            for &element in some {
                let slot = element as usize & self.mask;
                // Never both, since a set has an element once.
                shared += usize::from(slots[slot] == element) + usize::from(slots[slot + 1] == element);
            }
            left -= some.len();
            if shared + self.aside.len() + left < needed {
                return None;
            }
        }
        shared += self.aside.iter().filter(|element| other.binary_search(element).is_ok()).count();
        (shared >= needed).then(|| jaccard(shared, total))
    }
}

/// |X ∩ Y| / |X ∪ Y| from the intersection and the sum of both sizes; 0 if both are empty.
#[must_use]
pub fn jaccard(shared: usize, total: usize) -> f64 {
    if shared == 0 { 0.0 } else { shared as f64 / (total - shared) as f64 }
}

/// The least intersection with which sets of `total` elements together reach `threshold`.
fn needed_overlap(total: usize, threshold: f64) -> usize {
    let guess = threshold / (1.0 + threshold) * total as f64;
    let mut needed = (guess as usize).min(total / 2);
    // The division decides, as it does in the definition; the guess may be one off by rounding.
    while needed > 0 && jaccard(needed - 1, total) >= threshold {
        needed -= 1;
    }
    while needed <= total / 2 && jaccard(needed, total) < threshold {
        needed += 1;
    }
    needed
}

/// Steps between two looks at whether `needed` can still be reached.
const STEPS: usize = 32;

fn walk_until(left: &[u64], right: &[u64], needed: usize) -> Option<usize> {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i + STEPS <= left.len() && j + STEPS <= right.len() {
        for _ in 0..STEPS {
            let (l, r) = (left[i], right[j]);
            shared += usize::from(l == r);
            i += usize::from(l <= r);
            j += usize::from(r <= l);
        }
        if shared + (left.len() - i).min(right.len() - j) < needed {
            return None;
        }
    }
    Some(shared + walk(&left[i..], &right[j..]))
}

/// Both sets in step, without a branch on which side is behind.
fn walk(left: &[u64], right: &[u64]) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < left.len() && j < right.len() {
        let (l, r) = (left[i], right[j]);
        shared += usize::from(l == r);
        i += usize::from(l <= r);
        j += usize::from(r <= l);
    }
    shared
}

fn look_up(short: &[u64], mut long: &[u64]) -> usize {
    let mut shared = 0;
    for element in short {
        let place = long.partition_point(|other| other < element);
        long = &long[place..];
        shared += usize::from(long.first() == Some(element));
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_way_counts_what_a_set_counts() {
        let multiples = |step: u64, below: u64| (0..below).step_by(step as usize).collect::<BTreeSet<u64>>();
        let mut probe = Probe::default();
        let sets = [multiples(1, 0), multiples(7, 8), multiples(3, 100), multiples(2, 2000), multiples(1, 9000)];
        for left in &sets {
            for right in &sets {
                let (l, r): (Vec<u64>, Vec<u64>) = (left.iter().copied().collect(), right.iter().copied().collect());
                let expected = left.intersection(right).count();
                assert_eq!(intersection_size(&l, &r), expected);
                assert_eq!(walk(&l, &r), expected);
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
    fn an_outline_never_turns_away_what_reaches_the_threshold() {
        let shuffled = |from: u64, to: u64| (from..to).map(crate::hash::mix).collect::<BTreeSet<u64>>();
        let (mut settled, mut above) = (0, 0);
        for (size, other) in [(0, 0), (0, 5), (1, 1), (40, 50), (100, 100), (100, 90), (3000, 3000)] {
            for shared in (0..=size.min(other)).step_by(3) {
                let (left, right) = (shuffled(0, size), shuffled(size - shared, size - shared + other));
                let (l, r): (Vec<u64>, Vec<u64>) = (left.iter().copied().collect(), right.iter().copied().collect());
                for threshold in [0.0, 0.3, 0.5, 0.75, 0.8, 1.0] {
                    let may = Outline::of(&l).may_reach(&Outline::of(&r), threshold);
                    let does = similarity_at_least(&l, &r, threshold).is_some();
                    assert!(may || !does, "{size} {other} {shared} {threshold}");
                    above += usize::from(may && !does);
                    settled += usize::from(!may);
                }
            }
        }
        assert!(settled > above / 4, "{settled} settled, {above} not"); // sets of 3,000 fill their outlines
    }

    /// Elements that want one slot, elements that look like free slots, and those that are both.
    #[test]
    fn a_probe_is_exact_however_its_elements_crowd() {
        let mut probe = Probe::default();
        let crowded: Vec<u64> = (0..40).map(|i| i << 32 | 7).collect();
        let like_free_slots: Vec<u64> = (0..300).collect();
        let mut last: Vec<u64> = (0..30).map(|i| i << 20 | 0xFFFF).chain(u64::MAX - 9..=u64::MAX).collect();
        last.sort_unstable();
        let sets = [crowded, like_free_slots, last];
        for left in sets.iter().chain(&sets) {
            probe.load(left);
            for right in &sets {
                let expected = jaccard(walk(left, right), left.len() + right.len());
                assert_eq!(probe.similarity_at_least(right, 0.0), Some(expected));
            }
        }
    }
}
