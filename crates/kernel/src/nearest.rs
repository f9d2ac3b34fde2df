//! Exact search for the nearest sets: for each query the `top` sets of highest similarity, without a threshold.
//!
//! The naive algorithm compares the query with all sets. This one adds up, in a counter per set, the weights of the
//! elements that the query shares with it, from an inverted index of all elements, rarest first. Two bounds leave out
//! most of the work, which is in the long lists of common elements:
//!
//! - A set whose counter is c shares at most c + R with the query, where R is the weight of the elements that are not
//!   processed yet. If that is too little for the worst of the nearest sets found so far, the set is dropped.
//! - Sets are ranked by their weight and divided into blocks of consecutive ranks. Sets of another weight than the query
//!   must share more, and a whole block is skipped if their weights alone rule out a sufficient similarity.
//!
//! A block is searched until comparing the sets that are left costs less than the lists that are left. Its counters fit
//! the cache. Queries whose lists are all short, as most of texts, use counters of all sets instead, of which they visit
//! few.
//!
//! By containment a set shares at most its weight with the query, and needs a share of the smaller weight of both: the
//! same bounds hold with another formula.
//!
//! All weights are whole numbers, and a similarity is one division: the result does not depend on the order of lists,
//! on blocks, or on how the sets are divided among several indexes. Of equal similarities the smaller number is first.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::batch::Sets;
use crate::hash::GOLDEN;
use crate::join::{Match, search};
use crate::verify::Measure;
use crate::weights::Weigh;

/// Sets of a block: their counters take 16 KiB.
const BLOCK_SETS: usize = 1 << 13;
/// Shortest list with stored cuts into blocks; others are searched.
const LONG_LIST: usize = 256;
/// A query uses counters of all sets if their number is this many times that of the entries of its lists.
const SPARSE_RATIO: usize = 8;
/// Entries that are added up between two decisions to stop, each of which reads all counters of a block.
const CHECKED_ENTRIES: usize = BLOCK_SETS / 2;
/// Counters of which only the highest is compared when a search begins.
const CHUNK_SETS: usize = 32;
/// Time of comparing two sets in entries that are added up in that time: once, and for each element of the set.
const COMPARE_COST: (usize, usize) = (64, 2);
/// Cache lines of a list that are prefetched.
const PREFETCH_LINES: usize = 4;
/// Largest sum of the quanta of a query.
const MOST_QUANTA: u64 = i16::MAX as u64;
/// Terms of a query above which it is compared with all sets: their quanta would not fit a counter.
const MOST_TERMS: usize = 1 << 14;
/// Relative tolerance: more than the rounding errors of the bound on the weight that sets must share.
const TOLERANCE: f64 = 1e-12;
/// Elements that the sets of an index must stay below: positions and lists with their cuts have 32 bits.
pub const MAX_ELEMENTS: usize = 1 << 31;
/// Term of a free slot of a probe table.
const NO_TERM: u32 = u32::MAX;

/// What a search looks for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Number of nearest sets of each query.
    pub top: usize,
    /// Similarity that they have at least; 0 for any common element.
    pub at_least: f64,
    /// Measure of the similarity.
    pub measure: Measure,
}

/// Nearest sets of each query in indexes that were searched before, in the layout of Arrow.
#[derive(Clone, Copy, Debug)]
pub struct Earlier<'e> {
    /// Start of the nearest sets of each query, and the end of the last; empty if nothing was searched before.
    pub offsets: &'e [i64],
    /// Numbers of the sets.
    pub numbers: &'e [u32],
    /// Their similarities, descending for each query.
    pub similarities: &'e [f64],
}

impl Earlier<'_> {
    /// Return whether the arrays fit so many queries.
    #[must_use]
    pub fn fits(&self, queries: usize) -> bool {
        let end = self.offsets.last().map_or(0, |&end| end.max(0) as usize);
        (self.offsets.is_empty() || self.offsets.len() == queries + 1 && self.offsets.is_sorted())
            && self.offsets.first().is_none_or(|&start| start == 0)
            && self.numbers.len() == end
            && self.similarities.len() == end
    }

    fn of(&self, query: usize) -> impl Iterator<Item = (u32, f64)> {
        let range = match self.offsets.get(query..query + 2) {
            Some(&[start, end]) => start as usize..end as usize,
            _ => 0..0,
        };
        range.map(|at| (self.numbers[at], self.similarities[at]))
    }
}

/// The nearest sets of a query so far, best first.
#[derive(Debug)]
struct Best {
    wanted: Wanted,
    found: Vec<(u32, f64)>,
}

impl Best {
    fn new(wanted: Wanted, earlier: impl Iterator<Item = (u32, f64)>) -> Self {
        Self { wanted, found: earlier.collect() }
    }

    const fn is_full(&self) -> bool {
        self.found.len() >= self.wanted.top
    }

    /// Return the similarity below which no set is added.
    fn floor(&self) -> f64 {
        match self.found.last() {
            Some(&(_, last)) if self.is_full() => last.max(self.wanted.at_least),
            _ => self.wanted.at_least,
        }
    }

    /// Add a set, unless it is not among the nearest or is there already.
    fn add(&mut self, number: u32, similarity: f64) {
        if similarity <= 0.0 || similarity < self.floor() {
            return;
        }
        let before = |&(other, value): &(u32, f64)| similarity.total_cmp(&value).then(other.cmp(&number));
        if let Err(at) = self.found.binary_search_by(before)
            && at < self.wanted.top
        {
            self.found.truncate(self.wanted.top - 1);
            self.found.insert(at, (number, similarity));
        }
    }
}

/// Distinct elements in ascending order; the position of an element is its term.
#[derive(Debug)]
struct Terms {
    elements: Vec<u64>,
    /// Start of the elements that have the same leading bits.
    starts: Vec<u32>,
    shift: u32,
}

impl Terms {
    fn new(elements: Vec<u64>) -> Self {
        let bits = elements.len().next_power_of_two().trailing_zeros().max(1);
        let shift = 64 - bits;
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        for (index, element) in elements.iter().enumerate() {
            while starts.len() <= (element >> shift) as usize {
                starts.push(index as u32);
            }
        }
        starts.resize((1 << bits) + 1, elements.len() as u32);
        Self { elements, starts, shift }
    }

    fn find(&self, element: u64) -> Option<u32> {
        let bucket = (element >> self.shift) as usize;
        let (start, end) = (self.starts[bucket] as usize, self.starts[bucket + 1] as usize);
        self.elements[start..end].binary_search(&element).ok().map(|at| (start + at) as u32)
    }
}

/// Ranks of the sets that have an element.
#[derive(Clone, Copy)]
struct List<'l> {
    /// Start of each block in `ranks`, and the end of the last; empty for short lists.
    cuts: &'l [u32],
    ranks: &'l [u32],
}

impl<'l> List<'l> {
    /// Return the ranks in a block.
    fn within(&self, block: usize, ranks: &Range<usize>) -> &'l [u32] {
        if let Some(&[start, end]) = self.cuts.get(block..block + 2) {
            return &self.ranks[start as usize..end as usize];
        }
        let start = self.ranks.partition_point(|&rank| (rank as usize) < ranks.start);
        let end = start + self.ranks[start..].partition_point(|&rank| (rank as usize) < ranks.end);
        &self.ranks[start..end]
    }
}

/// Occurrence of an element in a set of the index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    element: u64,
    rank: u32,
    /// Position among the terms of all sets.
    position: u32,
}

/// Inverted index of sets.
#[derive(Debug)]
pub struct NearestIndex<W> {
    weights: Arc<W>,
    /// Number of each set; ranks ascend by weight.
    numbers: Vec<u32>,
    /// Weight of each set.
    totals: Vec<u64>,
    terms: Terms,
    /// Terms of all sets, ascending within a set, and the start of each set.
    set_terms: Vec<u32>,
    set_starts: Vec<u32>,
    /// Weights of these terms if sets have weights of their own; otherwise empty.
    set_weights: Vec<u32>,
    /// Lists of all terms, a long one preceded by its cuts, and the start of each term.
    lists: Vec<u32>,
    list_starts: Vec<u32>,
}

/// Element of a query that sets of the index have.
#[derive(Clone, Copy, Debug)]
struct QueryTerm {
    term: u32,
    weight: u32,
    /// Weight in quanta, rounded up.
    quanta: i16,
    /// Number of sets that have it.
    length: usize,
}

/// A query: its elements that sets of the index have, those of the shortest lists first.
#[derive(Debug, Default)]
struct Query {
    terms: Vec<QueryTerm>,
    /// Weight of the terms from each one on.
    rest: Vec<u64>,
    /// Number of entries of the lists from each one on.
    entries: Vec<usize>,
    /// Weight of all elements.
    total: u64,
    /// A quantum is two to the power of this.
    shift: u32,
    /// Whether all weights are whole quanta.
    is_exact: bool,
    probe: ProbeTable,
    measure: Measure,
}

impl Query {
    fn load<W: Weigh + Send>(&mut self, index: &NearestIndex<W>, set: &[u64]) {
        self.total = index.weights.total(set);
        self.terms.clear();
        self.terms.extend(set.iter().filter_map(|&element| {
            let term = index.terms.find(index.weights.key(element))?;
            let length = index.list(term).ranks.len();
            Some(QueryTerm { term, weight: index.weights.weight(element), quanta: 0, length })
        }));
        self.terms
            .sort_unstable_by(|l, r| l.length.cmp(&r.length).then(r.weight.cmp(&l.weight)).then(l.term.cmp(&r.term)));
        self.set_quanta();
        self.is_exact &= !index.weights.is_own(); // a counter has weights of the query, of which a set may share less
        suffix_sums(&self.terms, |term| u64::from(term.weight), &mut self.rest);
        suffix_sums(&self.terms, |term| term.length, &mut self.entries);
        self.probe.clear();
    }

    /// Choose the smallest quantum in which all weights can be added up.
    fn set_quanta(&mut self) {
        let sum =
            |shift: u32| self.terms.iter().map(|term| u64::from(term.weight.div_ceil(1_u32 << shift))).sum::<u64>();
        self.shift = (0..31).find(|&shift| sum(shift) <= MOST_QUANTA).unwrap_or(31);
        self.is_exact = true;
        for term in &mut self.terms {
            let quanta = term.weight.div_ceil(1 << self.shift);
            self.is_exact &= quanta << self.shift == term.weight;
            term.quanta = quanta as i16;
        }
    }

    /// Return the similarity to a set of weight `total` of which `shared` is the weight of the common elements.
    #[inline(always)]
    fn similarity(&self, shared: u64, total: u64) -> f64 {
        let all = match self.measure {
            Measure::Jaccard => self.total + total - shared,
            Measure::Containment => self.total.min(total),
        };
        if shared == 0 { 0.0 } else { shared as f64 / all as f64 }
    }

    /// Return the highest similarity to a set of a weight in a range.
    fn highest(&self, least: u64, most: u64) -> f64 {
        let total = self.rest[0].clamp(least, most);
        self.similarity(self.rest[0].min(total), total)
    }

    /// Return a weight that any set of weight `least` or more must share to reach a similarity.
    fn needed(&self, floor: f64, least: u64) -> u64 {
        let needed = match self.measure {
            Measure::Jaccard => floor / (1.0 + floor) * (self.total + least) as f64,
            Measure::Containment => floor * self.total.min(least) as f64,
        };
        ((needed * (1.0 - TOLERANCE)) as u64).max(1)
    }

    /// Return the counter that a set needs if it must share `needed` and the terms from `done` on are not added.
    fn needed_quanta(&self, needed: u64, done: usize) -> i16 {
        needed.saturating_sub(self.rest[done]).div_ceil(1 << self.shift).min(MOST_QUANTA) as i16
    }
}

/// Weights of the terms of a query, in a hash table.
#[derive(Debug, Default)]
struct ProbeTable {
    slots: Vec<(u32, u32)>,
    shift: u32,
    is_loaded: bool,
}

impl ProbeTable {
    const fn clear(&mut self) {
        self.is_loaded = false;
    }

    fn load(&mut self, terms: &[QueryTerm]) {
        if self.is_loaded {
            return;
        }
        let size = (2 * terms.len() + 1).next_power_of_two();
        self.slots.clear();
        self.slots.resize(size, (NO_TERM, 0));
        self.shift = 64 - size.trailing_zeros();
        for term in terms {
            let slot = self.slot(term.term);
            self.slots[slot] = (term.term, term.weight);
        }
        self.is_loaded = true;
    }

    /// Return the slot of a term, or the free one where it belongs.
    #[inline(always)]
    fn slot(&self, term: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (u64::from(term).wrapping_mul(GOLDEN) >> self.shift) as usize & mask;
        while self.slots[slot].0 != term && self.slots[slot].0 != NO_TERM {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Return the weight of those of the terms that the query has.
    fn shared(&self, terms: &[u32]) -> u64 {
        terms.iter().map(|&term| u64::from(self.slots[self.slot(term)].1)).sum()
    }

    /// Return the same if the terms have weights of their own: the sum of the smaller ones.
    fn shared_own(&self, terms: &[u32], weights: &[u32]) -> u64 {
        let smaller = |(&term, &weight): (&u32, &u32)| u64::from(self.slots[self.slot(term)].1.min(weight));
        terms.iter().zip(weights).map(smaller).sum()
    }
}

/// Buffers of one worker.
#[derive(Default)]
struct Scratch {
    query: Query,
    /// Counters, zero between two uses.
    counters: Vec<i16>,
    visited: Vec<u32>,
    /// Counters and ranks of the sets that are left.
    left: Vec<(i16, u32)>,
}

impl<W: Weigh + Send> NearestIndex<W> {
    /// Create an index of numbered sets.
    ///
    /// # Panics
    /// If the sets have [`MAX_ELEMENTS`] elements or more.
    #[must_use]
    pub fn new(weights: Arc<W>, batches: &[Sets<'_>], numbers: &[u32]) -> Self {
        let sets: Vec<&[u64]> = batches.iter().flat_map(|batch| (0..batch.len()).map(|i| batch.get(i))).collect();
        assert!(batches.iter().map(Sets::elements).sum::<usize>() < MAX_ELEMENTS, "too many elements for one index");
        let totals: Vec<u64> = sets.par_iter().map(|set| weights.total(set)).collect();
        let mut order: Vec<usize> = (0..sets.len()).collect();
        order.par_sort_unstable_by_key(|&set| (totals[set], numbers[set]));
        let (entries, set_starts) = sorted_entries(&sets, &order, &*weights);
        let weighed = order.iter().filter(|_| weights.is_own()).flat_map(|&set| sets[set]);
        let set_weights = weighed.map(|&element| weights.weight(element)).collect();
        let blocks = sets.len().div_ceil(BLOCK_SETS);
        let mut set_terms = vec![0; entries.len()];
        let (mut elements, mut lists, mut list_starts) = (Vec::new(), Vec::with_capacity(entries.len()), vec![0]);
        for group in entries.chunk_by(|left, right| left.element == right.element) {
            for entry in group {
                set_terms[entry.position as usize] = elements.len() as u32;
            }
            if group.len() >= long_list(blocks) {
                let start = |block| group.partition_point(|entry| (entry.rank as usize) < block * BLOCK_SETS) as u32;
                lists.extend((0..=blocks).map(start));
            }
            lists.extend(group.iter().map(|entry| entry.rank));
            elements.push(group[0].element);
            list_starts.push(lists.len() as u32);
        }
        Self {
            weights,
            numbers: order.iter().map(|&set| numbers[set]).collect(),
            totals: order.iter().map(|&set| totals[set]).collect(),
            terms: Terms::new(elements),
            set_terms,
            set_starts,
            set_weights,
            lists,
            list_starts,
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

    /// Return the nearest sets of each query, best first, among those of the index and the earlier ones.
    ///
    /// The set that has the number of a query is left out.
    #[must_use]
    pub fn nearest(
        &self,
        sets: Sets<'_>,
        numbers: &[u32],
        earlier: Earlier<'_>,
        wanted: Wanted,
        threads: usize,
    ) -> Vec<Match> {
        let run = |query: usize, scratch: &mut Scratch, found: &mut Vec<Match>| {
            let mut best = Best::new(wanted, earlier.of(query));
            self.find(sets.get(query), numbers[query], &mut best, scratch);
            let found_one = |(member, similarity)| Match { query: query as u32, member, similarity };
            found.extend(best.found.into_iter().map(found_one));
        };
        search(numbers.len(), usize::MAX, threads, run).0
    }

    fn find(&self, set: &[u64], number: u32, best: &mut Best, scratch: &mut Scratch) {
        scratch.query.load(self, set);
        scratch.query.measure = best.wanted.measure;
        if scratch.query.terms.is_empty() || best.wanted.top == 0 {
            return;
        }
        if scratch.query.terms.len() > MOST_TERMS {
            return self.compare_all(number, best, scratch);
        }
        if scratch.query.entries[0] * SPARSE_RATIO <= self.len() {
            scratch.counters.resize(scratch.counters.len().max(self.len()), 0);
            return self.search_visited(number, best, scratch);
        }
        scratch.counters.resize(scratch.counters.len().max(BLOCK_SETS), 0);
        for block in self.blocks_outward(scratch.query.total) {
            let ranks = self.ranks_of(block);
            let highest = scratch.query.highest(self.totals[ranks.start], self.totals[ranks.end - 1]);
            if highest >= best.floor() {
                self.search_block(block, number, best, scratch);
            }
        }
    }

    /// Compare all sets, those of about the weight of the query first.
    fn compare_all(&self, number: u32, best: &mut Best, scratch: &mut Scratch) {
        for block in self.blocks_outward(scratch.query.total) {
            scratch.left.clear();
            scratch.left.extend(self.ranks_of(block).map(|rank| (0, rank as u32)));
            self.compare(number, 0, best, &mut scratch.query, &scratch.left);
        }
    }

    /// Search all sets, with a list of those that have any element of the query.
    fn search_visited(&self, number: u32, best: &mut Best, scratch: &mut Scratch) {
        for term in &scratch.query.terms {
            for &rank in self.list(term.term).ranks {
                let counter = &mut scratch.counters[rank as usize];
                if *counter == 0 {
                    scratch.visited.push(rank);
                }
                *counter += term.quanta;
            }
        }
        let counters = &mut scratch.counters;
        scratch.left.clear();
        scratch.left.extend(scratch.visited.drain(..).map(|rank| (std::mem::take(&mut counters[rank as usize]), rank)));
        scratch.left.sort_unstable_by(|left, right| right.cmp(left));
        self.compare(number, scratch.query.terms.len(), best, &mut scratch.query, &scratch.left);
    }

    /// Search the sets of a block.
    fn search_block(&self, block: usize, number: u32, best: &mut Best, scratch: &mut Scratch) {
        let Scratch { query, counters, left, .. } = scratch;
        let ranks = self.ranks_of(block);
        let (first, counters) = (ranks.start, &mut counters[..ranks.len()]);
        // Looked up together, so that the processor waits for all lists at once.
        let lists: Vec<&[u32]> = query.terms.iter().map(|term| self.list(term.term).within(block, &ranks)).collect();
        let (mut done, mut added, mut is_seeded) = (0, 0, false);
        while done < query.terms.len() {
            if added >= CHECKED_ENTRIES {
                added = 0;
                if !is_seeded && !best.is_full() && 2 * query.rest[done] <= query.rest[0] {
                    is_seeded = true;
                    self.seed(number, &ranks, counters, done, best, query, left);
                }
                if self.may_stop(&ranks, counters, done, best, query) {
                    break;
                }
            }
            prefetch(lists.get(done + 1).copied().unwrap_or_default());
            let quanta = query.terms[done].quanta;
            for &rank in lists[done] {
                counters[rank as usize - first] += quanta;
            }
            added += lists[done].len();
            done += 1;
        }
        let needed = query.needed_quanta(query.needed(best.floor(), self.totals[first]), done);
        collect(counters, needed.max(1), first, left);
        counters.fill(0);
        left.sort_unstable_by(|left, right| right.cmp(left));
        self.compare(number, done, best, query, left);
    }

    /// Return whether comparing the sets that are left costs less than adding up the terms from `done` on.
    fn may_stop(&self, ranks: &Range<usize>, counters: &[i16], done: usize, best: &Best, query: &Query) -> bool {
        let needed = query.needed_quanta(query.needed(best.floor(), self.totals[ranks.start]), done);
        let cost = COMPARE_COST.0 + COMPARE_COST.1 * (self.set_terms.len() / self.len());
        let entries = query.entries[done] * ranks.len() / self.len();
        needed > 0 && count_at_least(counters, needed) * cost < entries
    }

    /// Compare a few sets of high counters, so that there is a worst nearest set to exceed.
    #[allow(clippy::too_many_arguments, reason = "the state of a search of a block")]
    fn seed(
        &self,
        number: u32,
        ranks: &Range<usize>,
        counters: &[i16],
        done: usize,
        best: &mut Best,
        query: &mut Query,
        left: &mut Vec<(i16, u32)>,
    ) {
        let highest = |(chunk, first): (&[i16], usize)| {
            let most = chunk.iter().copied().max().unwrap_or(0);
            (most, (first + chunk.iter().position(|&counter| counter == most).unwrap_or(0)) as u32)
        };
        left.clear();
        left.extend(counters.chunks(CHUNK_SETS).zip((ranks.start..).step_by(CHUNK_SETS)).map(highest));
        left.sort_unstable_by(|left, right| right.cmp(left));
        left.truncate(2 * best.wanted.top);
        self.compare(number, done, best, query, left);
    }

    /// Add the sets that are left, each compared unless its counter says enough; terms before `done` are added up.
    fn compare(&self, number: u32, done: usize, best: &mut Best, query: &mut Query, left: &[(i16, u32)]) {
        let is_known = query.is_exact && done == query.terms.len();
        for &(counter, rank) in left {
            let (member, total) = (self.numbers[rank as usize], self.totals[rank as usize]);
            let most = ((u64::from(counter as u16) << query.shift) + query.rest[done]).min(total).min(query.rest[0]);
            let highest = query.similarity(most, total);
            if member == number || highest < best.floor() {
                continue;
            }
            if is_known {
                best.add(member, highest);
            } else {
                query.probe.load(&query.terms);
                best.add(member, query.similarity(self.shared(rank, &query.probe), total));
            }
        }
    }

    fn list(&self, term: u32) -> List<'_> {
        let range = self.list_starts[term as usize] as usize..self.list_starts[term as usize + 1] as usize;
        let (list, blocks) = (&self.lists[range], self.len().div_ceil(BLOCK_SETS));
        let (cuts, ranks) = list.split_at(if list.len() >= long_list(blocks) { blocks + 1 } else { 0 });
        List { cuts, ranks }
    }

    /// Return the weight that a set shares with the query of a probe table.
    fn shared(&self, rank: u32, probe: &ProbeTable) -> u64 {
        let range = self.set_starts[rank as usize] as usize..self.set_starts[rank as usize + 1] as usize;
        let terms = &self.set_terms[range.clone()];
        if self.weights.is_own() { probe.shared_own(terms, &self.set_weights[range]) } else { probe.shared(terms) }
    }

    fn ranks_of(&self, block: usize) -> Range<usize> {
        block * BLOCK_SETS..self.len().min((block + 1) * BLOCK_SETS)
    }

    /// Return all blocks, first those whose sets have about a weight.
    fn blocks_outward(&self, total: u64) -> impl Iterator<Item = usize> + use<W> {
        let blocks = self.len().div_ceil(BLOCK_SETS);
        let home = self.totals.partition_point(|&other| other < total).min(self.len() - 1) / BLOCK_SETS;
        let sides = move |distance: usize| [home.checked_sub(distance), Some(home + distance).filter(|_| distance > 0)];
        (0..blocks).flat_map(sides).flatten().filter(move |&block| block < blocks)
    }
}

/// Return the least length of a list with cuts, which take less than the list.
const fn long_list(blocks: usize) -> usize {
    if 2 * blocks > LONG_LIST { 2 * blocks } else { LONG_LIST }
}

/// Return the entries of all sets in order of elements, and the start of the terms of each set.
fn sorted_entries<W: Weigh>(sets: &[&[u64]], order: &[usize], weights: &W) -> (Vec<Entry>, Vec<u32>) {
    let mut entries = Vec::with_capacity(sets.iter().map(|set| set.len()).sum());
    let mut starts = vec![0];
    for (rank, &set) in order.iter().enumerate() {
        for &element in sets[set] {
            entries.push(Entry { element: weights.key(element), rank: rank as u32, position: entries.len() as u32 });
        }
        starts.push(entries.len() as u32);
    }
    entries.par_sort_unstable();
    (entries, starts)
}

/// Replace `sums` by the sum of the values from each term on, and 0.
fn suffix_sums<T>(terms: &[QueryTerm], value: impl Fn(&QueryTerm) -> T, sums: &mut Vec<T>)
where
    T: Copy + Default + std::ops::Add<Output = T>,
{
    sums.clear();
    sums.resize(terms.len() + 1, T::default());
    for (at, term) in terms.iter().enumerate().rev() {
        sums[at] = sums[at + 1] + value(term);
    }
}

/// Prefetch the beginning of a list; the processor fetches the rest by itself.
#[inline(always)]
fn prefetch(list: &[u32]) {
    #[cfg(target_arch = "x86_64")]
    for line in list.chunks(16).take(PREFETCH_LINES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no observable effect, and the address is that of a rank.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = list;
}

/// Return how many counters are at least `least`.
fn count_at_least(counters: &[i16], least: i16) -> usize {
    // Counts of so many fit the width of a counter, so that eight counters are compared at once.
    let count = |part: &[i16]| part.iter().map(|&counter| i16::from(counter >= least)).sum::<i16>();
    counters.chunks(BLOCK_SETS).map(|part| count(part) as usize).sum()
}

/// Replace `left` by the counters that are at least `least`, with the ranks of their sets.
fn collect(counters: &[i16], least: i16, first: usize, left: &mut Vec<(i16, u32)>) {
    left.clear();
    for (number, chunk) in counters.chunks(CHUNK_SETS).enumerate() {
        if count_at_least(chunk, least) > 0 {
            let ranks = (first + CHUNK_SETS * number) as u32..;
            left.extend(chunk.iter().copied().zip(ranks).filter(|&(counter, _)| counter >= least));
        }
    }
}

/// Return a flag for each pair of which neither side is taken, and mark both as taken.
///
/// # Panics
/// If a number has no flag in `taken`.
pub fn match_greedily(left: &[u32], right: &[u32], taken: &mut [bool]) -> Vec<bool> {
    let mut take = |(&left, &right): (&u32, &u32)| {
        let is_free = !taken[left as usize] && !taken[right as usize];
        taken[left as usize] |= is_free;
        taken[right as usize] |= is_free;
        is_free
    };
    left.iter().zip(right).map(&mut take).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::verify::{intersection_size, jaccard};
    use crate::weights::{Frequencies, ONE, Uniform, WeightTable};

    /// Return sets over few elements, of which some are common, with an empty set and equal ones.
    fn some_sets(count: u64, elements: u64) -> Vec<Vec<u64>> {
        let draw = |set: u64, at: u64, below: u64| mix(mix(set) ^ at) % below;
        let one = |set: u64| {
            let common = (0..draw(set, 1000, 6)).map(|at| draw(set, at, 8));
            let rare = (0..draw(set, 1001, 20)).map(|at| 8 + draw(set, 100 + at, elements));
            let mut elements: Vec<u64> = common.chain(rare).map(mix).collect();
            elements.sort_unstable();
            elements.dedup();
            elements
        };
        let mut sets: Vec<Vec<u64>> = (0..count).map(one).collect();
        sets.extend([vec![], sets[3].clone(), sets[3].clone()]);
        sets
    }

    fn naive<W: Weigh>(weights: &W, query: &[u64], number: u32, sets: &[Vec<u64>], wanted: Wanted) -> Vec<(u32, u64)> {
        let total = |set: &[u64]| weights.total(set);
        let similarity = |set: &[u64]| {
            let common: Vec<u64> = query.iter().copied().filter(|element| set.binary_search(element).is_ok()).collect();
            let shared = total(&common);
            wanted.measure.of(shared as usize, total(query) as usize, total(set) as usize)
        };
        let mut all: Vec<(u32, f64)> = (0..).zip(sets).map(|(other, set)| (other, similarity(set))).collect();
        all.retain(|&(other, value)| other != number && value > 0.0 && value >= wanted.at_least);
        all.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        all.iter().take(wanted.top).map(|&(other, value)| (other, value.to_bits())).collect()
    }

    fn check<W: Weigh + Send>(weights: &Arc<W>, sets: &[Vec<u64>], queries: &[Vec<u64>], wanted: Wanted) {
        let flat = |sets: &[Vec<u64>]| {
            let start = |end: usize| sets[..end].iter().map(Vec::len).sum::<usize>() as i64;
            ((0..=sets.len()).map(start).collect::<Vec<i64>>(), sets.concat())
        };
        let (offsets, elements) = flat(sets);
        let numbers: Vec<u32> = (0..sets.len() as u32).collect();
        let (query_offsets, query_elements) = flat(queries);
        let queried = Sets::new(&query_offsets, &query_elements).unwrap();
        for cut in [0, sets.len() / 3] {
            let (mut offsets_of, mut before, mut found) = (Vec::new(), (Vec::new(), Vec::new()), Vec::new());
            for part in [0..cut, cut..sets.len()] {
                let batch = Sets::new(&offsets[part.start..=part.end], &elements).unwrap();
                let index = NearestIndex::new(Arc::clone(weights), &[batch], &numbers[part]);
                let earlier = Earlier { offsets: &offsets_of, numbers: &before.0, similarities: &before.1 };
                assert!(earlier.fits(queries.len()));
                found = index.nearest(queried, &numbers[..queries.len()], earlier, wanted, 1);
                let ends =
                    (0..=queries.len()).map(|query| found.partition_point(|m| (m.query as usize) < query) as i64);
                offsets_of = ends.collect();
                before = found.iter().map(|found| (found.member, found.similarity)).unzip();
            }
            for (query, set) in queries.iter().enumerate() {
                let own = found.iter().filter(|m| m.query as usize == query);
                let own: Vec<(u32, u64)> = own.map(|m| (m.member, m.similarity.to_bits())).collect();
                assert_eq!(own, naive(&**weights, set, query as u32, sets, wanted), "query {query}, {wanted:?}");
            }
        }
    }

    #[test]
    fn nearest_sets_are_those_of_comparing_all() {
        let sets = some_sets(400, 60);
        let counted = Frequencies::new(12, false);
        counted.add(&sets.concat());
        let table = Arc::new(WeightTable::by_rarity(&counted.counts(), sets.len() as u64).unwrap());
        for (top, at_least) in [(1, 0.0), (3, 0.0), (10, 0.3), (1000, 0.0), (2, 1.0)] {
            for measure in [Measure::Jaccard, Measure::Containment] {
                let wanted = Wanted { top, at_least, measure };
                check(&Arc::new(Uniform), &sets, &sets, wanted);
                check(&table, &sets, &sets, wanted);
            }
        }
    }

    #[test]
    fn blocks_and_stops_do_not_change_the_result() {
        let sets = some_sets(3 * BLOCK_SETS as u64, 3000);
        let wanted = Wanted { top: 5, at_least: 0.0, measure: Measure::Jaccard };
        check(&Arc::new(Uniform), &sets, &sets[..60], wanted);
        check(&Arc::new(Uniform), &sets, &sets[..60], Wanted { measure: Measure::Containment, ..wanted });
        let counted = Frequencies::new(16, false);
        counted.add(&sets.concat());
        let table = WeightTable::by_rarity(&counted.counts(), sets.len() as u64).unwrap();
        check(&Arc::new(table), &sets, &sets[..60], wanted);
    }

    #[test]
    fn uniform_weights_give_the_bits_of_jaccard() {
        let sets = some_sets(50, 20);
        for (left, right) in sets.iter().zip(&sets[7..]) {
            let shared = intersection_size(left, right);
            let union = Uniform.total(left) + Uniform.total(right) - shared as u64 * u64::from(ONE);
            let weighted = if shared == 0 { 0.0 } else { (shared as u64 * u64::from(ONE)) as f64 / union as f64 };
            assert_eq!(weighted.to_bits(), jaccard(shared, left.len() + right.len()).to_bits());
        }
    }

    #[test]
    fn queries_with_many_elements_are_added_up_in_larger_quanta() {
        let sets: Vec<Vec<u64>> =
            (0..40_u64).map(|set| (set * 50..set * 50 + 5000).map(|at| at << 40).collect()).collect();
        let counted = Frequencies::new(12, false);
        counted.add(&sets.concat());
        let table = WeightTable::by_rarity(&counted.counts(), 40).unwrap();
        check(&Arc::new(table), &sets, &sets, Wanted { top: 4, at_least: 0.0, measure: Measure::Jaccard });
    }

    #[test]
    fn queries_with_more_elements_than_a_counter_counts_are_compared_with_all() {
        let set = |start: u64| (start..start + 2 * MOST_TERMS as u64).map(|at| at << 40).collect();
        let sets: Vec<Vec<u64>> = (0..12_u64).map(|number| set(number * number * 900)).collect();
        for measure in [Measure::Jaccard, Measure::Containment] {
            check(&Arc::new(Uniform), &sets, &sets, Wanted { top: 3, at_least: 0.1, measure });
        }
    }
}
