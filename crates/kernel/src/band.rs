//! Band: signatures in, buckets and candidate pairs out.
//!
//! A signature of b·r slots is cut into b bands of r slots; each band hashes to one 64-bit key. Documents with an equal key
//! share a bucket, and documents that share a bucket are candidates. A bucket has bounded cost: above a cap each member is
//! paired with its first few members only, in an order that the caller gives, so that the choice never depends on
//! threads, memory or arrival.

use std::mem::take;
use std::ops::Range;

use rayon::prelude::*;

use crate::hash::{Domain, fold, key, mix};
use crate::sketch::Slot;

/// The key of a document that is in no bucket: without elements, not readable, or standing behind an equal one.
pub const NO_KEY: u64 = u64::MAX;
/// The number of a member that takes part in no bucket.
pub const NOBODY: u32 = u32::MAX;
/// With how many of its members a bucket above the cap pairs each.
pub const FIRST_MEMBERS: usize = 16;

/// Cuts signatures into bands.
#[derive(Clone, Debug)]
pub struct Banding {
    rows: usize,
    keys: [u64; 2],
    starts: Vec<u64>,
}

impl Banding {
    /// `bands` bands of `rows` slots, for signatures made with `seed`.
    #[must_use]
    pub fn new(bands: usize, rows: usize, seed: u64) -> Self {
        let keys = [key(seed, Domain::Band, 0), key(seed, Domain::Band, 1)];
        let starts = (0..bands as u64).map(|band| key(seed, Domain::Band, 2 + band)).collect();
        Self { rows, keys, starts }
    }

    /// Number of bands.
    #[must_use]
    pub const fn bands(&self) -> usize {
        self.starts.len()
    }

    /// Slots that the bands need.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.starts.len() * self.rows
    }

    /// The key of every band of a signature.
    pub fn keys<'s, S: Slot>(&'s self, signature: &'s [S]) -> impl Iterator<Item = u64> + 's {
        self.starts.iter().zip(signature.chunks_exact(self.rows)).map(|(&start, slots)| {
            let hash = slots.chunks(2).fold(start, |h, two| {
                let hi = two.get(1).map_or(0, |&slot| slot.into());
                fold(two[0].into() ^ self.keys[0] ^ h, hi ^ self.keys[1])
            });
            mix(hash).min(NO_KEY - 1)
        })
    }
}

/// The buckets of one band, gathered part by part.
#[derive(Debug, Default)]
pub struct Buckets {
    keys: Vec<u64>,
    members: Vec<u32>,
    /// Who shares a key with another, once gathering is over.
    shared: Option<Shared>,
    /// The place of the next member in `shared.firsts`.
    place: usize,
    counts: BucketCounts,
}

/// Members that share their key with another.
#[derive(Debug, Default)]
struct Shared {
    /// Bucket after bucket, each ascending.
    members: Vec<u32>,
    /// Every member that is the smaller one of a pair, ascending, with where its partners stand in `members`. Each member is in one
    /// bucket of a band, so that pairs come in order without being sorted.
    firsts: Vec<(u32, Range<u32>)>,
}

/// What a band's buckets held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BucketCounts {
    /// Buckets above the cap.
    pub capped: u64,
    /// Members of those.
    pub capped_members: u64,
    /// Pairs inside them that were not proposed.
    pub left_out: u64,
    /// Members of the largest bucket; 0 if no key is shared.
    pub largest: u64,
}

impl Buckets {
    /// Takes the keys of documents and the numbers under which they take part; only those whose key is in `part` of
    /// `parts` equal ranges of keys.
    pub fn push(&mut self, keys: &[u64], members: &[u32], part: u64, parts: u64) {
        let taken = |key, member| key != NO_KEY && member != NOBODY && in_part(key, part, parts);
        for (&key, &member) in keys.iter().zip(members).filter(|&(&key, &member)| taken(key, member)) {
            self.keys.push(key);
            self.members.push(member);
        }
    }

    /// The next candidate pairs `low << 32 | high`, ascending and distinct: those of as many members as give `most` pairs, and at
    /// least of one. None when there are no more. `max_bucket` is the cap, the same in every call.
    pub fn next_pairs(&mut self, max_bucket: usize, most: usize) -> Option<Vec<u64>> {
        let shared = self.shared.get_or_insert_with(|| {
            let mut entries = shared_entries(&take(&mut self.keys), &take(&mut self.members));
            entries.par_sort_unstable();
            Shared::of(&entries, max_bucket, &mut self.counts)
        });
        let rest = &shared.firsts[self.place..];
        if rest.is_empty() {
            return None;
        }
        let mut pairs = Vec::new();
        for (low, partners) in rest {
            let partners = &shared.members[partners.start as usize..partners.end as usize];
            pairs.extend(partners.iter().map(|&high| pack_pair(*low, high)));
            self.place += 1;
            if pairs.len() >= most {
                break;
            }
        }
        Some(pairs)
    }

    /// What the buckets so far held.
    #[must_use]
    pub const fn counts(&self) -> BucketCounts {
        self.counts
    }
}

/// Whether a key is in `part` of `parts` equal ranges of keys.
fn in_part(key: u64, part: u64, parts: u64) -> bool {
    (u128::from(key) * u128::from(parts)) >> 64 == u128::from(part)
}

/// The pair `low << 32 | high` of two numbers.
#[must_use]
pub const fn pack_pair(one: u32, other: u32) -> u64 {
    let (low, high) = if one < other { (one, other) } else { (other, one) };
    (low as u64) << 32 | high as u64
}

/// Puts numbers in ascending order, each once, on two threads at most; quickest if they are a few ascending runs.
#[expect(clippy::stable_sort_primitive, reason = "it finds the runs and merges them, in two thirds of the time")]
pub fn sort_distinct(numbers: &mut Vec<u64>, threads: usize) {
    if threads > 1 {
        let middle = numbers.len() / 2;
        let (left, right) = numbers.split_at_mut(middle);
        rayon::join(|| left.sort(), || right.sort());
    }
    numbers.sort();
    numbers.dedup();
}

/// Flags both numbers of every pair; None if one of them has no place.
#[must_use]
pub fn mark_members(pairs: &[u64], marks: &mut [bool]) -> Option<()> {
    for &pair in pairs {
        *marks.get_mut((pair >> 32) as usize)? = true;
        *marks.get_mut(pair as u32 as usize)? = true;
    }
    Some(())
}

impl Shared {
    /// Of entries by key and number.
    fn of(entries: &[(u64, u32)], max_bucket: usize, counts: &mut BucketCounts) -> Self {
        let mut shared = Self::default();
        for bucket in entries.chunk_by(|left, right| left.0 == right.0).filter(|bucket| bucket.len() > 1) {
            shared.add(bucket, max_bucket, counts);
        }
        shared.firsts.par_sort_unstable_by_key(|first| first.0);
        shared
    }

    /// Takes a bucket. Each member is paired with all that come after it; above the cap only the first few are.
    fn add(&mut self, bucket: &[(u64, u32)], max_bucket: usize, counts: &mut BucketCounts) {
        let (start, size) = (self.members.len(), bucket.len());
        let end = (start + size) as u32;
        let capped = size > max_bucket;
        let firsts = if capped { FIRST_MEMBERS.min(size - 1) } else { size - 1 };
        self.members.extend(bucket.iter().map(|entry| entry.1));
        self.firsts.extend((0..firsts).map(|i| (bucket[i].1, (start + i) as u32 + 1..end)));
        counts.largest = counts.largest.max(size as u64);
        if capped {
            counts.capped += 1;
            counts.capped_members += size as u64;
            counts.left_out += (size - firsts) as u64 * (size - firsts - 1) as u64 / 2;
        }
    }
}

/// Bits per key of the sieve: one key in about eight that nobody shares stays by accident.
const SIEVE_BITS: usize = 8;

/// The entries whose key occurs at least twice, and a few others.
///
/// Most keys of a corpus are nobody else's. Marking the low bits of every key in a table, once and twice, finds them at a
/// fraction of the cost of sorting.
fn shared_entries(keys: &[u64], members: &[u32]) -> Vec<(u64, u32)> {
    let sieve = Sieve::of(keys);
    keys.iter().zip(members).filter(|&(&key, _)| sieve.twice(key)).map(|(&key, &member)| (key, member)).collect()
}

struct Sieve {
    mask: u64,
    once: Vec<u64>,
    again: Vec<u64>,
}

impl Sieve {
    fn of(keys: &[u64]) -> Self {
        let bits = (keys.len() * SIEVE_BITS).next_power_of_two().max(64);
        let mut sieve = Self { mask: bits as u64 - 1, once: vec![0; bits / 64], again: vec![0; bits / 64] };
        for &key in keys {
            let (word, bit) = sieve.place(key);
            sieve.again[word] |= sieve.once[word] & bit;
            sieve.once[word] |= bit;
        }
        sieve
    }

    const fn place(&self, key: u64) -> (usize, u64) {
        let place = key & self.mask;
        ((place / 64) as usize, 1 << (place % 64))
    }

    fn twice(&self, key: u64) -> bool {
        let (word, bit) = self.place(key);
        self.again[word] & bit != 0
    }
}

/// Documents with equal content, gathered part by part.
#[derive(Debug, Default)]
pub struct Copies {
    low: Vec<u64>,
    high: Vec<u64>,
    members: Vec<u32>,
}

impl Copies {
    /// Takes the content hashes of documents and the numbers under which they take part; only those whose hash is in
    /// `part` of `parts` equal ranges. `contents` holds two words per document.
    pub fn push(&mut self, contents: &[u64], members: &[u32], part: u64, parts: u64) {
        for (content, &member) in contents.chunks_exact(2).zip(members) {
            if member != NOBODY && in_part(content[0], part, parts) {
                self.low.push(content[0]);
                self.high.push(content[1]);
                self.members.push(member);
            }
        }
    }

    /// For every group of at least two: the members ascending, group after group in the order of their first members; and where
    /// each group starts, with one past the end of the last.
    #[must_use]
    pub fn groups(self) -> (Vec<u32>, Vec<u64>) {
        let sieve = Sieve::of(&self.low);
        let words = self.low.iter().zip(&self.high).zip(&self.members);
        let mut entries: Vec<(u64, u64, u32)> = words
            .filter(|&((&low, _), _)| sieve.twice(low))
            .map(|((&low, &high), &member)| (low, high, member))
            .collect();
        drop(self);
        entries.par_sort_unstable();
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

    /// All pairs of members with an equal key; above the cap only those with one of the first sixteen.
    fn expected(keys: &[u64], members: &[u32], max_bucket: usize) -> Vec<u64> {
        let mut pairs = BTreeSet::new();
        for &key in keys {
            let mut bucket: Vec<u32> = (0..keys.len()).filter(|&i| keys[i] == key).map(|i| members[i]).collect();
            bucket.retain(|&member| key != NO_KEY && member != NOBODY);
            bucket.sort_unstable();
            let partners = if bucket.len() <= max_bucket { bucket.len() } else { FIRST_MEMBERS };
            for (i, &member) in bucket.iter().enumerate() {
                pairs.extend(bucket[..i.min(partners)].iter().map(|&earlier| pack_pair(earlier, member)));
            }
        }
        pairs.into_iter().collect()
    }

    #[test]
    fn pairs_are_those_of_the_definition_however_the_keys_are_cut_into_parts() {
        let keys: Vec<u64> = (0..600u64).map(|i| if i % 50 == 0 { NO_KEY } else { mix(mix(i) % 97) }).collect();
        let members: Vec<u32> = (0..600).map(|i| if i % 31 == 0 { NOBODY } else { 599 - i }).collect();
        for max_bucket in [1, 3, 20, 2000] {
            for parts in [1, 2, 7] {
                let mut pairs = Vec::new();
                for part in 0..parts {
                    let mut buckets = Buckets::default();
                    for (keys, members) in keys.chunks(100).zip(members.chunks(100)) {
                        buckets.push(keys, members, part, parts);
                    }
                    for most in [1, 50, usize::MAX] {
                        pairs.extend(buckets.next_pairs(max_bucket, most).unwrap_or_default());
                    }
                    assert_eq!(buckets.next_pairs(max_bucket, 1), None);
                }
                pairs.sort_unstable();
                assert_eq!(pairs, expected(&keys, &members, max_bucket), "{max_bucket} {parts}");
            }
        }
    }

    #[test]
    fn runs_become_one() {
        for threads in [1, 2] {
            let mut numbers: Vec<u64> = [3, 5, 9].into_iter().chain([1, 5, 9, 20]).chain([0]).collect();
            sort_distinct(&mut numbers, threads);
            assert_eq!(numbers, [0, 1, 3, 5, 9, 20]);
        }
    }

    #[test]
    fn both_numbers_of_a_pair_are_marked() {
        let mut marks = [false; 4];
        assert_eq!(mark_members(&[pack_pair(3, 1)], &mut marks), Some(()));
        assert_eq!(marks, [false, true, false, true]);
        assert_eq!(mark_members(&[pack_pair(0, 4)], &mut marks), None);
    }

    #[test]
    fn what_a_cap_leaves_out_is_counted() {
        let mut buckets = Buckets::default();
        buckets.push(&[7; 100], &(0..100).collect::<Vec<u32>>(), 0, 1);
        let pairs = buckets.next_pairs(99, usize::MAX).unwrap_or_default();
        // Members 1…15 have all earlier ones as partners, members 16…99 the first 16.
        assert_eq!(pairs.len(), 15 * 16 / 2 + 84 * 16);
        let left_out = 100 * 99 / 2 - pairs.len() as u64;
        assert_eq!(buckets.counts(), BucketCounts { capped: 1, capped_members: 100, left_out, largest: 100 });
    }

    #[test]
    fn copies_are_grouped_by_both_words() {
        let mut copies = Copies::default();
        copies.push(&[5, 1, 5, 2, 5, 1, 9, 9, 5, 2, 5, 3], &[10, 3, 2, 0, 4, NOBODY], 0, 1);
        assert_eq!(copies.groups(), (vec![2, 10, 3, 4], vec![0, 2, 4]));
    }
}
