//! Band: signatures in, buckets and candidate pairs out.
//!
//! A signature of b·r slots is cut into b bands of r slots; each band hashes to one 64-bit key. Documents with an equal key
//! share a bucket, and documents that share a bucket are candidates. A bucket has bounded cost: above a cap each member is
//! paired with its first few members only, in an order that the caller gives, so that the choice never depends on
//! threads, memory or arrival.

use std::mem::take;

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
    counts: BucketCounts,
}

/// The smaller side of pairs, and where the other sides stand among the members of a band's buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct First {
    /// Its number.
    pub low: u32,
    /// The place of its first partner.
    pub start: u32,
    /// One past the place of its last.
    pub end: u32,
}

/// Members that share their key with another, from which all pairs of a band can be read without writing them down: a bucket of
/// n members takes n places in `members` and n − 1 in `firsts`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Every member that is the smaller one of a pair, ascending. Each member is in one bucket of a band.
    pub firsts: Vec<First>,
    /// Bucket after bucket, each ascending.
    pub members: Vec<u32>,
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

    /// Who shares a key with whom. `max_bucket` is the cap; members below `protected` need not be paired with each other. Nothing is
    /// left of what was gathered.
    pub fn shared(&mut self, max_bucket: usize, protected: u32, threads: usize) -> Shared {
        let mut entries = shared_entries(&take(&mut self.keys), &take(&mut self.members));
        sort(&mut entries, threads);
        let mut shared = Shared::default();
        for bucket in entries.chunk_by(|left, right| left.0 == right.0).filter(|bucket| bucket.len() > 1) {
            self.counts.add(bucket.len(), max_bucket);
            shared.add(bucket, max_bucket, protected);
        }
        sort(&mut shared.firsts, threads);
        shared
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

impl BucketCounts {
    fn add(&mut self, size: usize, max_bucket: usize) {
        self.largest = self.largest.max(size as u64);
        if size > max_bucket {
            let unpaired = size - firsts_of(size, max_bucket);
            self.capped += 1;
            self.capped_members += size as u64;
            self.left_out += unpaired as u64 * (unpaired as u64 - 1) / 2;
        }
    }
}

/// How many members of a bucket are paired with all that come after them: all but the last, or the first few above the cap.
const fn firsts_of(size: usize, max_bucket: usize) -> usize {
    if size > max_bucket && size > FIRST_MEMBERS { FIRST_MEMBERS } else { size - 1 }
}

impl Shared {
    fn add(&mut self, bucket: &[(u64, u32)], max_bucket: usize, protected: u32) {
        let start = self.members.len();
        let end = start + bucket.len();
        // The protected ones stand before all others, so this is where the first stands that they are paired with.
        let free = start + bucket.partition_point(|entry| entry.1 < protected);
        if free == end {
            return;
        }
        self.members.extend(bucket.iter().map(|entry| entry.1));
        self.firsts.extend((start..start + firsts_of(bucket.len(), max_bucket)).map(|place| First {
            low: self.members[place],
            start: free.max(place + 1) as u32,
            end: end as u32,
        }));
    }
}

/// Sorts on several threads only if there are to be several: those of the pool that they would come from are nobody's choice.
fn sort<T: Ord + Send>(entries: &mut [T], threads: usize) {
    if threads > 1 {
        entries.par_sort_unstable();
    } else {
        entries.sort_unstable();
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
    pub fn groups(self, threads: usize) -> (Vec<u32>, Vec<u64>) {
        let sieve = Sieve::of(&self.low);
        let words = self.low.iter().zip(&self.high).zip(&self.members);
        let mut entries: Vec<(u64, u64, u32)> = words
            .filter(|&((&low, _), _)| sieve.twice(low))
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

    fn pairs_of(shared: &Shared) -> Vec<u64> {
        let partners = |first: &First| &shared.members[first.start as usize..first.end as usize];
        let of = |first| partners(first).iter().map(|&high| pack_pair(first.low, high));
        shared.firsts.iter().flat_map(of).collect()
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
                    pairs.extend(pairs_of(&buckets.shared(max_bucket, 0, 1)));
                    assert_eq!(buckets.shared(max_bucket, 0, 1), Shared::default());
                }
                pairs.sort_unstable();
                assert_eq!(pairs, expected(&keys, &members, max_bucket), "{max_bucket} {parts}");
            }
        }
    }

    #[test]
    fn protected_members_are_paired_with_others_alone() {
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
    fn what_a_cap_leaves_out_is_counted() {
        let mut buckets = Buckets::default();
        buckets.push(&[7; 100], &(0..100).collect::<Vec<u32>>(), 0, 1);
        let pairs = pairs_of(&buckets.shared(99, 0, 1));
        // Members 1…15 have all earlier ones as partners, members 16…99 the first 16.
        assert_eq!(pairs.len(), 15 * 16 / 2 + 84 * 16);
        let left_out = 100 * 99 / 2 - pairs.len() as u64;
        assert_eq!(buckets.counts(), BucketCounts { capped: 1, capped_members: 100, left_out, largest: 100 });
    }

    #[test]
    fn copies_are_grouped_by_both_words() {
        let mut copies = Copies::default();
        copies.push(&[5, 1, 5, 2, 5, 1, 9, 9, 5, 2, 5, 3], &[10, 3, 2, 0, 4, NOBODY], 0, 1);
        assert_eq!(copies.groups(1), (vec![2, 10, 3, 4], vec![0, 2, 4]));
    }
}
