//! Banding of signatures, buckets of equal band keys, and the pairs in a bucket.
//!
//! A signature of b·r slots is cut into b bands of r slots, and each band is hashed to a 64-bit key. Documents with an
//! equal key share a bucket, and documents that share a bucket are candidates.
//!
//! The cost of a bucket is bounded. A bucket of n members has n·(n−1)/2 pairs; above a cap each member is paired only
//! with the first 16 members. The caller defines the order of the members, so the choice does not depend on threads,
//! memory or arrival. Between two tables, a member is paired only with members of the other table, above the cap with
//! the first 16 of them.

use std::mem::take;

use rayon::prelude::*;

use crate::hash::{Domain, fold, key, mix};
use crate::sketch::Slot;

/// Key of a document that is in no bucket: it has no elements, cannot be read, or equals an earlier document.
pub const NO_KEY: u64 = u64::MAX;
/// Number that stands for no document: a member that is in no bucket, or a missing witness.
pub const NO_DOCUMENT: u32 = u32::MAX;
/// Members of a bucket above the cap with which every other member is paired.
pub const FIRST_MEMBERS: usize = 16;

/// Hash functions from the bands of a signature to keys.
#[derive(Clone, Debug)]
pub struct Banding {
    rows: usize,
    keys: [u64; 2],
    starts: Vec<u64>,
}

impl Banding {
    /// Create `bands` bands of `rows` slots for signatures made with `seed`.
    #[must_use]
    pub fn new(bands: usize, rows: usize, seed: u64) -> Self {
        let keys = [key(seed, Domain::Band, 0), key(seed, Domain::Band, 1)];
        let starts = (0..bands as u64).map(|band| key(seed, Domain::Band, 2 + band)).collect();
        Self { rows, keys, starts }
    }

    /// Return the number of bands.
    #[must_use]
    pub const fn bands(&self) -> usize {
        self.starts.len()
    }

    /// Return the number of slots in all bands.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.starts.len() * self.rows
    }

    /// Return the key of each band of a signature.
    pub fn keys<'s, S: Slot>(&'s self, signature: &'s [S]) -> impl Iterator<Item = u64> + 's {
        self.starts.iter().zip(signature.chunks_exact(self.rows)).map(|(&start, slots)| {
            let hash = slots.chunks(2).fold(start, |h, pair| {
                let hi = pair.get(1).map_or(0, |&slot| slot.into());
                fold(pair[0].into() ^ self.keys[0] ^ h, hi ^ self.keys[1])
            });
            mix(hash).min(NO_KEY - 1)
        })
    }
}

/// Keys and members of one band, collected batch by batch.
#[derive(Debug, Default)]
pub struct Buckets {
    keys: Vec<u64>,
    members: Vec<u32>,
    counts: BucketCounts,
}

/// The pairs of one document with consecutive members of [`SharedBuckets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairRange {
    /// The smaller document of each pair.
    pub low: u32,
    /// Index of its first partner.
    pub start: u32,
    /// One past the index of its last partner.
    pub end: u32,
}

/// Buckets of at least two members, from which all pairs of a band can be enumerated.
///
/// A bucket of n members takes n entries in `members` and n − 1 in `ranges`, not n·(n−1)/2.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SharedBuckets {
    /// One range per member that is the smaller document of a pair, ascending. A member is in one bucket of a band.
    pub ranges: Vec<PairRange>,
    /// The members of all buckets, one bucket after the other, each ascending.
    pub members: Vec<u32>,
}

impl SharedBuckets {
    /// Add the pairs of the first `left` members of a bucket with the others.
    fn add_across(&mut self, bucket: &[(u64, u32)], left: usize, max_bucket: usize) {
        let start = (self.members.len() + left) as u32;
        self.members.extend(bucket.iter().map(|entry| entry.1));
        let end = self.members.len() as u32;
        let capped_end = if bucket.len() > max_bucket { end.min(start + FIRST_MEMBERS as u32) } else { end };
        self.ranges.extend(bucket[..left].iter().enumerate().map(|(index, entry)| PairRange {
            low: entry.1,
            start,
            end: if index < FIRST_MEMBERS { end } else { capped_end },
        }));
    }
}

/// Buckets of at least two members, one after the other. They can be divided among machines, unlike [`SharedBuckets`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct BucketGroups {
    /// The buckets.
    pub buckets: Vec<Bucket>,
    /// The members of all buckets, each bucket ascending.
    pub members: Vec<u32>,
}

/// A bucket: which of its members are paired with which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Number of members.
    pub size: u32,
    /// Number of first members that are paired with later ones.
    pub heads: u32,
    /// Index of the first member that they are paired with.
    pub first_partner: u32,
}

impl BucketGroups {
    /// Return the pairs of all buckets as ranges, ascending.
    ///
    /// # Panics
    /// If the buckets have more members than there are.
    #[must_use]
    pub fn pair_ranges(&self, threads: usize) -> Vec<PairRange> {
        let (mut ranges, mut start) = (Vec::new(), 0);
        for bucket in &self.buckets {
            let end = start + bucket.size;
            ranges.extend((0..bucket.heads).map(|index| PairRange {
                low: self.members[(start + index) as usize],
                start: start + bucket.first_partner.max(index + 1),
                end,
            }));
            start = end;
        }
        sort(&mut ranges, threads);
        ranges
    }

    fn add(&mut self, bucket: &[(u64, u32)], max_bucket: usize, protected: u32) {
        // Protected members come first, so this is the index of the first member that they are paired with.
        let free = bucket.partition_point(|entry| entry.1 < protected);
        if free == bucket.len() {
            return;
        }
        self.members.extend(bucket.iter().map(|entry| entry.1));
        self.buckets.push(Bucket {
            size: bucket.len() as u32,
            heads: paired_members(bucket.len(), max_bucket) as u32,
            first_partner: free as u32,
        });
    }
}

/// Bucket statistics of a band.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketCounts {
    /// Buckets above the cap.
    pub capped: u64,
    /// Members of the buckets above the cap.
    pub capped_members: u64,
    /// Pairs in buckets above the cap that are not candidates.
    pub left_out: u64,
    /// Size of the largest bucket; 0 if no key is shared.
    pub largest: u64,
}

impl Buckets {
    /// Add the keys of documents that are in range `part` of `parts` equal ranges of keys.
    ///
    /// Each document is added under its number in `members`; [`NO_KEY`] and [`NO_DOCUMENT`] are skipped.
    pub fn push(&mut self, keys: &[u64], members: &[u32], part: u64, parts: u64) {
        let accepts = |key, member| key != NO_KEY && member != NO_DOCUMENT && in_part(key, part, parts);
        for (&key, &member) in keys.iter().zip(members).filter(|&(&key, &member)| accepts(key, member)) {
            self.keys.push(key);
            self.members.push(member);
        }
    }

    /// Return the buckets of at least two members and clear the collected keys.
    ///
    /// Buckets above `max_bucket` members are capped. Members below `protected` are not paired with each other.
    pub fn groups(&mut self, max_bucket: usize, protected: u32, threads: usize) -> BucketGroups {
        let mut entries = entries_of_repeated_keys(&take(&mut self.keys), &take(&mut self.members));
        sort(&mut entries, threads);
        let mut groups = BucketGroups::default();
        for bucket in entries.chunk_by(|left, right| left.0 == right.0).filter(|bucket| bucket.len() > 1) {
            self.counts.add(bucket.len(), max_bucket);
            groups.add(bucket, max_bucket, protected);
        }
        groups
    }

    /// Return the pairs of the buckets of [`Buckets::groups`].
    pub fn shared(&mut self, max_bucket: usize, protected: u32, threads: usize) -> SharedBuckets {
        let groups = self.groups(max_bucket, protected, threads);
        SharedBuckets { ranges: groups.pair_ranges(threads), members: groups.members }
    }

    /// Return the pairs of a member below `split` and another one, and clear the collected keys.
    ///
    /// In a bucket above `max_bucket` members each member is paired with the first 16 of the other side.
    pub fn shared_across(&mut self, max_bucket: usize, split: u32, threads: usize) -> SharedBuckets {
        let mut entries = entries_of_repeated_keys(&take(&mut self.keys), &take(&mut self.members));
        sort(&mut entries, threads);
        let mut shared = SharedBuckets::default();
        for bucket in entries.chunk_by(|left, right| left.0 == right.0) {
            let left = bucket.partition_point(|entry| entry.1 < split);
            if left > 0 && left < bucket.len() {
                self.counts.add_across(left, bucket.len() - left, max_bucket);
                shared.add_across(bucket, left, max_bucket);
            }
        }
        sort(&mut shared.ranges, threads);
        shared
    }

    /// Return the statistics of all buckets returned so far.
    #[must_use]
    pub const fn counts(&self) -> BucketCounts {
        self.counts
    }
}

/// Return whether a key is in range `part` of `parts` equal ranges of keys.
fn in_part(key: u64, part: u64, parts: u64) -> bool {
    part_of(key, parts) == part
}

/// Return which of `parts` equal ranges of keys a key is in.
fn part_of(key: u64, parts: u64) -> u64 {
    ((u128::from(key) * u128::from(parts)) >> 64) as u64
}

/// Keys of documents, divided into ranges of keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct DividedKeys {
    /// The keys of the first range, then those of the second, and so on; each range in the order of documents.
    pub keys: Vec<u64>,
    /// The index of the document of each key.
    pub documents: Vec<u32>,
    /// Start of each range, and the end of the last.
    pub starts: Vec<u64>,
}

/// Divide the keys of documents, `bands` of each, into `parts` equal ranges of keys.
#[must_use]
pub fn divide_keys(keys: &[u64], bands: usize, parts: u64) -> DividedKeys {
    let mut starts = vec![0; parts as usize + 1];
    for &key in keys {
        starts[part_of(key, parts) as usize + 1] += 1;
    }
    for part in 1..starts.len() {
        starts[part] += starts[part - 1];
    }
    let (mut next, mut divided, mut documents) = (starts.clone(), vec![0; keys.len()], vec![0; keys.len()]);
    for (document, keys) in keys.chunks_exact(bands.max(1)).enumerate() {
        for &key in keys {
            let index = &mut next[part_of(key, parts) as usize];
            (divided[*index as usize], documents[*index as usize]) = (key, document as u32);
            *index += 1;
        }
    }
    DividedKeys { keys: divided, documents, starts }
}

/// Pack two document numbers as `low << 32 | high`.
#[must_use]
pub const fn pack_pair(left: u32, right: u32) -> u64 {
    let (low, high) = if left < right { (left, right) } else { (right, left) };
    (low as u64) << 32 | high as u64
}

impl BucketCounts {
    fn add(&mut self, size: usize, max_bucket: usize) {
        self.largest = self.largest.max(size as u64);
        if size > max_bucket {
            let unpaired = size - paired_members(size, max_bucket);
            self.capped += 1;
            self.capped_members += size as u64;
            self.left_out += unpaired as u64 * (unpaired as u64 - 1) / 2;
        }
    }
}

impl BucketCounts {
    /// Count a bucket with members on two sides.
    fn add_across(&mut self, left: usize, right: usize, max_bucket: usize) {
        let (size, unpaired) = (left + right, [left, right].map(|side| side.saturating_sub(FIRST_MEMBERS) as u64));
        self.largest = self.largest.max(size as u64);
        if size > max_bucket && unpaired[0] * unpaired[1] > 0 {
            self.capped += 1;
            self.capped_members += size as u64;
            self.left_out += unpaired[0] * unpaired[1];
        }
    }
}

/// Return how many members of a bucket are paired with all later ones: all but the last, or the first 16 above the cap.
const fn paired_members(size: usize, max_bucket: usize) -> usize {
    if size > max_bucket && size > FIRST_MEMBERS { FIRST_MEMBERS } else { size - 1 }
}

/// Sort in parallel only with several threads. With one thread the caller has no pool, and rayon would start its global
/// one.
fn sort<T: Ord + Send>(entries: &mut [T], threads: usize) {
    if threads > 1 {
        entries.par_sort_unstable();
    } else {
        entries.sort_unstable();
    }
}

/// Bits per key of the filter: about one unique key in eight is kept by collision.
const BITS_PER_KEY: usize = 8;

/// Return the entries whose key occurs at least twice, and a few with a unique key.
///
/// Most keys of a corpus are unique. Two bitmaps of the low bits of all keys, one for a first and one for a second
/// occurrence, remove them at a fraction of the cost of sorting.
fn entries_of_repeated_keys(keys: &[u64], members: &[u32]) -> Vec<(u64, u32)> {
    let filter = RepeatFilter::of(keys);
    keys.iter().zip(members).filter(|&(&key, _)| filter.may_repeat(key)).map(|(&key, &member)| (key, member)).collect()
}

/// Bitmaps of keys seen once and keys seen again.
struct RepeatFilter {
    mask: u64,
    once: Vec<u64>,
    again: Vec<u64>,
}

impl RepeatFilter {
    fn of(keys: &[u64]) -> Self {
        let bits = (keys.len() * BITS_PER_KEY).next_power_of_two().max(64);
        let mut filter = Self { mask: bits as u64 - 1, once: vec![0; bits / 64], again: vec![0; bits / 64] };
        for &key in keys {
            let (word, bit) = filter.bit(key);
            filter.again[word] |= filter.once[word] & bit;
            filter.once[word] |= bit;
        }
        filter
    }

    const fn bit(&self, key: u64) -> (usize, u64) {
        let index = key & self.mask;
        ((index / 64) as usize, 1 << (index % 64))
    }

    fn may_repeat(&self, key: u64) -> bool {
        let (word, bit) = self.bit(key);
        self.again[word] & bit != 0
    }
}

/// Content hashes and members of documents, collected batch by batch.
#[derive(Debug, Default)]
pub struct Copies {
    low: Vec<u64>,
    high: Vec<u64>,
    members: Vec<u32>,
}

impl Copies {
    /// Add the documents whose content hash is in range `part` of `parts` equal ranges of hashes.
    ///
    /// `contents` holds two words per document. Each document is added under its number in `members`; [`NO_DOCUMENT`]
    /// is skipped.
    pub fn push(&mut self, contents: &[u64], members: &[u32], part: u64, parts: u64) {
        for (content, &member) in contents.chunks_exact(2).zip(members) {
            if member != NO_DOCUMENT && in_part(content[0], part, parts) {
                self.low.push(content[0]);
                self.high.push(content[1]);
                self.members.push(member);
            }
        }
    }

    /// Return the groups of at least two documents with an equal content hash.
    ///
    /// The result is the members, ascending in each group and groups in the order of their first members; and the start
    /// of each group, followed by the end of the last.
    #[must_use]
    pub fn groups(self, threads: usize) -> (Vec<u32>, Vec<u64>) {
        let filter = RepeatFilter::of(&self.low);
        let words = self.low.iter().zip(&self.high).zip(&self.members);
        let mut entries: Vec<(u64, u64, u32)> = words
            .filter(|&((&low, _), _)| filter.may_repeat(low))
            .map(|((&low, &high), &member)| (low, high, member))
            .collect();
        drop(self);
        sort(&mut entries, threads);
        let mut groups: Vec<&[(u64, u64, u32)]> =
            entries.chunk_by(|left, right| left.0 == right.0 && left.1 == right.1).filter(|g| g.len() > 1).collect();
        groups.sort_unstable_by_key(|group| group[0].2);
        let (mut members, mut starts) = (Vec::new(), vec![0]);
        for group in groups {
            members.extend(group.iter().map(|entry| entry.2));
            starts.push(members.len() as u64);
        }
        (members, starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Return all pairs of members with an equal key; above the cap only those with one of the first sixteen.
    fn expected(keys: &[u64], members: &[u32], max_bucket: usize) -> Vec<u64> {
        let mut pairs = BTreeSet::new();
        for &key in keys {
            let mut bucket: Vec<u32> = (0..keys.len()).filter(|&i| keys[i] == key).map(|i| members[i]).collect();
            bucket.retain(|&member| key != NO_KEY && member != NO_DOCUMENT);
            bucket.sort_unstable();
            let partners = if bucket.len() <= max_bucket { bucket.len() } else { FIRST_MEMBERS };
            for (i, &member) in bucket.iter().enumerate() {
                pairs.extend(bucket[..i.min(partners)].iter().map(|&earlier| pack_pair(earlier, member)));
            }
        }
        pairs.into_iter().collect()
    }

    fn pairs_of(shared: &SharedBuckets) -> Vec<u64> {
        let partners = |first: &PairRange| &shared.members[first.start as usize..first.end as usize];
        let of = |first| partners(first).iter().map(|&high| pack_pair(first.low, high));
        shared.ranges.iter().flat_map(of).collect()
    }

    #[test]
    fn divided_keys_are_those_of_each_range_in_the_order_of_documents() {
        let (bands, keys): (usize, Vec<u64>) = (3, (0..300u64).map(|i| mix(i % 200)).collect());
        for parts in [1, 2, 7] {
            let divided = divide_keys(&keys, bands, parts);
            for part in 0..parts {
                let range = divided.starts[part as usize] as usize..divided.starts[part as usize + 1] as usize;
                let expected = (0..keys.len()).filter(|&i| in_part(keys[i], part, parts));
                let (of_keys, of_documents): (Vec<u64>, Vec<u32>) =
                    expected.map(|i| (keys[i], (i / bands) as u32)).unzip();
                assert_eq!(divided.keys[range.clone()], of_keys);
                assert_eq!(divided.documents[range], of_documents);
            }
        }
    }

    #[test]
    fn pairs_equal_the_definition_for_every_number_of_key_ranges() {
        let keys: Vec<u64> = (0..600u64).map(|i| if i % 50 == 0 { NO_KEY } else { mix(mix(i) % 97) }).collect();
        let members: Vec<u32> = (0..600).map(|i| if i % 31 == 0 { NO_DOCUMENT } else { 599 - i }).collect();
        for max_bucket in [1, 3, 20, 2000] {
            for parts in [1, 2, 7] {
                let mut pairs = Vec::new();
                for part in 0..parts {
                    let mut buckets = Buckets::default();
                    for (keys, members) in keys.chunks(100).zip(members.chunks(100)) {
                        buckets.push(keys, members, part, parts);
                    }
                    pairs.extend(pairs_of(&buckets.shared(max_bucket, 0, 1)));
                    assert_eq!(buckets.shared(max_bucket, 0, 1), SharedBuckets::default());
                }
                pairs.sort_unstable();
                assert_eq!(pairs, expected(&keys, &members, max_bucket), "{max_bucket} {parts}");
            }
        }
    }

    #[test]
    fn protected_members_are_not_paired_with_each_other() {
        let (keys, members) = ([7, 7, 7, 7, 8, 8, 9, 9], [0, 1, 2, 3, 4, 5, 6, 7]);
        for max_bucket in [1, 2000] {
            for protected in 0..9 {
                let mut buckets = Buckets::default();
                buckets.push(&keys, &members, 0, 1);
                let shared = buckets.shared(max_bucket, protected, 2);
                let mut wanted = expected(&keys, &members, max_bucket);
                wanted.retain(|&pair| pair as u32 >= protected);
                assert_eq!(pairs_of(&shared), wanted, "{max_bucket} {protected}");
                assert!(shared.members.is_empty() || protected < 8);
            }
        }
    }

    #[test]
    fn members_of_two_sides_are_paired_across_only() {
        let members: Vec<u32> = (0..90).collect();
        let keys: Vec<u64> = members.iter().map(|member| u64::from(member % 4 / 2)).collect();
        for (max_bucket, split) in [(16, 0), (16, 5), (16, 40), (44, 40), (45, 40), (16, 88), (16, 90)] {
            let mut buckets = Buckets::default();
            buckets.push(&keys, &members, 0, 1);
            let shared = buckets.shared_across(max_bucket, split, 2);
            let (mut wanted, mut all) = (Vec::new(), 0);
            let side = |key: u64, low: bool| -> Vec<u32> {
                members.iter().copied().filter(|&m| keys[m as usize] == key && (m < split) == low).collect()
            };
            for key in [0, 1] {
                let (left, right) = (side(key, true), side(key, false));
                let capped = left.len() + right.len() > max_bucket;
                all += left.len() * right.len();
                for (i, &low) in left.iter().enumerate() {
                    let partners = right.iter().enumerate().filter(|&(j, _)| !capped || i < 16 || j < 16);
                    wanted.extend(partners.map(|(_, &high)| pack_pair(low, high)));
                }
            }
            wanted.sort_unstable();
            assert_eq!(pairs_of(&shared), wanted, "{max_bucket} {split}");
            assert_eq!(buckets.counts().left_out as usize, all - wanted.len());
        }
    }

    #[test]
    fn pairs_left_out_by_the_cap_are_counted() {
        let mut buckets = Buckets::default();
        buckets.push(&[7; 100], &(0..100).collect::<Vec<u32>>(), 0, 1);
        let pairs = pairs_of(&buckets.shared(99, 0, 1));
        // Members 1…15 are paired with all earlier members, members 16…99 with the first 16.
        assert_eq!(pairs.len(), 15 * 16 / 2 + 84 * 16);
        let left_out = 100 * 99 / 2 - pairs.len() as u64;
        assert_eq!(buckets.counts(), BucketCounts { capped: 1, capped_members: 100, left_out, largest: 100 });
    }

    #[test]
    fn copies_are_grouped_by_both_words_of_the_hash() {
        let mut copies = Copies::default();
        copies.push(&[5, 1, 5, 2, 5, 1, 9, 9, 5, 2, 5, 3], &[10, 3, 2, 0, 4, NO_DOCUMENT], 0, 1);
        assert_eq!(copies.groups(1), (vec![2, 10, 3, 4], vec![0, 2, 4]));
    }
}
