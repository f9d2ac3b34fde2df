//! Exact join: the matches of the inverted index are those of comparing all pairs.

use std::sync::Arc;

use arbitrary::Unstructured;
use minwise_kernel::batch::Sets;
use minwise_kernel::join::{Match, Rarity, SetIndex};
use minwise_kernel::weights::Uniform;

use crate::sets::{sets, similarity, threshold};

/// Run one case.
///
/// # Panics
/// If the join misses a pair, or finds one that is not similar.
pub fn run(data: &[u8]) {
    let mut source = Unstructured::new(data);
    let (Ok(flags), Ok(threshold)) = (source.arbitrary::<u8>(), threshold(&mut source)) else { return };
    let Ok(sets) = sets(&mut source) else { return };
    let expected = all_pairs(&sets, threshold);
    let elements = sets.concat();
    let offsets: Vec<i64> = (0..=sets.len()).map(|end| sets[..end].concat().len() as i64).collect();
    let numbers: Vec<u32> = (0..sets.len() as u32).collect();
    // A small table has many collisions, so rare elements look frequent.
    let rarity = Rarity::new(elements.len(), 2 << (flags >> 4), false);
    rarity.add(&elements);
    let lists = Sets::new(&offsets, &elements).expect("the offsets ascend");
    let index = SetIndex::new(threshold, Arc::new(rarity), flags & 1 != 0, &[lists], &numbers, Arc::new(Uniform));
    let (found, done) = index.matches_within(0, usize::MAX, 1);
    assert_eq!((sorted(&found), done), (expected.clone(), sets.len()), "within, flags {flags}");
    let (found, _) = index.matches(lists, &numbers, usize::MAX, 1);
    assert_eq!(found.len(), 2 * expected.len(), "queries, flags {flags}");
}

fn all_pairs(sets: &[Vec<u64>], threshold: f64) -> Vec<(u32, u32, u64)> {
    let numbered = || sets.iter().zip(0_u32..);
    let pairs = numbered().flat_map(|left| numbered().map(move |right| (left, right)));
    let similar = pairs.filter(|((_, low), (_, high))| low < high).filter_map(|((left, low), (right, high))| {
        let similarity = similarity(left, right);
        (similarity >= threshold).then(|| (low, high, similarity.to_bits()))
    });
    similar.collect()
}

fn sorted(found: &[Match]) -> Vec<(u32, u32, u64)> {
    let pair = |m: &Match| (m.query.min(m.member), m.query.max(m.member), m.similarity.to_bits());
    let mut pairs: Vec<_> = found.iter().map(pair).collect();
    pairs.sort_unstable();
    pairs
}
