//! Exact containment join: the candidate pairs among which are all pairs of sets of which one lies in the other.
//!
//! A set x lies in a set y of at least as many elements if |x ∩ y| / |x| ≥ t. So fewer than |x| − ⌈t·|x|⌉ + 1 elements
//! of x are missing from y, and y has at least one of any |x| − ⌈t·|x|⌉ + 1 elements of x. The index has the rarest ones
//! of each set x, its prefix, and every element of y is looked up. Nothing can be said about where the common elements
//! are in y, so unlike in [`crate::join`] only one side has a prefix, and there is no positional filter.
//!
//! With `EXTRA` more elements in the prefix, y must have as many more of them. The index holds no sets: it is small
//! enough for corpora that are larger than memory, and [`crate::set_store`] compares the candidates.

use crate::batch::Sets;
use crate::join::{Entry, Postings, Rarity, prefix_length, search};
use std::sync::Arc;

/// Elements by which a prefix is longer than necessary: one entry more rules out pairs with one rare common phrase.
const EXTRA: usize = 16;

/// Inverted index of the prefixes of sets that may lie in others.
#[derive(Debug)]
pub struct PrefixIndex {
    rarity: Arc<Rarity>,
    /// Number of elements and number of each set, ascending.
    sets: Vec<(u32, u32)>,
    /// Minimum number of elements of the prefix of each set that a set must have in which it lies.
    needed: Vec<u32>,
    postings: Postings,
}

/// Buffers of one worker for one query.
#[derive(Default)]
struct Scratch {
    /// Elements of the prefix of each set that the query has.
    common: Vec<u32>,
    visited: Vec<u32>,
}

/// Elements that were counted at most this often are in one set only.
const UNIQUE_COUNT: u8 = 1;

impl PrefixIndex {
    /// Create an index of numbered sets. `rarity` must have counted all sets that will be compared.
    #[must_use]
    pub fn new(threshold: f64, rarity: Arc<Rarity>, batches: &[Sets<'_>], numbers: &[u32]) -> Self {
        let sets = batches.iter().flat_map(|batch| (0..batch.len()).map(|set| batch.get(set)));
        let mut order: Vec<(u32, u32, &[u64])> =
            sets.zip(numbers).map(|(set, &number)| (set.len() as u32, number, set)).collect();
        order.sort_unstable_by_key(|&(size, number, _)| (size, number));
        let postings = Postings::new(numbers.len() as u32, |rank, prefix, entries| {
            let set = order[rank as usize].2;
            // As many elements that no other set has rule out that the set lies in another one.
            if rarity.prefix(set, extended(set.len(), threshold), UNIQUE_COUNT, prefix)
                < prefix_length(set.len(), threshold)
            {
                entries.extend(prefix.iter().map(|&(_, element)| Entry { element, set: rank, position: 0 }));
            }
        });
        let needed = |size: usize| (extended(size, threshold) + 1 - prefix_length(size, threshold)) as u32;
        Self {
            rarity,
            needed: order.iter().map(|&(size, ..)| needed(size as usize)).collect(),
            sets: order.iter().map(|&(size, number, _)| (size, number)).collect(),
            postings,
        }
    }

    /// Return pairs `query << 32 | member` of which the member may lie in the query, and the number of queries
    /// processed.
    ///
    /// Queries are processed in order until there are about `most` pairs. The member has fewer elements, or as many and
    /// a smaller number.
    #[must_use]
    pub fn candidates(&self, sets: Sets<'_>, numbers: &[u32], most: usize, threads: usize) -> (Vec<u64>, usize) {
        search(numbers.len(), most, threads, |query, scratch, found| {
            self.find(sets.get(query), numbers[query], scratch, found);
        })
    }

    fn find(&self, set: &[u64], query: u32, scratch: &mut Scratch, found: &mut Vec<u64>) {
        let Scratch { common, visited } = scratch;
        common.resize(self.sets.len(), 0);
        let end = self.sets.partition_point(|&member| member < (set.len() as u32, query)) as u32;
        for &element in set {
            if self.rarity.of(element) <= UNIQUE_COUNT {
                continue;
            }
            for entry in self.postings.of(element).iter().take_while(|entry| entry.set < end) {
                let count = &mut common[entry.set as usize];
                if *count == 0 {
                    visited.push(entry.set);
                }
                *count += 1;
            }
        }
        for rank in visited.drain(..) {
            if std::mem::take(&mut common[rank as usize]) >= self.needed[rank as usize] {
                found.push(u64::from(query) << 32 | u64::from(self.sets[rank as usize].1));
            }
        }
    }
}

/// Return the length of the prefix of a set in the index.
fn extended(size: usize, threshold: f64) -> usize {
    (prefix_length(size, threshold) + EXTRA).min(size)
}
