//! Sketching schemes: from the elements of a set to a signature of a fixed number of slots.
//!
//! Three schemes share one interface. [`FastSketch`] is the default: at least as accurate as [`MinHash`], at one hash
//! per element for long documents. [`MinHash`] is the classic scheme of `k` hashes per element. [`OnePermutation`] is
//! the cheapest but leaves bins empty when the set is small.

mod bbit;
mod bins;
mod fast;
mod minhash;
mod one_permutation;
mod weighted;

pub use bbit::{count_packed_matches, pack_rows, packed_row_bytes};
pub use fast::FastSketch;
pub use minhash::MinHash;
pub use one_permutation::{Densify, OnePermutation};
pub use weighted::WeightedSketch;

/// Maximum number of slots: the rounds of [`FastSketch`], two per slot, are counted in 16 bits.
pub const MAX_SLOTS: usize = 16_384;

/// Integer type of a slot.
pub trait Slot: Copy + Ord + Send + Sync + Into<u64> {
    /// Value of a slot that no element reached.
    const EMPTY: Self;
}

impl Slot for u32 {
    const EMPTY: Self = Self::MAX;
}

impl Slot for u64 {
    const EMPTY: Self = Self::MAX;
}

/// Function from the elements of a set to a signature.
pub trait Scheme: Send + Sync {
    /// Type of a slot.
    type Slot: Slot;

    /// Return the number of slots per signature.
    fn slots(&self) -> usize;

    /// Write the signature of `elements` to `out`, whose previous content is ignored.
    ///
    /// Elements may be repeated and in any order; the scheme may sort and shorten the vector. All slots of a set
    /// without elements are empty.
    fn sketch(&self, elements: &mut Vec<u64>, out: &mut [Self::Slot]);

    /// Return whether the slots of a union of sets are the smaller ones of the sets.
    fn merges(&self) -> bool {
        true
    }
}

/// Counts of a slot-by-slot comparison of two signatures, from which all estimators start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Slots with the same value.
    pub equal: u32,
    /// Slots that are empty in both.
    pub both_empty: u32,
}

/// Compare two signatures slot by slot.
pub fn count_matches<S: Slot>(left: &[S], right: &[S]) -> Matches {
    let mut same = 0;
    let mut both_empty = 0;
    for (&l, &r) in left.iter().zip(right) {
        same += u32::from(l == r);
        both_empty += u32::from(l == S::EMPTY && r == S::EMPTY);
    }
    Matches { equal: same - both_empty, both_empty }
}
