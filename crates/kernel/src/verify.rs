//! Verify: two sets in, the size of their intersection out, exactly.

/// Length ratio from which looking each element of the shorter set up in the longer beats walking both.
const GALLOP_RATIO: usize = 32;

/// How many elements two ascending sets of distinct elements share.
#[must_use]
pub fn intersection_size(left: &[u64], right: &[u64]) -> usize {
    let (short, long) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    if short.len() * GALLOP_RATIO < long.len() { look_up(short, long) } else { walk(short, long) }
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
            }
        }
    }
}
