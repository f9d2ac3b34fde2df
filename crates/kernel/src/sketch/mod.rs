//! Sketch: the elements of a set in, a signature of a fixed number of slots out.
//!
//! Three schemes share one interface. [`FastSketch`] is the default: as accurate as the classic or better, at the cost of
//! one hash per element on long documents. [`MinHash`] is the classic, `k` hashes per element. [`OnePermutation`] is
//! the cheapest but leaves bins empty when the set is small.

mod bbit;
mod bins;
mod densify;
mod fast;
mod matches;
mod minhash;
mod one_permutation;

pub use bbit::{count_packed_matches, pack_rows, packed_row_bytes};
pub use densify::Densify;
pub use fast::FastSketch;
pub use matches::{Matches, count_matches};
pub use minhash::MinHash;
pub use one_permutation::OnePermutation;

/// Most slots a signature may have: the rounds of [`FastSketch`], two per slot, are counted in 16 bits.
pub const MAX_SLOTS: usize = 16_384;

/// A number that a slot can hold.
pub trait Slot: Copy + Ord + Send + Sync + Into<u64> {
    /// Marks a slot that no element reached.
    const EMPTY: Self;
}

impl Slot for u32 {
    const EMPTY: Self = Self::MAX;
}

impl Slot for u64 {
    const EMPTY: Self = Self::MAX;
}

/// Turns the elements of a set into a signature.
pub trait Scheme: Send + Sync {
    /// What a slot holds.
    type Slot: Slot;

    /// Slots per signature.
    fn slots(&self) -> usize;

    /// Writes the signature of `elements` to `out`, whose old content does not matter. Elements may be repeated and in
    /// any order; the scheme may sort and shorten the vector. A set without elements has every slot empty.
    fn sketch(&self, elements: &mut Vec<u64>, out: &mut [Self::Slot]);
}
