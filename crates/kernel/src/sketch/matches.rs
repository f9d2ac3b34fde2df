//! How well two signatures agree: the counts that every estimator starts from.

use super::Slot;

/// What a slot by slot comparison of two signatures saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Slots that hold the same value.
    pub equal: u32,
    /// Slots that are empty in both.
    pub both_empty: u32,
}

/// Compares two signatures slot by slot.
pub fn count_matches<S: Slot>(left: &[S], right: &[S]) -> Matches {
    let mut same = 0;
    let mut both_empty = 0;
    for (&l, &r) in left.iter().zip(right) {
        same += u32::from(l == r);
        both_empty += u32::from(l == S::EMPTY && r == S::EMPTY);
    }
    Matches { equal: same - both_empty, both_empty }
}
