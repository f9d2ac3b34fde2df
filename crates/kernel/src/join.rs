//! Join: sets in, every pair that is similar enough out, none missed.
//!
//! The naive way compares all with all. Here all elements stand in one order, rare ones first, and only the first few of each
//! set, its prefix, are looked up in lists of the sets that have them in theirs:
//!
//! - If |x ∩ y| / |x ∪ y| ≥ t, then |x ∩ y| ≥ t·|x|. So less than |x| − ⌈t·|x|⌉ + 1 elements of x can be missing from y, and
//!   among the first so many of both sets there is a common one (Bayardo, Ma, Srikant 2007).
//! - Sets whose sizes differ by more than the factor t need no look (length filter).
//! - Where a common element stands in both sets bounds how many more there can be (Xiao, Wang, Lin, Yu 2008, `PPJoin`).
//!
//! What passes is compared for real. Any order of elements gives the same pairs, so rarity is only estimated, in one byte per
//! slot of a table; but an element that was counted once is in one set only and needs no list. In a corpus of texts that
//! is nearly every element, and most sets end there.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;

use crate::batch::Sets;
use crate::verify::similarity_at_least;

/// Counts stop here; as many threads as are left up to 255 may pass it at once.
const COUNTED: u8 = 100;
/// Elements, and sets, that a thread takes at a time.
const TASK_ELEMENTS: usize = 1 << 16;
const TASK_SETS: usize = 32;
/// Sets after which it is looked at whether there are matches enough, at most.
const BLOCK_SETS: usize = 4096;
/// More than the rounding of a product and a division, and less than one element of a set of a billion.
const ROUNDING: f64 = 1e-12;
/// Scrambles elements into slots: the golden ratio of 2⁶⁴, odd.
const SCRAMBLE: u64 = 0x9E37_79B9_7F4A_7C15;

/// How often elements occur, at least: elements that share a slot are counted together.
#[derive(Debug)]
pub struct Rarity {
    counts: Vec<AtomicU8>,
    shift: u32,
}

impl Rarity {
    /// Room for about so many elements in at most `most_bytes`; in less room it tells fewer elements apart.
    #[must_use]
    pub fn new(elements: usize, most_bytes: usize) -> Self {
        let most = (most_bytes.max(2) + 1).next_power_of_two() / 2;
        let slots = (2 * elements).next_power_of_two().clamp(2, most);
        let counts = (0..slots).map(|_| AtomicU8::new(0)).collect();
        Self { counts, shift: 64 - slots.trailing_zeros() }
    }

    /// Counts the elements of sets.
    pub fn add(&self, elements: &[u64]) {
        elements.par_chunks(TASK_ELEMENTS).for_each(|part| {
            for &element in part {
                let count = self.slot(element);
                if count.load(Ordering::Relaxed) < COUNTED {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }

    fn slot(&self, element: u64) -> &AtomicU8 {
        &self.counts[(element.wrapping_mul(SCRAMBLE) >> self.shift) as usize]
    }

    fn of(&self, element: u64) -> u8 {
        self.slot(element).load(Ordering::Relaxed)
    }
}

/// An element in the prefix of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    element: u64,
    /// The set's place by size.
    set: u32,
    /// How many elements of the set are rarer.
    position: u32,
}

/// A query's number, a member's number, and their similarity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// Who was looked up.
    pub query: u32,
    /// Who was found.
    pub member: u32,
    /// Their Jaccard similarity.
    pub similarity: f64,
}

/// Sets that can be asked which of them are similar to another.
#[derive(Debug)]
pub struct SetIndex {
    threshold: f64,
    /// The share of both sizes together that two sets must have in common, or a hair less.
    enough: f64,
    /// Elements counted no more often than this are in no other set.
    lone: u8,
    rarity: Arc<Rarity>,
    elements: Vec<u64>,
    /// Where a set's elements are, by place; places ascend by size.
    ranges: Vec<(usize, usize)>,
    sizes: Vec<u32>,
    numbers: Vec<u32>,
    entries: Vec<Entry>,
    /// Where the entries whose elements begin with the same bits start.
    starts: Vec<u32>,
    shift: u32,
}

/// One worker's notes about a query.
#[derive(Default)]
struct Scratch {
    prefix: Vec<(u8, u64)>,
    /// Common elements of the query's and each set's prefix so far.
    overlap: Vec<u32>,
    touched: Vec<u32>,
}

/// The overlap of a set that can no longer be similar enough.
const HOPELESS: u32 = u32::MAX;

impl SetIndex {
    /// An index of sets with their numbers.
    ///
    /// `rarity` has counted either all sets that will be compared, the index's own included, or the index's own only; in
    /// the first case, `all_counted`, an element that was counted once is passed over.
    #[must_use]
    pub fn new(threshold: f64, rarity: Arc<Rarity>, all_counted: bool, batches: &[Sets<'_>], numbers: &[u32]) -> Self {
        let (elements, ranges) = gather(batches);
        let mut order: Vec<usize> = (0..numbers.len()).collect();
        order.sort_by_key(|&set| ranges[set].1 - ranges[set].0);
        let mut index = Self {
            threshold,
            enough: threshold / (1.0 + threshold) * (1.0 - ROUNDING),
            lone: u8::from(all_counted),
            rarity,
            elements,
            ranges: order.iter().map(|&set| ranges[set]).collect(),
            sizes: order.iter().map(|&set| (ranges[set].1 - ranges[set].0) as u32).collect(),
            numbers: order.iter().map(|&set| numbers[set]).collect(),
            entries: Vec::new(),
            starts: Vec::new(),
            shift: 0,
        };
        index.entries = index.list_prefixes();
        index.list_starts();
        index
    }

    /// How many sets there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    fn set(&self, place: u32) -> &[u64] {
        let (start, end) = self.ranges[place as usize];
        &self.elements[start..end]
    }

    fn list_prefixes(&self) -> Vec<Entry> {
        let places: Vec<u32> = (0..self.len() as u32).collect();
        let lists: Vec<Vec<Entry>> = places
            .par_chunks(TASK_SETS)
            .map(|part| {
                let (mut prefix, mut entries) = (Vec::new(), Vec::new());
                for &set in part {
                    let first = self.prefix(self.set(set), &mut prefix);
                    let placed = prefix.iter().zip(first as u32..);
                    entries.extend(placed.map(|(&(_, element), position)| Entry { element, set, position }));
                }
                entries
            })
            .collect();
        let mut entries = lists.concat();
        entries.par_sort_unstable();
        entries
    }

    fn list_starts(&mut self) {
        let bits = self.entries.len().next_power_of_two().trailing_zeros().max(1);
        self.shift = 64 - bits;
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        for (place, entry) in self.entries.iter().enumerate() {
            while starts.len() <= (entry.element >> self.shift) as usize {
                starts.push(place as u32);
            }
        }
        starts.resize((1 << bits) + 1, self.entries.len() as u32);
        self.starts = starts;
    }

    /// Leaves the elements of a set's prefix that another set may have, rarest first; returns the position of the first.
    fn prefix(&self, set: &[u64], prefix: &mut Vec<(u8, u64)>) -> usize {
        let length = set.len() + 1 - least_overlap(set.len(), self.threshold).min(set.len() + 1);
        let mut lone = 0;
        prefix.clear();
        for &element in set {
            let count = self.rarity.of(element);
            if count > self.lone {
                prefix.push((count, element));
                continue;
            }
            lone += 1;
            if lone >= length {
                prefix.clear();
                return lone;
            }
        }
        let wanted = length.saturating_sub(lone);
        if wanted < prefix.len() {
            prefix.select_nth_unstable(wanted);
            prefix.truncate(wanted);
        }
        prefix.sort_unstable();
        lone
    }

    /// The entries of an element, by size of their sets.
    fn list(&self, element: u64) -> &[Entry] {
        let bucket = (element >> self.shift) as usize;
        let entries = &self.entries[self.starts[bucket] as usize..self.starts[bucket + 1] as usize];
        let start = entries.partition_point(|entry| entry.element < element);
        let end = start + entries[start..].partition_point(|entry| entry.element == element);
        &entries[start..end]
    }

    /// Looks a set up among the first `places` sets; a member of the query's number is passed over.
    fn find(&self, set: &[u64], query: u32, places: u32, scratch: &mut Scratch, found: &mut Vec<Match>) {
        let Scratch { prefix, overlap, touched } = scratch;
        overlap.resize(self.len(), 0);
        let first = self.prefix(set, prefix);
        let ratio = |small: u32, large: u32| f64::from(small) / f64::from(large);
        let size = set.len() as u32;
        for (&(_, element), position) in prefix.iter().zip(first as u32..) {
            let list = self.list(element);
            let start = list.partition_point(|entry| ratio(self.sizes[entry.set as usize], size) < self.threshold);
            for entry in &list[start..] {
                let other = self.sizes[entry.set as usize];
                if entry.set >= places || ratio(size, other) < self.threshold {
                    break;
                }
                let seen = &mut overlap[entry.set as usize];
                if *seen == HOPELESS {
                    continue;
                }
                if *seen == 0 {
                    touched.push(entry.set);
                }
                let rest = (size - position).min(other - entry.position);
                *seen =
                    if f64::from(*seen + rest) >= self.enough * f64::from(size + other) { *seen + 1 } else { HOPELESS };
            }
        }
        for place in touched.drain(..) {
            let member = self.numbers[place as usize];
            if std::mem::take(&mut overlap[place as usize]) != HOPELESS
                && member != query
                && let Some(similarity) = similarity_at_least(set, self.set(place), self.threshold)
            {
                found.push(Match { query, member, similarity });
            }
        }
    }

    /// Which members are similar to which queries: of as many queries as give about `most` matches, and how many those were.
    ///
    /// A query may be a member, but a member of the same number is not similar to it.
    #[must_use]
    pub fn matches(&self, sets: Sets<'_>, numbers: &[u32], most: usize, threads: usize) -> (Vec<Match>, usize) {
        let everyone = self.len() as u32;
        search(numbers.len(), most, threads, |query, scratch, found| {
            self.find(sets.get(query), numbers[query], everyone, scratch, found);
        })
    }

    /// Which members are similar to each other, each pair once; from the member at place `first` on, as `matches` does it.
    #[must_use]
    pub fn matches_within(&self, first: usize, most: usize, threads: usize) -> (Vec<Match>, usize) {
        search(self.len() - first.min(self.len()), most, threads, |query, scratch, found| {
            let place = (first + query) as u32;
            self.find(self.set(place), self.numbers[place as usize], place, scratch, found);
        })
    }
}

/// Runs queries block by block until there are matches enough; returns these and how many queries were run.
///
/// A block is as large as the matches of the last one allow, so that a corpus in which all is alike needs no more memory.
fn search<Q>(queries: usize, most: usize, threads: usize, run: Q) -> (Vec<Match>, usize)
where
    Q: Fn(usize, &mut Scratch, &mut Vec<Match>) + Sync,
{
    let scratches: Vec<Mutex<Scratch>> = (0..threads.max(1)).map(|_| Mutex::default()).collect();
    let task = |part: &[usize]| {
        let worker = rayon::current_thread_index().unwrap_or(0) % scratches.len();
        let mut scratch = scratches[worker].lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        for &query in part {
            run(query, &mut scratch, &mut found);
        }
        found
    };
    let every: Vec<usize> = (0..queries).collect();
    let (mut found, mut done, mut block) = (Vec::new(), 0, TASK_SETS);
    while done < queries && found.len() < most {
        let part = &every[done..queries.min(done + block)];
        let lists: Vec<Vec<Match>> = if threads <= 1 {
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

/// The elements of all sets, back to back, and where those of each are.
fn gather(batches: &[Sets<'_>]) -> (Vec<u64>, Vec<(usize, usize)>) {
    let sets = || batches.iter().flat_map(|batch| (0..batch.len()).map(|i| batch.get(i)));
    let mut elements = Vec::with_capacity(sets().map(<[u64]>::len).sum());
    let mut ranges = Vec::new();
    for set in sets() {
        ranges.push((elements.len(), elements.len() + set.len()));
        elements.extend_from_slice(set);
    }
    (elements, ranges)
}

/// The least intersection with which a set of `size` elements can reach `threshold` with any other.
fn least_overlap(size: usize, threshold: f64) -> usize {
    let reached = |overlap: usize| overlap as f64 / size as f64 >= threshold;
    let mut least = ((threshold * size as f64) as usize).clamp(usize::from(size > 0), size.max(1));
    // The division decides, as it does in the definition; the product may be one off by rounding.
    while least > 1 && reached(least - 1) {
        least -= 1;
    }
    while least <= size && !reached(least) {
        least += 1;
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::{intersection_size, jaccard};

    /// Sets of few elements out of few, so that many are alike; with an empty one and equal ones.
    fn some_sets() -> Vec<Vec<u64>> {
        let mut state = 7_u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut sets = vec![vec![], vec![5_u64.wrapping_mul(SCRAMBLE)], vec![5_u64.wrapping_mul(SCRAMBLE)]];
        for _ in 0..150 {
            let mut set: Vec<u64> = (0..=next(20)).map(|_| next(30).wrapping_mul(0xD6E8_FEB8_6659_FD93)).collect();
            set.sort_unstable();
            set.dedup();
            sets.push(set);
        }
        sets
    }

    #[test]
    fn matches_are_those_of_comparing_all_with_all() {
        let sets = some_sets();
        let elements = sets.concat();
        let offsets: Vec<i64> = (0..=sets.len()).map(|end| sets[..end].concat().len() as i64).collect();
        let numbers: Vec<u32> = (0..sets.len() as u32).collect();
        for (threshold, room) in [(0.1, 1 << 20), (0.3, 16), (0.5, 1 << 20), (0.8, 1 << 20), (1.0, 2)] {
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
                let rarity = Rarity::new(elements.len(), room);
                rarity.add(&elements);
                let lists = Sets::new(&offsets, &elements).unwrap();
                let (head, tail) = (Sets::new(&offsets[..40], &elements), Sets::new(&offsets[39..], &elements));
                let batches = [head.unwrap(), tail.unwrap()];
                let index = SetIndex::new(threshold, Arc::new(rarity), all_counted, &batches, &numbers);
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

    #[test]
    fn the_least_overlap_is_where_the_division_reaches_the_threshold() {
        for size in 0..300 {
            for threshold in [0.05, 0.1, 1.0 / 3.0, 0.5, 0.7, 0.8, 0.9, 0.99, 1.0] {
                let expected = (1..=size).find(|&o| o as f64 / size as f64 >= threshold).unwrap_or(size + 1);
                assert_eq!(least_overlap(size, threshold), expected, "{size} {threshold}");
            }
        }
    }
}
