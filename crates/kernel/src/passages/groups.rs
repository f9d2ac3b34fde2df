//! Groups of entries: which repeat the first of their group, and which are unresolved.
//!
//! A table has one row per group, so a group of a billion entries costs as much memory as one of two. Blocks of entries
//! are read twice: to find the first entry of every group, and to compare each entry with it.

use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::{ENTRY_BYTES, Entry};
use crate::hash::GOLDEN;

/// Preference of documents.
#[derive(Clone, Copy)]
pub struct Order<'o> {
    /// Rank of each document; None if documents are numbered by rank.
    pub rank_of: Option<&'o [u32]>,
    /// Number of documents, the first ones, that alone can be the other side; None if every document can.
    pub references: Option<u32>,
}

/// L-grams that repeat earlier ones, as columns ordered by `keys`: document in the high, first token in the low half.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Covers {
    /// Document and first token.
    pub keys: Vec<u64>,
    /// Number of consecutive L-grams.
    pub counts: Vec<u32>,
    /// Document and first token of the first occurrence.
    pub others: Vec<u64>,
    /// Start and end, then start and end of the first occurrence, in code points.
    pub spans: Vec<u32>,
    /// Number of entries of the group.
    pub occurrences: Vec<u32>,
}

/// L-grams whose first occurrence is not known, as columns ordered by `keys`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Regions {
    /// Document and first token.
    pub keys: Vec<u64>,
    /// Number of consecutive L-grams.
    pub counts: Vec<u32>,
}

impl Regions {
    /// Yield the first tokens of the L-grams of each region of a document, ascending.
    pub fn of_document(&self, document: u32) -> impl Iterator<Item = Range<usize>> {
        let first = self.keys.partition_point(|&key| key >> 32 < u64::from(document));
        let of_document = self.keys[first..].iter().zip(&self.counts[first..]);
        of_document.take_while(move |(key, _)| *key >> 32 == u64::from(document)).map(|(&key, &count)| {
            let start = key as u32 as usize;
            start..start + count as usize
        })
    }
}

/// Hash of the group key: its first word has uniform low bits.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(GOLDEN);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// Kind of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Segments, which are grouped by fingerprint.
    Segments,
    /// Single L-grams, of which only equal ones form a group.
    Grams,
    /// Lines, sentences or paragraphs, of which only equal ones form a group.
    Units,
}

struct Group {
    first: Entry,
    /// Place of the first entry.
    place: u64,
    occurrences: u32,
    /// Whether segments differ.
    mixed: bool,
    /// Whether an entry is in a document whose repeats are looked for.
    input: bool,
}

/// Groups of the entries of a partition.
pub struct Groups {
    kind: Kind,
    part: (u64, u64),
    min_count: u32,
    table: HashMap<(u64, u64), Group, BuildHasherDefault<KeyHasher>>,
}

impl Groups {
    /// Create groups of the fingerprints in range `part.0` of `part.1` ranges.
    ///
    /// Groups of fewer than `min_count` entries, at least 2, have no repeats.
    #[must_use]
    pub fn new(kind: Kind, part: (u64, u64), min_count: u32) -> Self {
        Self { kind, part, min_count, table: HashMap::default() }
    }

    /// Add a block of encoded entries.
    pub fn add(&mut self, block: &[u8], order: Order<'_>) {
        for entry in entries(block, self.part) {
            let (place, input) = (order.place(&entry), order.is_input(&entry));
            match self.table.entry(key(&entry, self.kind)) {
                Vacant(free) => drop(free.insert(Group { first: entry, place, occurrences: 1, mixed: false, input })),
                Occupied(mut found) => found.get_mut().add(entry, place, input),
            }
        }
    }

    /// Return the repeats and the unresolved L-grams in a block, after all blocks were added.
    #[must_use]
    pub fn resolve(&self, block: &[u8], order: Order<'_>) -> (Covers, Regions) {
        let (mut covers, mut regions) = (Vec::new(), Vec::new());
        for entry in entries(block, self.part) {
            let group = self.table.get(&key(&entry, self.kind));
            let Some(group) = group.filter(|group| group.concerns(order, self.min_count)) else { continue };
            if order.place(&entry) == group.place || !group.first.same_tokens(&entry) {
                regions.extend(group.mixed.then_some(entry));
            } else if order.is_input(&entry) {
                covers.push((entry, group));
            }
        }
        (Covers::of(covers, self.kind != Kind::Units), Regions::of(regions))
    }
}

fn key(entry: &Entry, kind: Kind) -> (u64, u64) {
    let fingerprint = u64::from(entry.fingerprint);
    if kind == Kind::Segments { (fingerprint, 0) } else { (entry.hash, fingerprint << 32 | u64::from(entry.check)) }
}

/// Return the entries of a block whose fingerprints are in a range, with other document numbers.
///
/// Entries of documents without a number are left out.
#[must_use]
pub fn renumber(block: &[u8], numbers: &[Option<u32>], part: (u64, u64)) -> Vec<u8> {
    let mut renumbered = Vec::with_capacity(block.len() / part.1 as usize);
    for entry in entries(block, part) {
        if let Some(document) = numbers[entry.document as usize] {
            Entry { document, ..entry }.encode(&mut renumbered);
        }
    }
    renumbered
}

fn entries(block: &[u8], part: (u64, u64)) -> impl Iterator<Item = Entry> {
    let in_part = move |entry: &Entry| (u64::from(entry.fingerprint) * part.1) >> 32 == part.0;
    block.as_chunks::<ENTRY_BYTES>().0.iter().map(Entry::decode).filter(in_part)
}

impl Group {
    fn add(&mut self, entry: Entry, place: u64, input: bool) {
        self.occurrences = self.occurrences.saturating_add(1);
        self.mixed |= !self.first.same_tokens(&entry);
        self.input |= input;
        if place < self.place {
            (self.first, self.place) = (entry, place);
        }
    }

    /// Return whether the group can have a repeat.
    fn concerns(&self, order: Order<'_>, min_count: u32) -> bool {
        self.occurrences >= min_count && (order.references.is_none() || self.input && !order.is_input(&self.first))
    }
}

impl Order<'_> {
    /// Return the place of an entry: rank of the document in the high half, first token in the low half.
    fn place(&self, entry: &Entry) -> u64 {
        let rank = self.rank_of.map_or(entry.document, |rank_of| rank_of[entry.document as usize]);
        u64::from(rank) << 32 | u64::from(entry.position)
    }

    /// Return whether an entry is in a document whose repeats are looked for.
    fn is_input(&self, entry: &Entry) -> bool {
        self.references.is_none_or(|references| entry.document >= references)
    }
}

impl Covers {
    /// Return entries and their groups as columns; with `merges`, those that are consecutive on both sides as one.
    fn of(mut found: Vec<(Entry, &Group)>, merges: bool) -> Self {
        found.sort_unstable_by_key(|(entry, _)| entry.key());
        let mut covers = Self::default();
        for (entry, group) in found {
            if !(merges && covers.extend_last(&entry, &group.first)) {
                covers.keys.push(entry.key());
                covers.counts.push(u32::from(entry.count));
                covers.others.push(group.first.key());
                covers.spans.extend([entry.span, group.first.span].as_flattened());
                covers.occurrences.push(group.occurrences);
            }
        }
        covers
    }

    /// Extend the last row by an entry that continues both of its sides.
    fn extend_last(&mut self, entry: &Entry, first: &Entry) -> bool {
        let (Some(&key), Some(&other), Some(count)) = (self.keys.last(), self.others.last(), self.counts.last_mut())
        else {
            return false;
        };
        let continues = key + u64::from(*count) == entry.key() && other + u64::from(*count) == first.key();
        if continues {
            *count += u32::from(entry.count);
            let end = self.spans.len();
            (self.spans[end - 3], self.spans[end - 1]) = (entry.span[1], first.span[1]);
        }
        continues
    }
}

impl Regions {
    fn of(mut found: Vec<Entry>) -> Self {
        found.sort_unstable_by_key(Entry::key);
        Self {
            keys: found.iter().map(Entry::key).collect(),
            counts: found.iter().map(|entry| u32::from(entry.count)).collect(),
        }
    }
}
