//! Exact similarity join: all pairs of sets whose similarity is at least a threshold.
//!
//! The naive algorithm compares all pairs. This one, `AllPairs` with the filters of `PPJoin`, orders all elements by
//! frequency, rare ones first, and looks up only the prefix of each set in an inverted index of the prefixes:
//!
//! - Prefix filter: if |x ∩ y| / |x ∪ y| ≥ t, then |x ∩ y| ≥ t·|x|. So fewer than |x| − ⌈t·|x|⌉ + 1 elements of x are
//!   missing from y, and prefixes of that length of both sets have a common element (Bayardo, Ma, Srikant 2007).
//! - Length filter: sets whose sizes differ by more than the factor t are skipped.
//! - Positional filter: the positions of a common element in both sets bound the number of further common elements
//!   (Xiao, Wang, Lin, Yu 2008).
//!
//! The pairs that pass are compared exactly. Any order of elements gives the same result, so the frequency is
//! estimated, in one byte per slot of a hash table. An element that was counted once is in one set only and needs no
//! posting. In a text corpus almost every element is unique, and most sets are finished at this point.
//!
//! With weights, the size of a set is the weight of its elements, and the position of an element is the weight of those
//! before it: the filters hold for weights as they do for numbers. If sets have weights of their own, an overlap counts the
//! weights of the query, which are at least what both share.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use crate::batch::Sets;
use crate::hash::GOLDEN;
use crate::verify::least_overlap;
use crate::weights::{ONE, Uniform, Weigh, own_key};

/// Counters stop here; the rest up to 255 leaves room for threads that increment at the same time.
const MAX_COUNT: u8 = 100;
/// Elements per task of a thread that counts.
const TASK_ELEMENTS: usize = 1 << 16;
/// Sets per task of a thread that searches.
const TASK_SETS: usize = 32;
/// Maximum number of queries between two checks of the number of matches.
const BLOCK_SETS: usize = 4096;
/// Relative tolerance: more than the rounding error of a product and a division, and less than one element of a set of
/// a billion.
const TOLERANCE: f64 = 1e-12;

/// Estimated frequency of elements; elements that share a slot are counted together.
#[derive(Debug)]
pub struct Rarity {
    counts: Vec<AtomicU8>,
    shift: u32,
    /// Whether elements hold their weights.
    own: bool,
}

impl Rarity {
    /// Create a table for about `elements` elements in at most `most_bytes`; a smaller table has more collisions. With
    /// `own`, elements hold their weights.
    #[must_use]
    pub fn new(elements: usize, most_bytes: usize, own: bool) -> Self {
        let most = (most_bytes.max(2) + 1).next_power_of_two() / 2;
        let slots = (2 * elements).next_power_of_two().clamp(2, most);
        let counts = (0..slots).map(|_| AtomicU8::new(0)).collect();
        Self { counts, shift: 64 - slots.trailing_zeros(), own }
    }

    /// Count the elements of sets.
    pub fn add(&self, elements: &[u64]) {
        elements.par_chunks(TASK_ELEMENTS).for_each(|part| {
            for &element in part {
                let count = self.slot(element);
                if count.load(Ordering::Relaxed) < MAX_COUNT {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }

    fn slot(&self, element: u64) -> &AtomicU8 {
        let key = if self.own { own_key(element) } else { element };
        &self.counts[(key.wrapping_mul(GOLDEN) >> self.shift) as usize]
    }

    pub(crate) fn of(&self, element: u64) -> u8 {
        self.slot(element).load(Ordering::Relaxed)
    }

    /// Fill `prefix` with the rarest elements of a set of which one is in every other set that shares `needed` of its
    /// weight, rarest first, without those that no other set has; return the weight of the latter. If these weigh so
    /// much that no set shares `needed`, `prefix` is empty.
    fn weighted_prefix(
        &self,
        (set, total): (&[u64], u64),
        needed: u64,
        unique_count: u8,
        weights: &impl Weigh,
        prefix: &mut Vec<(u8, u64)>,
    ) -> u64 {
        let mut unique = 0;
        prefix.clear();
        for &element in set {
            let count = self.of(element);
            if count > unique_count {
                prefix.push((count, element));
            } else {
                unique += u64::from(weights.weight(element));
                if total - unique < needed {
                    prefix.clear();
                    return unique;
                }
            }
        }
        prefix.sort_unstable();
        let mut rest = total - unique;
        let length = prefix.iter().take_while(|(_, element)| {
            let reaches = rest >= needed;
            rest -= u64::from(weights.weight(*element));
            reaches
        });
        prefix.truncate(length.count());
        unique
    }

    /// Fill `prefix` with those of the `length` rarest elements of a set that another set may have, rarest first;
    /// return the number of the others, which were counted at most `unique_count` times. If all are others, `prefix`
    /// is empty.
    pub(crate) fn prefix(&self, set: &[u64], length: usize, unique_count: u8, prefix: &mut Vec<(u8, u64)>) -> usize {
        let mut unique = 0;
        prefix.clear();
        for &element in set {
            let count = self.of(element);
            if count > unique_count {
                prefix.push((count, element));
                continue;
            }
            unique += 1;
            if unique >= length {
                prefix.clear();
                return unique;
            }
        }
        let wanted = length.saturating_sub(unique);
        if wanted < prefix.len() {
            prefix.select_nth_unstable(wanted);
            prefix.truncate(wanted);
        }
        prefix.sort_unstable();
        unique
    }
}

/// Posting of an element in the prefix of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) element: u64,
    /// Rank of the set by size.
    pub(crate) set: u32,
    /// Weight of the rarer elements in the set, in units of 2⁻⁶.
    pub(crate) position: u32,
}

/// Postings of the elements of prefixes.
#[derive(Debug)]
pub(crate) struct Postings {
    entries: Vec<Entry>,
    /// Start of the entries whose elements have the same leading bits.
    starts: Vec<u32>,
    shift: u32,
}

impl Postings {
    /// Collect and sort the entries of `sets` sets, which `append` appends for one set at a time.
    pub(crate) fn new(sets: u32, append: impl Fn(u32, &mut Vec<(u8, u64)>, &mut Vec<Entry>) + Sync) -> Self {
        let ranks: Vec<u32> = (0..sets).collect();
        let lists: Vec<Vec<Entry>> = ranks
            .par_chunks(TASK_SETS)
            .map(|part| {
                let (mut prefix, mut entries) = (Vec::new(), Vec::new());
                for &set in part {
                    append(set, &mut prefix, &mut entries);
                }
                entries
            })
            .collect();
        let mut entries = lists.concat();
        drop(lists);
        entries.par_sort_unstable();
        let bits = entries.len().next_power_of_two().trailing_zeros().max(1);
        let shift = 64 - bits;
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        for (index, entry) in entries.iter().enumerate() {
            while starts.len() <= (entry.element >> shift) as usize {
                starts.push(index as u32);
            }
        }
        starts.resize((1 << bits) + 1, entries.len() as u32);
        Self { entries, starts, shift }
    }

    /// Return the entries of an element, ordered by the rank of their sets.
    pub(crate) fn of(&self, element: u64) -> &[Entry] {
        let bucket = (element >> self.shift) as usize;
        let entries = &self.entries[self.starts[bucket] as usize..self.starts[bucket + 1] as usize];
        let start = entries.partition_point(|entry| entry.element < element);
        let end = start + entries[start..].partition_point(|entry| entry.element == element);
        &entries[start..end]
    }
}

/// A similar pair of a query and a member of the index.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// Number of the query.
    pub query: u32,
    /// Number of the member.
    pub member: u32,
    /// Their Jaccard similarity.
    pub similarity: f64,
}

/// Bits by which a weight is shifted to units of 2⁻⁶: 2²⁴ elements of weight 1 fit into 32 bits. Rounded down and
/// limited, a position only makes the filter weaker.
const POSITION_SHIFT: u32 = ONE.trailing_zeros() - 6;

/// Inverted index of the prefixes of sets, by default of elements that all weigh the same.
#[derive(Debug)]
pub struct SetIndex<W = Uniform> {
    threshold: f64,
    /// Minimum intersection of two sets as a fraction of the sum of their sizes, less the tolerance.
    min_share: f64,
    /// Elements counted at most this often are in no other set.
    unique_count: u8,
    rarity: Arc<Rarity>,
    elements: Vec<u64>,
    /// Range of each set's elements, by rank; ranks ascend by size.
    ranges: Vec<(usize, usize)>,
    /// Weight of each set.
    totals: Vec<u64>,
    numbers: Vec<u32>,
    postings: Postings,
    weights: Arc<W>,
}

/// Buffers of one worker for one query.
#[derive(Default)]
struct Scratch {
    prefix: Vec<(u8, u64)>,
    /// Weight of the common elements found so far in the prefixes of the query and each set.
    overlap: Vec<u64>,
    visited: Vec<u32>,
}

/// Overlap of a set that cannot reach the threshold.
const PRUNED: u64 = u64::MAX;

impl<W: Weigh> SetIndex<W> {
    /// Create an index of numbered sets.
    ///
    /// `rarity` must have counted the sets of the index. If it has counted all sets that will be compared
    /// (`all_counted`), elements that were counted once are skipped.
    #[must_use]
    pub fn new(
        threshold: f64,
        rarity: Arc<Rarity>,
        all_counted: bool,
        batches: &[Sets<'_>],
        numbers: &[u32],
        weights: Arc<W>,
    ) -> Self {
        let (elements, ranges) = concatenate(batches);
        let totals: Vec<u64> = ranges.par_iter().map(|&(start, end)| weights.total(&elements[start..end])).collect();
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by_key(|&set| totals[set]);
        let unique_count = u8::from(all_counted);
        let postings = Postings::new(numbers.len() as u32, |rank, prefix, entries| {
            let (start, end) = ranges[order[rank as usize]];
            let (set, total) = (&elements[start..end], totals[order[rank as usize]]);
            let needed = needed_weight(total, threshold);
            let mut before = rarity.weighted_prefix((set, total), needed, unique_count, &*weights, prefix);
            entries.extend(prefix.iter().map(|&(_, element)| {
                let position = u32::try_from(before >> POSITION_SHIFT).unwrap_or(u32::MAX);
                before += u64::from(weights.weight(element));
                Entry { element: weights.key(element), set: rank, position }
            }));
        });
        Self {
            threshold,
            min_share: threshold / (1.0 + threshold) * (1.0 - TOLERANCE),
            unique_count,
            rarity,
            ranges: order.iter().map(|&set| ranges[set]).collect(),
            totals: order.iter().map(|&set| totals[set]).collect(),
            numbers: order.iter().map(|&set| numbers[set]).collect(),
            elements,
            postings,
            weights,
        }
    }

    /// Return the number of sets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Return whether there are no sets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    fn set(&self, rank: u32) -> &[u64] {
        let (start, end) = self.ranges[rank as usize];
        &self.elements[start..end]
    }

    /// Search the matches of a set among the first `limit` ranks, without a member that has the query's number.
    fn find(&self, set: &[u64], query: u32, limit: u32, scratch: &mut Scratch, found: &mut Vec<Match>) {
        let Scratch { prefix, overlap, visited } = scratch;
        overlap.resize(self.len(), 0);
        let ratio = |small: u64, large: u64| small as f64 / large as f64;
        let total = self.weights.total(set);
        let needed = needed_weight(total, self.threshold);
        let mut before = self.rarity.weighted_prefix((set, total), needed, self.unique_count, &*self.weights, prefix);
        for &(_, element) in prefix.iter() {
            let weight = u64::from(self.weights.weight(element));
            let entries = self.postings.of(self.weights.key(element));
            let start = entries.partition_point(|entry| ratio(self.totals[entry.set as usize], total) < self.threshold);
            for entry in &entries[start..] {
                let other = self.totals[entry.set as usize];
                if entry.set >= limit || ratio(total, other) < self.threshold {
                    break;
                }
                let common = &mut overlap[entry.set as usize];
                if *common == PRUNED {
                    continue;
                }
                if *common == 0 {
                    visited.push(entry.set);
                }
                let rest = (total - before).min(other - (u64::from(entry.position) << POSITION_SHIFT));
                *common = if (*common + rest) as f64 >= self.min_share * (total + other) as f64 {
                    *common + weight
                } else {
                    PRUNED
                };
            }
            before += weight;
        }
        for rank in visited.drain(..) {
            let member = self.numbers[rank as usize];
            if std::mem::take(&mut overlap[rank as usize]) != PRUNED
                && member != query
                && let Some(similarity) = self.weights.similarity_at_least(
                    (set, total),
                    (self.set(rank), self.totals[rank as usize]),
                    self.threshold,
                )
            {
                found.push(Match { query, member, similarity });
            }
        }
    }

    /// Return the matches of queries, and the number of queries processed.
    ///
    /// Queries are processed in order until there are about `most` matches. A query may be a member of the index; a
    /// member with the query's number is not a match.
    #[must_use]
    pub fn matches(&self, sets: Sets<'_>, numbers: &[u32], most: usize, threads: usize) -> (Vec<Match>, usize) {
        let all_sets = self.len() as u32;
        search(numbers.len(), most, threads, |query, scratch: &mut Scratch, found| {
            self.find(sets.get(query), numbers[query], all_sets, scratch, found);
        })
    }

    /// Return the matches of members among each other, each pair once, and the number of members processed.
    ///
    /// Processing starts at rank `first` and stops as in [`Self::matches`].
    #[must_use]
    pub fn matches_within(&self, first: usize, most: usize, threads: usize) -> (Vec<Match>, usize) {
        search(self.len() - first.min(self.len()), most, threads, |query, scratch: &mut Scratch, found| {
            let rank = (first + query) as u32;
            self.find(self.set(rank), self.numbers[rank as usize], rank, scratch, found);
        })
    }
}

/// Run queries block by block until there are `most` matches; return the matches and the number of queries run.
///
/// The size of a block follows the number of matches of the previous one, so that a corpus of similar documents needs
/// no more memory than others.
pub(crate) fn search<M, S, Q>(queries: usize, most: usize, threads: usize, run: Q) -> (Vec<M>, usize)
where
    M: Send,
    S: Default + Send,
    Q: Fn(usize, &mut S, &mut Vec<M>) + Sync,
{
    let scratches: Vec<Mutex<S>> = (0..threads.max(1)).map(|_| Mutex::default()).collect();
    let task = |part: &[usize]| {
        let worker = rayon::current_thread_index().unwrap_or(0) % scratches.len();
        let mut scratch = scratches[worker].lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        for &query in part {
            run(query, &mut scratch, &mut found);
        }
        found
    };
    let numbers: Vec<usize> = (0..queries).collect();
    let (mut found, mut done, mut block) = (Vec::new(), 0, TASK_SETS);
    while done < queries && found.len() < most {
        let part = &numbers[done..queries.min(done + block)];
        let lists: Vec<Vec<M>> = if threads <= 1 {
            part.chunks(TASK_SETS).map(task).collect()
        } else {
            part.par_chunks(TASK_SETS).map(task).collect()
        };
        let before = found.len();
        found.extend(lists.into_iter().flatten());
        done += part.len();
        block = (most / 4 / ((found.len() - before) / part.len() + 1)).clamp(TASK_SETS, BLOCK_SETS);
    }
    (found, done)
}

/// Return the length of the prefix of a set, of which any set that reaches `threshold` has an element.
pub(crate) fn prefix_length(size: usize, threshold: f64) -> usize {
    size + 1 - least_overlap(size, threshold).min(size + 1)
}

/// Return the smallest weight of an intersection for which a set of weight `total` can reach `threshold`.
fn needed_weight(total: u64, threshold: f64) -> u64 {
    least_overlap(total as usize, threshold) as u64
}

/// Return the elements of all sets, one set after the other, and the range of each set.
fn concatenate(batches: &[Sets<'_>]) -> (Vec<u64>, Vec<(usize, usize)>) {
    let sets = || batches.iter().flat_map(|batch| (0..batch.len()).map(|i| batch.get(i)));
    let mut elements = Vec::with_capacity(sets().map(<[u64]>::len).sum());
    let mut ranges = Vec::new();
    for set in sets() {
        ranges.push((elements.len(), elements.len() + set.len()));
        elements.extend_from_slice(set);
    }
    (elements, ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{intersection_size, jaccard};
    use crate::weights::WeightTable;

    /// Return small sets over few elements, so that many are similar, with an empty set and equal ones.
    fn some_sets() -> Vec<Vec<u64>> {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut sets = vec![vec![], vec![5_u64.wrapping_mul(GOLDEN)], vec![5_u64.wrapping_mul(GOLDEN)]];
        for _ in 0..150 {
            let mut set: Vec<u64> = (0..=next(20)).map(|_| next(30).wrapping_mul(0xD6E8_FEB8_6659_FD93)).collect();
            set.sort_unstable();
            set.dedup();
            sets.push(set);
        }
        sets
    }

    #[test]
    fn weighted_matches_equal_those_of_comparing_all_pairs() {
        let sets = some_sets();
        let elements = sets.concat();
        let offsets: Vec<i64> = (0..=sets.len()).map(|end| sets[..end].concat().len() as i64).collect();
        let numbers: Vec<u32> = (0..sets.len() as u32).collect();
        let frequencies = crate::weights::Frequencies::new(10, false);
        frequencies.add(&elements);
        let weights = Arc::new(WeightTable::by_rarity(&frequencies.counts(), 150).unwrap());
        let mut found_pairs = 0;
        for (threshold, all_counted) in [(0.1, true), (0.3, false), (0.5, true), (0.8, true), (1.0, true)] {
            let mut expected = Vec::new();
            for query in 0..sets.len() {
                for member in 0..query {
                    let (l, r) = (&sets[query], &sets[member]);
                    let common: Vec<u64> = l.iter().copied().filter(|element| r.contains(element)).collect();
                    let shared = weights.total(&common);
                    let all = weights.total(l) + weights.total(r) - shared;
                    let similarity = if shared == 0 { 0.0 } else { shared as f64 / all as f64 };
                    if similarity >= threshold {
                        expected.push((query as u32, member as u32, similarity.to_bits()));
                    }
                }
            }
            let rarity = Rarity::new(elements.len(), 1 << 20, false);
            rarity.add(&elements);
            let lists = [Sets::new(&offsets, &elements).unwrap()];
            let index = SetIndex::new(threshold, Arc::new(rarity), all_counted, &lists, &numbers, Arc::clone(&weights));
            let (found, _) = index.matches_within(0, usize::MAX, 2);
            let pair = |m: &Match| (m.query.max(m.member), m.query.min(m.member), m.similarity.to_bits());
            let mut found: Vec<_> = found.iter().map(pair).collect();
            found.sort_unstable();
            found_pairs += found.len();
            assert_eq!(found, expected, "threshold {threshold}");
        }
        assert!(found_pairs > 1000, "{found_pairs}");
    }

    #[test]
    fn matches_equal_those_of_comparing_all_pairs() {
        let sets = some_sets();
        let elements = sets.concat();
        let offsets: Vec<i64> = (0..=sets.len()).map(|end| sets[..end].concat().len() as i64).collect();
        let numbers: Vec<u32> = (0..sets.len() as u32).collect();
        for (threshold, most_bytes) in [(0.1, 1 << 20), (0.3, 16), (0.5, 1 << 20), (0.8, 1 << 20), (1.0, 2)] {
            let mut expected = Vec::new();
            for query in 0..sets.len() {
                for member in 0..query {
                    let (l, r) = (&sets[query], &sets[member]);
                    let similarity = jaccard(intersection_size(l, r), l.len() + r.len());
                    if similarity >= threshold {
                        expected.push((query as u32, member as u32, similarity.to_bits()));
                    }
                }
            }
            for (all_counted, threads) in [(true, 1), (false, 1), (true, 2)] {
                let rarity = Rarity::new(elements.len(), most_bytes, false);
                rarity.add(&elements);
                let lists = Sets::new(&offsets, &elements).unwrap();
                let (head, tail) = (Sets::new(&offsets[..40], &elements), Sets::new(&offsets[39..], &elements));
                let batches = [head.unwrap(), tail.unwrap()];
                let uniform = Arc::new(Uniform);
                let index = SetIndex::new(threshold, Arc::new(rarity), all_counted, &batches, &numbers, uniform);
                let (found, done) = index.matches_within(0, usize::MAX, threads);
                let pair = |m: &Match| (m.query.max(m.member), m.query.min(m.member), m.similarity.to_bits());
                let mut found: Vec<_> = found.iter().map(pair).collect();
                found.sort_unstable();
                assert_eq!((found, done), (expected.clone(), sets.len()), "threshold {threshold}");
                let (both, _) = index.matches(lists, &numbers, usize::MAX, threads);
                assert_eq!(both.len(), 2 * expected.len());
            }
        }
    }
}
