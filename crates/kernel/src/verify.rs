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
                }
            }
        }
    }
}
